//! The process of a client of the demo, which makes transfers.
//!
//! A client's messages in flight all have the same lowest common ancestor: messages with a
//! different one wait until all earlier messages have been answered. So its messages have one order
//! in each group.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_conformance::history::Event;
use tramontane_conformance::random::Random;
use tramontane_runtime::shards::{Answers, Client, Destinations, GroupId, SendError, StartOptions};

use super::accounts::{ACCOUNTS, BalanceChange, encode};
use super::history::{HistoryFile, message_name};
use super::messages::{BankOrder, BankReport, BankTask, ClientTransfer, ShardsMember};
use super::replica::report;
use tramontane_local::clock::now_ns;
use tramontane_local::crew::{Reporter, Worker};
use tramontane_local::exit::{Failure, Status};

/// Time for which the client waits for an answer before it checks its orders again.
const TICK: Duration = Duration::from_millis(2);

/// Time limit for the last answers.
const LAST: Duration = Duration::from_secs(20);

/// Maximum amount of one transfer between two accounts.
const AMOUNT_MAX: u64 = 100;

/// A client that makes transfers.
struct Transfers {
    client: Client,
    name: String,
    history: HistoryFile,
    random: Random,
    sent: Vec<ClientTransfer>,
    /// The unanswered transfers by number, with their positions in `sent`.
    under_way: BTreeMap<u64, usize>,
    /// The group that orders the unanswered transfers first.
    ordered_at: Option<GroupId>,
}

/// Runs the client until it has carried out the parent's orders.
pub(super) fn run(
    task: &BankTask,
    seed: u64,
    rate: f64,
    worker: Worker<ShardsMember>,
) -> Result<(), Failure> {
    let mut options = StartOptions::default();
    options.time_limit = task.join_timeout;
    options.cancel = worker.released();
    let client = Client::connect(&task.overlay, Destinations::default(), options)?;
    let history = HistoryFile::create(&task.history)
        .map_err(|error| Failure::system("cannot write the history", &error))?;
    let name = format!("c{}", client.number());
    let start =
        Event::Start { t_ns: now_ns(), node: name.as_str().into(), inc: client.incarnation() };
    history.write([start]);
    let reporter = worker.reporter();
    report(reporter, &BankReport::Joined)?;
    if worker.next_order().is_none() {
        return Ok(());
    }
    let mut transfers = Transfers {
        client,
        name,
        history,
        random: Random::stream(seed, "transfers"),
        sent: Vec::new(),
        under_way: BTreeMap::new(),
        ordered_at: None,
    };
    let is_to_stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_to_stop = &is_to_stop;
        scope.spawn(move || {
            while let Some(order) = worker.next_order() {
                if order == BankOrder::Stop {
                    is_to_stop.store(true, Ordering::Relaxed);
                }
            }
            is_to_stop.store(true, Ordering::Relaxed);
        });
        let outcome = transfers.make(rate, is_to_stop).and_then(|()| transfers.end(reporter));
        if let Err(failure) = &outcome {
            let (status, text) = (failure.status.code(), failure.text().to_owned());
            // The thread that receives orders ends once the parent has received this report.
            report(reporter, &BankReport::Failed { status, text })?;
        }
        outcome
    })
}

impl Transfers {
    /// Makes transfers until it is ordered to stop.
    fn make(&mut self, rate: f64, is_to_stop: &AtomicBool) -> Result<(), Failure> {
        let begun = Instant::now();
        while !is_to_stop.load(Ordering::Relaxed) {
            let due = begun.elapsed().as_secs_f64() * rate;
            #[allow(clippy::cast_precision_loss)]
            if self.sent.len() as f64 > due {
                self.take_answers(TICK)?;
                continue;
            }
            let (to, changes) = self.draw();
            self.wait_for_way(to, is_to_stop)?;
            self.send(to, &changes)?;
            self.take_answers(Duration::ZERO)?;
        }
        Ok(())
    }

