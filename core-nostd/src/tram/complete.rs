//! The last part of a campaign, where entries refer to payloads: a leader has the body of each
//! reference in its log.
//!
//! A candidate takes the bodies that clients gave it. For others it asks the voters whose logs it
//! has read, one after the other: it reads the name of what the voter keeps for that place, then
//! the body, and then the name once more. An owner takes the name away before it replaces a body.
//! Each read is posted once the one before is there, since reads may overtake each other.
//!
//! # Why a reference whose body nobody has goes
//! A decided reference was shown by a quorum to have its body, to the leader that decided it. One
//! of them is among the voters that were read, and it had granted its log to this candidate before:
//! what it came to have later it has not shown to a leader before. It keeps the body until its log
//! has gone around, and has delivered the entry then, as its counts show. So where none of the
//! voters has the body, the entry was never decided, and nothing behind it: the log ends below it.
//! Where a voter has delivered it, this replica is behind, and needs a snapshot.
//!
//! Requirement: TRM-9.

use super::bodies::NAME_BYTES;
use super::campaign::Campaign;
use super::entry::Message;
use super::feed::whole_cells;
use super::link::{LinkId, Memory};
use super::log::{Log, log_area};
use super::oracle::bit;
use super::progress::Halt;
use super::replica::{Leadership, Replica, rank_of};
use super::token::{Ticket, Work};
use crate::fabric::{Fabric, Permissions};

/// How far a candidate is with the bodies of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completing {
    place: u64,
    end: u64,
    /// How much is decided, as the control lines say, and as any voter's counts say.
    decided: u64,
    known: u64,
    /// The voters that are asked: all, and those that were not yet for this place. A bit a rank.
    voters: u64,
    left: u64,
    /// What is being read.
    asked: Option<Asked>,
}

/// What is being read of a voter, for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    link: LinkId,
    message: Message,
    part: Part,
}

/// A part of what a voter keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Name,
    Body,
    /// The name once more.
    NameAfter,
}

/// What follows from a look at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    On,
    Wait,
    Over,
}

impl Completing {
    const fn goes_on(&mut self) -> Next {
        self.place = self.place.saturating_add(1);
        self.left = self.voters;
        self.asked = None;
        Next::On
    }
}

