//! Posting: sends in the order of steps, receives a few steps ahead, and a notice after each
//! receive (RDM-4).

use super::cells::Name;
use super::group::{BlockGroup, Progress, Stage};
use super::lengths::blocks_min;
use super::message::MovingMessage;
use super::setup::{FIRST, token};
use crate::fabric::{Area, Blocks, FabricError, Token};
use crate::ids::{Rank, Step};
use crate::rdmc::Hop;

/// Maximum number of steps of a schedule that a call examines, so that idle steps do not make the
/// call long.
const STEPS_MAX: u32 = 64;

impl BlockGroup<'_> {
    /// Sends blocks that have arrived here and that a peer awaits, up to the window.
    pub(super) fn post_sends<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) {
        // bound: STEPS_MAX
        for _ in 0..STEPS_MAX {
            let Stage::Moving(message) = self.stage else { return };
            let (step, which) = message.send;
            if step >= message.end || self.in_flight >= self.setup.window.sends {
                return;
            }
            let hop = message.schedule.sent(self.own, step).get(which).copied().flatten();
            if let Some(hop) = hop
                && !self.send_block(fabric, &message, step, hop, progress)
            {
                return;
            }
            let Stage::Moving(message) = &mut self.stage else { return };
            message.send = if which == 0 { (step, 1) } else { (step.next(), 0) };
        }
        progress.has_more = true;
    }

    /// Sends a block, and returns whether it was posted.
    fn send_block<F: Blocks>(
        &mut self,
        fabric: &mut F,
        message: &MovingMessage,
        step: Step,
        hop: Hop,
        progress: &mut Progress,
    ) -> bool {
        let Some(peer) = self.rank_of(hop.peer) else { return false };
        let is_here = self.own == Rank::ZERO || self.here.has(hop.block);
        let is_first = message.schedule.is_first(hop.peer, step);
        if !is_here || !self.is_ready(peer, step, is_first) {
            return false;
        }
        let length = message.lengths.of_block(hop.block);
        let source = if message.staged.is_some_and(|staged| staged.block == hop.block) {
            self.setup.staging
        } else if length == 0 {
            // The block's position may be beyond the end of the message.
            message.area
        } else {
            message.place_of(hop.block, self.setup.block_bytes)
        };
        let number = if is_first { message.blocks() } else { hop.block.0 };
        match fabric.send(self.way(peer), source, length, number, token(step)) {
            Ok(()) => {
                self.in_flight = self.in_flight.saturating_add(1);
                progress.posts = progress.posts.saturating_add(1);
                true
            }
            Err(error) => {
                self.refused(peer, error.kind(), progress);
                false
            }
        }
    }

    /// Returns whether a peer has published that it is ready for its block of this step.
    fn is_ready(&self, peer: Rank, step: Step, is_first: bool) -> bool {
        let ready = self.cell_of(peer, Name::Ready);
        ready >= self.count_of(step) || (is_first && ready >= self.count_of_first())
    }

    /// Posts receives up to the window, and one notice per receive.
    pub(super) fn post_receives<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) {
        // bound: STEPS_MAX
        for _ in 0..STEPS_MAX {
            if !self.post_owed(fabric, progress) || self.awaited >= self.setup.window.receives {
                return;
            }
            match self.stage {
                Stage::Between { asked: false } => {
                    if !self.ask_for_first(fabric, progress) {
                        return;
                    }
                }
                Stage::Moving(message) if message.receive < message.end => {
                    let step = message.receive;
                    if let Some(hop) = message.schedule.received(self.own, step)
                        && !self.ask_for_block(fabric, &message, step, hop, progress)
                    {
                        return;
                    }
                    let Stage::Moving(message) = &mut self.stage else { return };
                    message.receive = step.next();
                }
                Stage::Between { .. } | Stage::Moving(_) | Stage::Over(_) => return,
            }
        }
        progress.has_more = true;
    }

    /// Posts the receive for the first block of a message that is not known yet. The root waits for
    /// no message.
    fn ask_for_first<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) -> bool {
        let first = self
            .schedule(blocks_min(self.setup.algorithm))
            .and_then(|schedule| schedule.first_received(self.own));
        let Some(peer) = first.and_then(|(_, hop)| self.rank_of(hop.peer)) else { return false };
        let asked = self.ask(
            fabric,
            peer,
            self.setup.staging,
            token(FIRST),
            self.count_of_first(),
            progress,
        );
        if asked {
            self.stage = Stage::Between { asked };
        }
        asked
    }

    fn ask_for_block<F: Blocks>(
        &mut self,
        fabric: &mut F,
        message: &MovingMessage,
        step: Step,
        hop: Hop,
        progress: &mut Progress,
    ) -> bool {
        let Some(peer) = self.rank_of(hop.peer) else { return false };
        let into = message.place_of(hop.block, self.setup.block_bytes);
        self.ask(fabric, peer, into, token(step), self.count_of(step), progress)
    }

    /// Posts a receive, publishes it in the local row, and records the notice owed to the peer.
    fn ask<F: Blocks>(
        &mut self,
        fabric: &mut F,
        peer: Rank,
        into: Area,
        token: Token,
        count: u64,
        progress: &mut Progress,
    ) -> bool {
        let length = self.setup.block_bytes;
        match fabric.post_receive(self.way(peer), into, length, token) {
            Ok(()) => {
                self.awaited = self.awaited.saturating_add(1);
                progress.posts = progress.posts.saturating_add(1);
                self.cells.publish(self.memory.row, Name::Ready, count);
                self.owed = Some(peer);
                true
            }
            Err(error) => {
                self.refused(peer, error.kind(), progress);
                false
            }
        }
    }

    /// Posts the notice to the peer whose block may now come. Returns false if this must be retried
    /// before anything else.
    fn post_owed<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) -> bool {
        let Some(peer) = self.owed else { return true };
        match fabric.post(self.setup.view, peer, &[self.cells.write(Name::Ready)], None) {
            Ok(()) => {
                self.owed = None;
                progress.posts = progress.posts.saturating_add(1);
                true
            }
            Err(error) => {
                self.refused(peer, error.kind(), progress);
                false
            }
        }
    }

    /// Returns the value of `ready` once all receives up to this step of the message have been
    /// posted.
    fn count_of(&self, step: Step) -> u64 {
        self.count_of_first().saturating_add(step.0).saturating_add(1)
    }

    /// Returns the value of `ready` once only the first receive has been posted, whichever step
    /// that receive belongs to.
    fn count_of_first(&self) -> u64 {
        self.base.saturating_add(1)
    }
}
