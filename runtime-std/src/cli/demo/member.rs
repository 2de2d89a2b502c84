//! One member of a demo: a process that sends its records and notes everything that is delivered.
//!
//! It drives its node itself, in one loop: send while slots are free, step, and give way when nothing comes.
//! When it has delivered everything it says so and stays until its parent lets go of it: a member that leaves
//! earlier is lost to those that are not through.

use std::io::{self, Write as _};

use tramontane_core::ids::SubgroupId;
use tramontane_core::smc::ReserveError;

use super::deal::Deal;
use super::ledger::Ledger;
use super::spool::Map;
use super::talk::{Brief, Report, Said};
use crate::cli::clock::now_ns;
use crate::cli::exit::{Failure, Status};
use crate::join::{JoinOptions, join};
use crate::joined::JoinedFabric;
use crate::member::{Member, Sender, Settings};
use crate::process::Leash;

/// The one subgroup of a demo.
const ALL: SubgroupId = SubgroupId::ZERO;

/// Between two signs of life.
const SIGN_OF_LIFE_NS: u64 = 200_000_000;

/// Idle steps between two looks at the clock.
const IDLE_STEPS_PER_CLOCK: u32 = 1024;

/// Bytes that are committed under one reading of the clock: what a fraction of a microsecond copies.
const BYTES_PER_STAMP: usize = 4096;

/// How long a member sleeps at most when nothing comes: it still gives signs of life.
const SLEEP_MAX: std::time::Duration = std::time::Duration::from_millis(50);

/// Runs a member, and tells its parent what went wrong, if anything.
pub(super) fn run(brief: &str) -> Option<Status> {
    let leash = match Leash::attach() {
        Ok(leash) => leash,
        Err(error) => {
            Failure::new(Status::Usage, error, "start it with 'tramontane demo'").report();
            return Some(Status::Usage);
        }
    };
    let failure = lead_life(brief, &leash).err()?;
    // The parent may be gone, and then nobody wants to know.
    let _ = say(&Said::Failed { status: failure.status.code(), text: failure.text().to_owned() });
    Some(failure.status)
}

/// Ends with the leash, which is no failure of this member but the end of it.
fn lead_life(brief: &str, leash: &Leash) -> Result<(), Failure> {
    let wrong = |error: serde_json::Error| {
        Failure::new(Status::Usage, error, "start it with 'tramontane demo'")
    };
    let brief: Brief = serde_json::from_str(brief).map_err(wrong)?;
    let map = Map::inherited(brief.spool)
        .map_err(|error| Failure::system("cannot map the input", &error))?;
    let mut member = join_group(&brief, leash)?;
    let outcome = take_part(&mut member, &brief, &map, leash);
    // On purpose, whatever the reason: that removes this member's files.
    member.leave();
    outcome
}

fn join_group(brief: &Brief, leash: &Leash) -> Result<Member<JoinedFabric>, Failure> {
    let options = JoinOptions {
        meeting: brief.place.meeting()?,
        time_limit: brief.join_timeout,
        cancel: leash.flag(),
        settings: Settings::default(),
    };
    Ok(join(&brief.group, u32::from(brief.rank), &options)?)
}

fn take_part(
    member: &mut Member<JoinedFabric>,
    brief: &Brief,
    map: &Map,
    leash: &Leash,
) -> Result<(), Failure> {
    let subgroup = brief.group.subgroups.first().ok_or_else(|| Failure::silent(Status::Usage))?;
    let (senders, window) = (subgroup.senders.len(), subgroup.window as usize);
    let records = map.records();
    let deal = Deal::new(usize::from(brief.rank), senders, records.len(), brief.total);
    let ledger = Ledger::new(records, brief.rank, senders, brief.total, window);
    let outbox = member.sender(ALL).map(|sender| (sender, deal));
    say(&Said::Joined)?;
    if leash.next_line().is_none() {
        return Ok(());
    }
    let mut run =
        Run { member, outbox, ledger, leash, total: brief.total, signed_at_ns: now_ns(), sent: 0 };
    if let Some(report) = run.send_and_deliver_all()? {
        say(&Said::Done(Box::new(report)))?;
        while leash.next_line().is_some() {}
    }
    Ok(())
}

/// A member in the middle of it.
struct Run<'r> {
    member: &'r mut Member<JoinedFabric>,
    /// What this member sends with, and what; none if it does not.
    outbox: Option<(Sender, Deal)>,
    ledger: Ledger<'r>,
    leash: &'r Leash,
    total: u64,
    signed_at_ns: u64,
    sent: u64,
}

impl Run<'_> {
    /// Sends and delivers everything; no report if the leash was cut before.
    fn send_and_deliver_all(&mut self) -> Result<Option<Report>, Failure> {
        let start_ns = now_ns();
        let mut idle = self.member.idle();
        let (mut nulls, mut idle_steps) = (0, 0_u32);
        while self.ledger.delivered < self.total {
            if self.leash.is_cut() {
                return Ok(None);
            }
            self.fill()?;
            let progress = self.member.step(&mut self.ledger)?;
            nulls += progress.nulls;
            if !progress.is_idle() {
                idle.reset();
                self.give_sign_of_life(self.ledger.delivered_at_ns)?;
                continue;
            }
            idle_steps = idle_steps.wrapping_add(1);
            if idle_steps.is_multiple_of(IDLE_STEPS_PER_CLOCK) {
                self.give_sign_of_life(now_ns())?;
            }
            if idle.pause() {
                nulls += self.member.sleep(&mut self.ledger, SLEEP_MAX)?.progress.nulls;
                self.give_sign_of_life(now_ns())?;
                idle.reset();
            }
        }
        Ok(Some(self.ledger.report(self.sent, nulls, start_ns)))
    }

    /// Sends while slots are free.
    #[inline]
    fn fill(&mut self) -> Result<(), Failure> {
        let Some((sender, deal)) = &mut self.outbox else { return Ok(()) };
        let (mut stamp, mut stamped) = (0, BYTES_PER_STAMP);
        while let Some(index) = deal.peek() {
            let record = self.ledger.record(index);
            let mut slot = match sender.try_reserve(record.len()) {
                Ok(slot) => slot,
                Err(ReserveError::Full | ReserveError::Contended) => break,
                Err(error @ ReserveError::TooLarge { .. }) => {
                    return Err(Failure::new(Status::Input, error, "raise --message-max"));
                }
            };
            if stamped >= BYTES_PER_STAMP {
                (stamp, stamped) = (now_ns(), 0);
            }
            stamped += record.len();
            slot.payload().copy_from_slice(record);
            slot.commit();
            self.ledger.committed(stamp, 1);
            self.sent += 1;
            deal.advance();
        }
        Ok(())
    }

    #[inline]
    fn give_sign_of_life(&mut self, now_ns: u64) -> Result<(), Failure> {
        if now_ns.saturating_sub(self.signed_at_ns) < SIGN_OF_LIFE_NS {
            return Ok(());
        }
        self.signed_at_ns = now_ns;
        say(&Said::Delivered(self.ledger.delivered))
    }
}

/// Says something to the parent.
fn say(said: &Said) -> Result<(), Failure> {
    let line = serde_json::to_string(said)
        .map_err(|error| Failure::system("cannot report", &error.into()))?;
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .map_err(|error| Failure::output(&error))
}