impl Replica<'_> {
    /// The own log has all that can have been decided, up to an end. Now the bodies.
    pub(super) fn begin_completing<F: Fabric + Permissions, M: Memory>(
        &mut self,
        end: u64,
        decided: u64,
        voters: u64,
        fabric: &mut F,
        log: Log<'_>,
        memory: &M,
    ) -> Result<(), Halt> {
        if !self.shape.has_references() {
            return self.lead(end, decided, log, memory);
        }
        let voters = voters & !bit(self.id.rank);
        let mut known = decided.max(self.delivered);
        // bound: the replicas of the group
        for link in self.links.peers().filter(|link| voters & bit(rank_of(*link)) != 0) {
            known = known.max(self.delivered_by(link, memory)?);
        }
        let place = end.saturating_sub(u64::from(self.shape.entries()));
        let left = voters;
        let completing = Completing { place, end, decided, known, voters, left, asked: None };
        self.complete(completing, fabric, log, memory)
    }

    /// Goes on to see to it that all bodies are here, and then leads.
    pub(super) fn complete<F: Fabric + Permissions, M: Memory>(
        &mut self,
        mut completing: Completing,
        fabric: &mut F,
        log: Log<'_>,
        memory: &M,
    ) -> Result<(), Halt> {
        // bound: each place once, and a read that came.
        for _ in 0..self.shape.entries().saturating_add(2) {
            if self.reads_under_way() > 0 {
                break;
            }
            if completing.place >= completing.end {
                return self.lead(completing.end, completing.decided, log, memory);
            }
            let next = match completing.asked {
                None => self.search(&mut completing, fabric, log, memory)?,
                Some(asked) => self.read(&mut completing, asked, fabric, log)?,
            };
            match next {
                Next::On => {}
                Next::Wait => break,
                Next::Over => return Ok(()),
            }
        }
        self.leadership = Leadership::Candidate(Campaign::Completing(completing));
        Ok(())
    }

    /// Looks for the body of a place here, and then at the next voter.
    fn search<F: Fabric + Permissions, M: Memory>(
        &mut self,
        completing: &mut Completing,
        fabric: &mut F,
        log: Log<'_>,
        memory: &M,
    ) -> Result<Next, Halt> {
        let place = completing.place;
        let lacking = match log.load(place)? {
            None => None,
            Some(entry) => self.lacking(place, &entry, log, memory)?,
        };
        let Some(message) = lacking else { return Ok(completing.goes_on()) };
        // bound: the replicas of the group
        for link in self.links.peers() {
            if completing.left & bit(rank_of(link)) == 0 {
                continue;
            }
            if self.read_of(link, self.shape.body_name(place), true, NAME_BYTES, fabric) {
                completing.left &= !bit(rank_of(link));
                completing.asked = Some(Asked { link, message, part: Part::Name });
            }
            return Ok(Next::Wait);
        }
        if place >= completing.known {
            log.set_tail(place)?;
            let given_up = u32::try_from(completing.end.saturating_sub(place)).unwrap_or(u32::MAX);
            self.progress.given_up = self.progress.given_up.saturating_add(given_up);
            completing.end = place;
            return Ok(Next::On);
        }
        if place < self.delivered {
            return Ok(completing.goes_on());
        }
        self.needs_snapshot = true;
        self.leadership = Leadership::Follower;
        Ok(Next::Over)
    }

    /// Goes on with what was read of a voter.
    fn read<F: Fabric + Permissions>(
        &mut self,
        completing: &mut Completing,
        asked: Asked,
        fabric: &mut F,
        log: Log<'_>,
    ) -> Result<Next, Halt> {
        let Asked { link, message, part } = asked;
        let place = completing.place;
        if part != Part::Body && !log.is_asked(place, message.id)? {
            completing.asked = None;
            return Ok(Next::On);
        }
        let is_posted = match part {
            Part::Name => {
                log.forget_body(place)?;
                let bytes = whole_cells(message.length);
                self.read_of(link, self.shape.body(place), false, bytes, fabric)
            }
            Part::Body => self.read_of(link, self.shape.body_name(place), true, NAME_BYTES, fabric),
            Part::NameAfter => {
                log.name_body(place, message.id)?;
                self.progress.fetched = self.progress.fetched.saturating_add(1);
                return Ok(completing.goes_on());
            }
        };
        if is_posted {
            let next = if part == Part::Name { Part::Body } else { Part::NameAfter };
            completing.asked = Some(Asked { part: next, ..asked });
        }
        Ok(Next::Wait)
    }

    /// Reads a part of a peer's log into the same place of the own one, or as a name. False if it
    /// was not posted.
    fn read_of<F: Fabric + Permissions>(
        &mut self,
        link: LinkId,
        offset: usize,
        is_name: bool,
        bytes: usize,
        fabric: &mut F,
    ) -> bool {
        let attached = self.state.at(link).attached;
        let (work, campaign) = (Work::CopyPayload, self.campaigns);
        let token = Ticket { work, link, campaign, sequence: 0 }.token();
        let into = log_area(if is_name { self.shape.asked_name() } else { offset });
        let from = log_area(offset);
        let is_posted = fabric.read(attached.view, attached.peer, from, into, bytes, token).is_ok();
        if is_posted {
            self.reads = Some((link, self.reads_under_way().saturating_add(1)));
        }
        is_posted
    }

    /// A voter is gone before it was asked for everything: the campaign is over.
    pub(super) fn stop_completing_without(&mut self, link: LinkId) {
        if let Leadership::Candidate(Campaign::Completing(completing)) = self.leadership
            && completing.voters & bit(rank_of(link)) != 0
        {
            self.leadership = Leadership::Follower;
        }
    }
}
