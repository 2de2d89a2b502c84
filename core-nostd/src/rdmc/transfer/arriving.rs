//! Arriving blocks: each is compared with the schedule's expectation.
//!
//! Requirement: RDM-4.

use super::ending::Close;
use super::failure::Cause;
use super::group::{BlockGroup, Stage};
use super::lengths::{Lengths, blocks_min};
use super::message::{MessageMemory, MovingMessage};
use super::setup::{FIRST, step_of};
use crate::fabric::{BlockEvent, LossCause};
use crate::ids::{Rank, Step, index_from_u32};

/// A block, as reported by the fabric.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    peer: Rank,
    step: Step,
    immediate: u32,
    length: usize,
}

/// Reason why an arrival ends the group.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// No correct sender sends this block.
    Misbehaved,
    /// The application has no room.
    NoMemory,
}

impl BlockGroup<'_> {
    /// Handles a fabric event if it belongs to this group, and returns whether it does.
    pub fn take(&mut self, event: &BlockEvent, memory: &mut impl MessageMemory) -> bool {
        let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = *event;
        if way.view != self.setup.view || way.channel != self.setup.channel {
            return false;
        }
        match *event {
            BlockEvent::Sent { .. } => self.in_flight = self.in_flight.saturating_sub(1),
            BlockEvent::Received { token, immediate, length, .. } => {
                self.awaited = self.awaited.saturating_sub(1);
                self.arrive(
                    Arrival { peer: way.peer, step: step_of(token), immediate, length },
                    memory,
                );
            }
        }
        true
    }

    fn arrive(&mut self, arrival: Arrival, memory: &mut impl MessageMemory) {
        let taken = match self.stage {
            Stage::Between { .. } => self.begin(arrival, memory),
            Stage::Moving(message) => self.add(message, arrival),
            Stage::Over(_) => Ok(()),
        };
        match taken {
            Ok(()) => {}
            Err(Fault::Misbehaved) => self.fail(arrival.peer, Cause::Lost(LossCause::Misbehaved)),
            Err(Fault::NoMemory) => self.fail(self.memory.own, Cause::NoMemory),
        }
    }

    /// Handles the first block of a message; its immediate value is the number of blocks.
    fn begin(&mut self, arrival: Arrival, memory: &mut impl MessageMemory) -> Result<(), Fault> {
        let Arrival { peer, step, immediate: blocks, length } = arrival;
        let fewest = blocks_min(self.setup.algorithm);
        // A member that has confirmed the close has all messages.
        if self.close == Close::Confirmed {
            return Err(Fault::Misbehaved);
        }
        if step != FIRST || blocks < fewest || blocks > self.here.blocks_max() {
            return Err(Fault::Misbehaved);
        }
        let schedule = self.schedule(blocks).ok_or(Fault::Misbehaved)?;
        let (first, hop) = schedule.first_received(self.own).ok_or(Fault::Misbehaved)?;
        if self.rank_of(hop.peer) != Some(peer) {
            return Err(Fault::Misbehaved);
        }
        let bytes =
            index_from_u32(blocks).checked_mul(self.setup.block_bytes).ok_or(Fault::NoMemory)?;
        let mut lengths = Lengths::unknown(blocks, self.setup.block_bytes, fewest);
        if !lengths.note(hop.block, length) {
            return Err(Fault::Misbehaved);
        }
        let area = memory.incoming(self.done, bytes).ok_or(Fault::NoMemory)?;
        area.offset.checked_add(bytes).ok_or(Fault::NoMemory)?;
        self.here.clear(blocks);
        self.here.add(hop.block);
        let message =
            MovingMessage::incoming(schedule, area, lengths, self.own, (first, hop.block));
        self.stage = Stage::Moving(message);
        Ok(())
    }

    /// Handles a later block; its immediate value is its index in the message.
    fn add(&mut self, mut message: MovingMessage, arrival: Arrival) -> Result<(), Fault> {
        let Arrival { peer, step, immediate, length } = arrival;
        let hop = message.schedule.received(self.own, step).ok_or(Fault::Misbehaved)?;
        let is_as_planned = self.rank_of(hop.peer) == Some(peer)
            && immediate == hop.block.0
            && message.lengths.note(hop.block, length);
        if !is_as_planned || !self.here.add(hop.block) {
            return Err(Fault::Misbehaved);
        }
        message.missing = message.missing.saturating_sub(1);
        self.stage = Stage::Moving(message);
        Ok(())
    }
}
