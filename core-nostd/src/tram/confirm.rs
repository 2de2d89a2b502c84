//! Confirmation of messages that the parent passed on early, after the parent has decided them.
//!
//! A parent's leader passes a message on while its own group replicates it. The child's leader also
//! replicates it at once, so both groups do at the same time what they would otherwise do in turn.
//! But the message may be lost with the parent's leader, and another message may get its position.
//! A child therefore decides an entry from its parent only once the parent has decided that entry:
//!
//! - The parent's leader publishes how many positions it has decided. The entry is confirmed if the
//!   slot of its position names the same message.
//! - The parent's leader also publishes how many positions it has seen decided by this child. A
//!   child's leader whose predecessor had decided an entry learns of the decision from this count,
//!   because the parent may no longer have the entry. The count is read as the leader begins: its
//!   log then contains everything that its predecessors have decided. Later it may have risen
//!   because of a successor, which may have put another message at that position. A leader that
//!   sees it rise above an entry that is still open campaigns again.
//! - If another leader had already begun when the count was read, with a later timestamp, this one
//!   decides nothing: a quorum had granted its logs to the other before this one put its stamp on
//!   any log.
//! - If the slot of a decided position names another message, neither the entry nor anything after
//!   it was decided. The child's leader campaigns again, and its log is cut below that entry.
//!
//! - A parent's leader that dies may have been the only replica with a message that it passed on.
//!   If nothing else took that position, the entry and everything after it would remain undecided.
//!   So each new leader first orders a null, which takes a position for each child. After a null, a
//!   child takes early messages only from the leader of that null, because a deposed leader may
//!   have assigned further positions.
//!
//! A slot is never stored twice with different messages for one position. A leader that would have
//! to do so, because it has led before, gives up the view (see `pass_on`).
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

/// The parent's statement about an entry, from the parent's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmation {
    Confirmed,
    Open,
    Contradicted,
    /// The group has decided the position since the leader began, perhaps with another message.
    SettledSince,
}

impl Common<'_> {
    /// Returns the log index, from `from` to `to`, up to which everything from the parent is
    /// confirmed.
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
            match self.confirmation(place, leader.settled, step)? {
                Confirmation::Confirmed => place = place.saturating_add(1),
                Confirmation::Open => break,
                Confirmation::Contradicted | Confirmation::SettledSince => {
                    leader.is_contradicted = true;
                    break;
                }
            }
        }
        Ok(place)
    }

    /// Returns the end of the local log, excluding the entries that the parent has replaced and
    /// everything after them.
    pub(super) fn uncontradicted<F, M: Memory>(
        &self,
        tail: u64,
        settled: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<u64, Halt> {
        let mut place = self.delivered;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= tail {
                break;
            }
            if self.confirmation(place, settled, step)? == Confirmation::Contradicted {
                return Ok(place);
            }
            place = place.saturating_add(1);
        }
        Ok(tail)
    }

    /// Returns the number of positions that this group has decided, as far as the parent's replicas
    /// publish it.
    pub(super) fn settled<M: Memory>(&self, memory: &M) -> Result<u64, Halt> {
        let mut settled = 0;
        // bound: the replicas of the parent
        for link in self.links.parents() {
            if let Some((_, row)) = memory.link(link).filter(|_| self.is_ready(link)) {
                settled = settled.max(row.cell(feed_row::SETTLED)?.load());
            }
        }
        Ok(settled)
    }

    fn confirmation<F, M: Memory>(
        &self,
        place: u64,
        settled: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<Confirmation, Halt> {
        let Some(entry) = step.log.load(place)? else { return Ok(Confirmation::Open) };
        let Content::Message(message) = entry.content else { return Ok(Confirmation::Confirmed) };
        if message.source != Source::Parent || settled > message.ordinal.0 {
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
            // A slot whose count has not arrived may be incomplete.
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
        let is_settled = self.settled(memory)? > position.0;
        Ok(if is_settled { Confirmation::SettledSince } else { Confirmation::Open })
    }
}
