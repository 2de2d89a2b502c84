//! Posting of the changes that a step has made in local rows: one list per link, with contents
//! before their counts.
//!
//! The control line of a row has independent cells, so it is sent as content: a reader that sees a
//! newer value of one cell than of another is not misled. Counts that cover slots are guards, and
//! so is a request for a peer's log. If the request were content, a line posted earlier could
//! reveal it before later writes to that log have landed, and these writes would then land under
//! the new grant.
//!
//! Requirements: TRM-3, TRM-6.

use super::common::{ChildState, Common};
use super::feed::Ring;
use super::link::{LinkId, Memory};
use super::pass_on::Served;
use super::posting::Posting;
use super::progress::Halt;
use super::shape::{Shape, peer_row, taken_row};
use super::step::StepContext;
use crate::fabric::{Area, Fabric, Region};
use crate::layout::CACHE_LINE;
use crate::memory::RowWriter;

/// Number of cells in one guard.
const GUARD_CELLS: usize = 3;

impl Common<'_> {
    /// Posts the messages stored for replicas of children, and the counts of decided messages.
    pub(super) fn post_children<F: Fabric, M: Memory>(
        &mut self,
        served: Served,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let mut child = 0_usize;
        // bound: the children
        while let Some(ChildState { shape, .. }) = self.children.get(child).copied() {
            // bound: the replicas of a child
            for link in self.links.child(child) {
                let Some((row, theirs)) = step.memory.link(link).filter(|_| self.is_due(link))
                else {
                    continue;
                };
                if served.includes(theirs)? {
                    self.post_passed(link, row, &shape, step.fabric)?;
                }
            }
            child = child.saturating_add(1);
        }
        Ok(())
    }

    /// Posts replies to clients, and the number of messages taken from each client.
    pub(super) fn post_clients<F: Fabric, M: Memory>(
        &mut self,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: the clients
        for client in self.links.clients() {
            let link = self.links.client(client);
            if let Some((row, _)) = step.memory.link(link).filter(|_| self.is_due(link)) {
                self.post_replies(link, row, step.fabric)?;
            }
        }
        Ok(())
    }

    /// Posts the control lines towards peers and the parent.
    pub(super) fn post_lines<F: Fabric, M: Memory>(
        &mut self,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: the replicas of the parent and of the group
        for link in self.links.parents().chain(self.links.peers()) {
            if self.is_due(link) && step.memory.link(link).is_some() {
                self.post_line(link, step.fabric)?;
            }
        }
        Ok(())
    }

    /// Returns whether something in a link's row must be posted and can be.
    fn is_due(&self, link: LinkId) -> bool {
        let state = self.state.at(link);
        let has_slots = state.passing.posted < state.passing.stored;
        state.attached.is_ready() && (state.attached.dirty || has_slots)
    }

    /// Posts the messages stored for a child's replica.
    fn post_passed<F: Fabric>(
        &mut self,
        link: LinkId,
        row: RowWriter<'_>,
        shape: &Shape,
        fabric: &mut F,
    ) -> Result<(), Halt> {
        let ring = Ring::of_parent(shape);
        // bound: a window
        for _ in 0..shape.parent_window() {
            let state = self.state.at(link);
            let (attached, passing) = (state.attached, state.passing);
            let has_slots = passing.posted < passing.stored;
            if !has_slots && !attached.dirty {
                break;
            }
            let mut posting = Posting::new(&self.capabilities);
            let mut to = passing.posted;
            if has_slots {
                to = ring.post(row, &mut posting, passing.posted, passing.stored)?;
            } else {
                ring.post_count(&mut posting);
            }
            if fabric.post(attached.view, attached.peer, posting.writes(), None).is_err() {
                break;
            }
            self.count_list(&posting);
            self.state.at_mut(link).passing.posted = to;
            self.clean(link)?;
        }
        Ok(())
    }

    /// Posts the replies to a client that have changed, in one list if they have no answers.
    fn post_replies<F: Fabric>(
        &mut self,
        link: LinkId,
        row: RowWriter<'_>,
        fabric: &mut F,
    ) -> Result<(), Halt> {
        // bound: a window, because each list has one reply at least
        for _ in 0..self.shape.client_window() {
            let state = self.state.at(link);
            let (attached, replies) = (state.attached, state.replies);
            let mut posting = Posting::new(&self.capabilities);
            let left = match replies {
                None => None,
                Some((from, to)) => {
                    let next = self.add_replies(from, to, row, &mut posting)?;
                    Some((next, to)).filter(|_| next < to)
                }
            };
            posting.content(own(0), own(0), CACHE_LINE);
            if fabric.post(attached.view, attached.peer, posting.writes(), None).is_err() {
                break;
            }
            self.count_list(&posting);
            self.state.at_mut(link).replies = left;
            if left.is_none() {
                return self.clean(link);
            }
        }
        Ok(())
    }

    /// Adds replies to a list, with their answers. A reply with an answer is a guard, because a
    /// reply that was read late could land before its answer. Returns the first reply that has no
    /// room.
    fn add_replies(
        &self,
        from: usize,
        to: usize,
        row: RowWriter<'_>,
        posting: &mut Posting,
    ) -> Result<usize, Halt> {
        let cell = |index: usize| own(taken_row::REPLIES.saturating_add(index.saturating_mul(8)));
        if self.shape.answer_cells() == 0 {
            posting.content(cell(from), cell(from), to.saturating_sub(from).saturating_mul(8));
            return Ok(to);
        }
        let mut next = from;
        // bound: a window
        while next < to {
            // There must also be room for the guards, and for the control line.
            let guards = next.saturating_sub(from).saturating_add(1).div_ceil(GUARD_CELLS);
            if posting.room() < guards.saturating_add(2) {
                break;
            }
            let at = own(self.shape.answer(next));
            let length = row.reader().cell(at.offset)?.load();
            let bytes = self.shape.answer_bytes(length);
            posting.content(at, at, bytes);
            next = next.saturating_add(1);
        }
        let mut guarded = from;
        // bound: the writes of a list
        while guarded < next {
            let cells = next.saturating_sub(guarded).min(GUARD_CELLS);
            posting.guard(cell(guarded), cell(guarded), cells.saturating_mul(8));
            guarded = guarded.saturating_add(cells);
        }
        Ok(next)
    }

    fn post_line<F: Fabric>(&mut self, link: LinkId, fabric: &mut F) -> Result<(), Halt> {
        let state = self.state.at(link);
        let (attached, asks, reports) = (state.attached, state.asks, state.reports);
        let mut posting = Posting::new(&self.capabilities);
        posting.content(own(0), own(0), CACHE_LINE);
        if asks {
            let request = own(peer_row::REQUEST);
            posting.guard(request, request, 8);
        }
        if reports {
            // The term of a report follows the report: see `acknowledge`.
            let counts = own(peer_row::SEEN);
            posting.guard(counts, counts, 24);
            let term = own(peer_row::REPORTS_FOR);
            posting.guard(term, term, 16);
        }
        if fabric.post(attached.view, attached.peer, posting.writes(), None).is_ok() {
            self.count_list(&posting);
            let state = self.state.at_mut(link);
            (state.asks, state.reports) = (false, false);
            self.clean(link)?;
        }
        Ok(())
    }

    fn clean(&mut self, link: LinkId) -> Result<(), Halt> {
        let state = self.state.at_mut(link);
        state.attached.dirty = false;
        state.count_told = state.count;
        Ok(())
    }

    pub(super) fn count_list(&mut self, posting: &Posting) {
        let writes = u32::try_from(posting.writes().len()).unwrap_or(u32::MAX);
        self.progress.lists = self.progress.lists.saturating_add(1);
        self.progress.writes = self.progress.writes.saturating_add(writes);
    }
}

/// Returns an area in the local row.
const fn own(offset: usize) -> Area {
    Area { region: Region::ROW, offset }
}
