//! What the parent has decided of what it passed on early.
//!
//! A parent's leader passes a message on while its own group replicates it. The child's leader
//! replicates it at once too, and so both groups do at the same time what would else come one after
//! the other. But the message may be lost with the parent's leader, and another have its position.
//! So a child decides an entry of its parent's only once the parent has decided it:
//!
//! - The parent's leader shows how many positions it has decided. The entry is confirmed if the
//!   slot of its position names the same message.
//! - It also shows how many positions it has seen decided by this child. A child's leader whose
//!   predecessor has decided an entry learns it from there, once the slot is used again: its log
//!   has one entry for each position, and holds all that was decided.
//! - If a decided position's slot names another message, the entry was never decided, nor was
//!   anything behind it. The leader campaigns anew, and its log ends below that entry.
//!
//! - A parent's leader that dies may have been the only one to have a message that it passed on.
//!   If nothing else took that position, the entry would stay open, and all behind it. So each new
//!   leader first orders a null, which takes a position for each child. A child takes early
//!   messages behind a null from the leader of that null alone: a deposed one may have given
//!   further positions away.
//!
//! A slot is never stored twice with different messages for one position: a leader that would have
//! to, since it has led before, gives up the view (see `pass_on`).
//!
//! Requirement: TRM-1.

use super::common::Common;
use super::entry::{Content, Message, Source};
use super::feed::Ring;
use super::link::Memory;
use super::progress::Halt;
use super::role::Leader;
use super::shape::feed_row;
use super::step::StepContext;
use crate::ids::Ordinal;

/// What the parent's rows say of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmation {
    Confirmed,
    Open,
    Contradicted,
}

impl Common<'_> {
    /// Up to which place, of those between two, all that came from the parent is confirmed.
    pub(super) fn confirmed<F, M: Memory>(
        &mut self,
        leader: &mut Leader,
        from: u64,
        to: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<u64, Halt> {
        if self.overlay.parent(self.id.group).is_none() {
            return Ok(to);
        }
        let mut place = from;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= to {
                break;
            }
            match self.confirmation(place, step)? {
                Confirmation::Confirmed => place = place.saturating_add(1),
                Confirmation::Open => break,
                Confirmation::Contradicted => {
                    leader.is_contradicted = true;
                    break;
                }
            }
        }
        Ok(place)
    }

    /// Where the own log ends if what the parent has replaced goes, with all behind it.
    pub(super) fn uncontradicted<F, M: Memory>(
        &self,
        tail: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<u64, Halt> {
        let mut place = self.delivered;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= tail {
                break;
            }
            if self.confirmation(place, step)? == Confirmation::Contradicted {
                return Ok(place);
            }
            place = place.saturating_add(1);
        }
        Ok(tail)
    }

    fn confirmation<F, M: Memory>(
        &self,
        place: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<Confirmation, Halt> {
        let Some(entry) = step.log.load(place)? else { return Ok(Confirmation::Open) };
        let Content::Message(message) = entry.content else { return Ok(Confirmation::Confirmed) };
        if message.source != Source::Parent {
            return Ok(Confirmation::Confirmed);
        }
        self.confirmation_of(&message, step.memory)
    }

    fn confirmation_of<M: Memory>(
        &self,
        message: &Message,
        memory: &M,
    ) -> Result<Confirmation, Halt> {
        let position: Ordinal = message.ordinal;
        let ring = Ring::of_parent(&self.shape);
        // bound: the replicas of the parent
        for link in self.links.parents() {
            let Some((_, row)) = memory.link(link).filter(|_| self.is_ready(link)) else {
                continue;
            };
            if row.cell(feed_row::SETTLED)?.load() > position.0 {
                return Ok(Confirmation::Confirmed);
            }
            // A slot whose count has not come may be half there.
            let confirmed = row.cell(feed_row::CONFIRMED)?.load();
            let written = row.cell(feed_row::WRITTEN)?.load();
            if confirmed.min(written) <= position.0 {
                continue;
            }
            match ring.name(row, position)? {
                None => {}
                Some(name) if name == message.id => return Ok(Confirmation::Confirmed),
                Some(_) => return Ok(Confirmation::Contradicted),
            }
        }
        Ok(Confirmation::Open)
    }
}
