//! The last stage of a campaign in an overlay whose entries refer to payloads: a leader must have
//! the body of each reference in its log.
//!
//! A candidate takes the bodies that clients sent to it. For the other bodies it asks, in turn, the
//! voters whose logs it has read: it reads the name of the voter's body for that log index, then
//! the body, and then the name once more. An owner removes the name before it replaces a body. Each
//! read is posted once the previous one has arrived, because reads may overtake each other.
//!
//! # Why a reference without a body is removed
//! If a reference was decided, a quorum had reported its body to the leader that decided it. One
//! replica of that quorum is among the voters whose logs were read, and had granted its log to this
//! candidate before the read; it had not reported to an earlier leader any body that it obtained
//! after that grant. It keeps the body until its log has wrapped around, and by then it has
//! delivered the entry, as its counts show. So if none of the voters has the body and none has
//! delivered the entry, neither the entry nor anything after it was decided, and the log is cut
//! below the entry. If a voter has delivered the entry, this replica is behind and needs a
//! snapshot.
//!
//! Requirement: TRM-9.

use super::common::Common;
use super::feed::whole_cells;
use super::link::{LinkId, Memory, rank_of};
use super::log::log_area;
use super::progress::Halt;
use super::role::{Asked, BodyPart, Campaign, Completing, Role, bit};
use super::shape::NAME_BYTES;
use super::step::StepContext;
use super::token::{Ticket, Work};
use crate::fabric::{Fabric, Permissions};

/// The result of examining one log index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    On,
    Wait,
    /// A voter has delivered an entry whose body no voter has, so this replica is behind.
    Behind,
}

impl Completing {
    const fn goes_on(&mut self) -> Next {
        self.place = self.place.saturating_add(1);
        self.left = self.voters;
        self.asked = None;
        Next::On
    }
}

impl Common<'_> {
    /// Begins to complete the bodies. The local log already has everything that can have been
    /// decided, up to `end`.
    pub(super) fn begin_completing<F: Fabric + Permissions, M: Memory>(
        &mut self,
        end: u64,
        decided: u64,
        voters: u64,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<Role, Halt> {
        if !self.shape.has_references() {
            return self.lead(end, decided, step);
        }
        let voters = voters & !bit(self.id.rank);
        let mut known = decided.max(self.delivered);
        // bound: the replicas of the group
        for link in self.links.peers().filter(|link| voters & bit(rank_of(*link)) != 0) {
            known = known.max(self.delivered_by(link, step.memory)?);
        }
        let place = end.saturating_sub(u64::from(self.shape.entries()));
        let left = voters;
        let completing = Completing { place, end, decided, known, voters, left, asked: None };
        self.complete(completing, step)
    }

    /// Continues until all bodies are here, and then leads.
    pub(super) fn complete<F: Fabric + Permissions, M: Memory>(
        &mut self,
        mut completing: Completing,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<Role, Halt> {
        // bound: each log index once, plus a read that has arrived
        for _ in 0..self.shape.entries().saturating_add(2) {
            if self.reads_under_way() > 0 {
                break;
            }
            if completing.place >= completing.end {
                return self.lead(completing.end, completing.decided, step);
            }
            let next = match completing.asked {
                None => self.search(&mut completing, step)?,
                Some(asked) => self.read(&mut completing, asked, step)?,
            };
            match next {
                Next::On => {}
                Next::Wait => break,
                Next::Behind => return Ok(Role::behind()),
            }
        }
        Ok(Role::Candidate(Campaign::Completing(completing)))
    }

    /// Looks for the body of an entry in the local memory, and then at the next voter.
    fn search<F: Fabric + Permissions, M: Memory>(
        &mut self,
        completing: &mut Completing,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<Next, Halt> {
        let place = completing.place;
        let lacking = match step.log.load(place)? {
            None => None,
            Some(entry) => self.lacking(place, &entry, step)?,
        };
        let Some(message) = lacking else { return Ok(completing.goes_on()) };
        // bound: the replicas of the group
        for link in self.links.peers() {
            if completing.left & bit(rank_of(link)) == 0 {
                continue;
            }
            if self.read_of(link, self.shape.body_name(place), true, NAME_BYTES, step.fabric) {
                completing.left &= !bit(rank_of(link));
                completing.asked = Some(Asked { link, message, part: BodyPart::Name });
            }
            return Ok(Next::Wait);
        }
        if place >= completing.known {
            step.log.set_tail(place)?;
            let given_up = u32::try_from(completing.end.saturating_sub(place)).unwrap_or(u32::MAX);
            self.progress.given_up = self.progress.given_up.saturating_add(given_up);
            completing.end = place;
            return Ok(Next::On);
        }
        if place < self.delivered {
            return Ok(completing.goes_on());
        }
        Ok(Next::Behind)
    }

    /// Continues with what was read from a voter.
    fn read<F: Fabric + Permissions, M>(
        &mut self,
        completing: &mut Completing,
        asked: Asked,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<Next, Halt> {
        let Asked { link, message, part } = asked;
        let place = completing.place;
        if part != BodyPart::Body && !step.log.is_asked(place, message.id)? {
            completing.asked = None;
            return Ok(Next::On);
        }
        let is_posted = match part {
            BodyPart::Name => {
                step.log.forget_body(place)?;
                let bytes = whole_cells(message.length);
                self.read_of(link, self.shape.body(place), false, bytes, step.fabric)
            }
            BodyPart::Body => {
                self.read_of(link, self.shape.body_name(place), true, NAME_BYTES, step.fabric)
            }
            BodyPart::NameAfter => {
                step.log.name_body(place, message.id)?;
                self.progress.fetched = self.progress.fetched.saturating_add(1);
                return Ok(completing.goes_on());
            }
        };
        if is_posted {
            let next = if part == BodyPart::Name { BodyPart::Body } else { BodyPart::NameAfter };
            completing.asked = Some(Asked { part: next, ..asked });
        }
        Ok(Next::Wait)
    }

    /// Reads a part of a peer's log, either to the same offset in the local log or as a name.
    /// Returns false if the read was not posted.
    fn read_of<F: Fabric + Permissions>(
        &mut self,
        link: LinkId,
        offset: usize,
        is_name: bool,
        bytes: usize,
        fabric: &mut F,
    ) -> bool {
        let attached = self.state.at(link).attached;
        let (work, campaign) = (Work::CopyPayload, self.campaigns.number);
        let token = Ticket { work, link, campaign, sequence: 0 }.token();
        let into = log_area(if is_name { self.shape.asked_name() } else { offset });
        let from = log_area(offset);
        let is_posted = fabric.read(attached.view, attached.peer, from, into, bytes, token).is_ok();
        if is_posted {
            self.campaigns.reads = Some((link, self.reads_under_way().saturating_add(1)));
        }
        is_posted
    }
}