    /// Waits for the last answers, then reports.
    fn end(&mut self, reporter: Reporter<BankReport>) -> Result<(), Failure> {
        let until = Instant::now() + LAST;
        while !self.under_way.is_empty() {
            if Instant::now() >= until {
                let what = format_args!("{} transfers are not answered", self.under_way.len());
                return Err(Failure::new(Status::Disagreement, what, "please report this"));
            }
            self.take_answers(TICK)?;
        }
        let (name, inc) = (self.name.clone(), self.client.incarnation());
        let sent = std::mem::take(&mut self.sent);
        report(reporter, &BankReport::Done { name, inc, sent })
    }

    /// Draws a transfer between one to all groups: from one account to one in each.
    fn draw(&mut self) -> (Destinations, Vec<BalanceChange>) {
        let groups = self.client.places().overlay().len() as u64;
        let count = 1 + self.random.below(groups);
        let mut left: Vec<u16> = (0..u16::try_from(groups).unwrap_or(0)).collect();
        let mut changes = Vec::new();
        let mut to = Destinations::default();
        let mut sum = 0;
        for index in 0..count {
            let place = self.random.index(left.len());
            let group = GroupId(left.swap_remove(place));
            to = to.with(group);
            let is_last = index + 1 == count;
            let amount = i64::try_from(self.random.below(AMOUNT_MAX)).unwrap_or(0);
            let by = if is_last && count > 1 { -sum } else { amount };
            sum += by;
            changes.push(BalanceChange { group, account: self.account(), by });
            if count == 1 {
                changes.push(BalanceChange { group, account: self.account(), by: -by });
            }
        }
        (to, changes)
    }

    fn account(&mut self) -> u32 {
        u32::try_from(self.random.below(u64::from(ACCOUNTS))).unwrap_or(0)
    }

    /// Waits until no message that another group orders first is in flight.
    fn wait_for_way(&mut self, to: Destinations, is_to_stop: &AtomicBool) -> Result<(), Failure> {
        let way = self.client.places().overlay().lowest_common_ancestor(to);
        while self.ordered_at != way && !self.under_way.is_empty() {
            if is_to_stop.load(Ordering::Relaxed) {
                // The drawn transfer is not sent. Only earlier messages are awaited.
                break;
            }
            self.take_answers(TICK)?;
        }
        Ok(())
    }

    fn send(&mut self, to: Destinations, changes: &[BalanceChange]) -> Result<(), Failure> {
        let way = self.client.places().overlay().lowest_common_ancestor(to);
        if self.ordered_at != way && !self.under_way.is_empty() {
            return Ok(());
        }
        let payload = encode(changes);
        let at_ns = now_ns();
        match self.client.multicast(to, &payload, Answers::OneOfEach) {
            Ok(id) => {
                self.ordered_at = way;
                self.under_way.insert(id.number, self.sent.len());
                self.sent.push(ClientTransfer { at_ns, answered_ns: None, destinations: to.0 });
                let msg = message_name((id.client.0, id.incarnation, id.number));
                self.record(&msg, to, at_ns);
                Ok(())
            }
            Err(SendError::Full) => Ok(()),
            Err(error) => Err(Failure::new(Status::Out, error, "please report this")),
        }
    }

    /// Records that a message is about to be multicast.
    fn record(&self, msg: &str, to: Destinations, t_ns: u64) {
        let places = self.client.places();
        let groups = to.iter().map(|group| places.group_name(group).into()).collect();
        self.history.write([Event::Multicast {
            t_ns,
            node: self.name.as_str().into(),
            inc: self.client.incarnation(),
            msg: msg.into(),
            groups,
            bytes: None,
            digest: None,
        }]);
    }

    fn take_answers(&mut self, timeout: Duration) -> Result<(), Failure> {
        let mut answered = self.client.wait(timeout)?;
        while let Some(of) = answered {
            if let Some(place) = self.under_way.remove(&of.id.number)
                && let Some(sent) = self.sent.get_mut(place)
            {
                let t_ns = now_ns();
                sent.answered_ns = Some(t_ns);
                self.history.write([Event::Accepted {
                    t_ns,
                    node: self.name.as_str().into(),
                    inc: self.client.incarnation(),
                    msg: message_name((of.id.client.0, of.id.incarnation, of.id.number)).into(),
                }]);
            }
            answered = self.client.poll();
        }
        Ok(())
    }
}
