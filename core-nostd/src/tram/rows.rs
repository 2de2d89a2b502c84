//! What a step has changed in own rows, as posts: one list a link, contents before their counts.
//!
//! The control line of a row is a line of cells that each stand for themselves. So it travels as
//! content: whoever reads a newer value of one cell than of another is told nothing wrong. Counts
//! that speak for slots are guards.

use super::feed::Ring;
use super::link::{LinkId, Memory, Role};
use super::posting::Posting;
use super::progress::Halt;
use super::replica::Replica;
use super::shape::Shape;
use crate::fabric::{Area, Fabric, Region};
use crate::layout::CACHE_LINE;
use crate::memory::RowWriter;

impl Replica<'_> {
    /// Posts what changed in each own row.
    pub(super) fn post_rows<F: Fabric, M: Memory>(
        &mut self,
        fabric: &mut F,
        memory: &M,
    ) -> Result<(), Halt> {
        for index in 0..self.links.len() {
            let Ok(link) = u16::try_from(index).map(LinkId) else { break };
            let Some(state) = self.state.get(link.index()) else { break };
            let is_due = state.attached.dirty || state.passing.posted < state.passing.stored;
            if !is_due || !state.attached.is_ready() {
                continue;
            }
            let Some((row, _)) = memory.link(link) else { continue };
            match self.links.role(link) {
                Some(Role::Child { child, .. }) => {
                    let child = self.children.get(usize::from(child));
                    if let Some(shape) = child.map(|child| child.shape) {
                        self.post_passed(link, row, &shape, fabric)?;
                    }
                }
                Some(Role::Client(_)) => self.post_replies(link, fabric),
                Some(_) => {
                    self.post_line(link, fabric);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Posts what was stored for a child's replica.
    fn post_passed<F: Fabric>(
        &mut self,
        link: LinkId,
        row: RowWriter<'_>,
        shape: &Shape,
        fabric: &mut F,
    ) -> Result<(), Halt> {
        let ring = Ring::of_parent(shape);
        for _ in 0..shape.parent_window() {
            let Some(state) = self.state.get(link.index()) else { break };
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
            if let Some(state) = self.state.get_mut(link.index()) {
                state.passing.posted = to;
                state.attached.dirty = false;
            }
        }
        Ok(())
    }

    fn post_replies<F: Fabric>(&mut self, link: LinkId, fabric: &mut F) {
        let Some(state) = self.state.get(link.index()) else { return };
        let (attached, replies) = (state.attached, state.replies);
        let mut posting = Posting::new(&self.capabilities);
        if let Some((from, to)) = replies {
            let area = own(from);
            posting.content(area, area, to.saturating_sub(from));
        }
        posting.content(own(0), own(0), CACHE_LINE);
        if fabric.post(attached.view, attached.peer, posting.writes(), None).is_ok() {
            self.count_list(&posting);
            if let Some(state) = self.state.get_mut(link.index()) {
                state.attached.dirty = false;
                state.replies = None;
            }
        }
    }

    fn post_line<F: Fabric>(&mut self, link: LinkId, fabric: &mut F) {
        let Some(attached) = self.state.get(link.index()).map(|state| state.attached) else {
            return;
        };
        let mut posting = Posting::new(&self.capabilities);
        posting.content(own(0), own(0), CACHE_LINE);
        if fabric.post(attached.view, attached.peer, posting.writes(), None).is_ok() {
            self.count_list(&posting);
            self.clean(link);
        }
    }

    fn clean(&mut self, link: LinkId) {
        if let Some(state) = self.state.get_mut(link.index()) {
            state.attached.dirty = false;
        }
    }

    fn count_list(&mut self, posting: &Posting) {
        let writes = u32::try_from(posting.writes().len()).unwrap_or(u32::MAX);
        self.progress.lists = self.progress.lists.saturating_add(1);
        self.progress.writes = self.progress.writes.saturating_add(writes);
    }
}

/// A place in a row.
const fn own(offset: usize) -> Area {
    Area { region: Region::ROW, offset }
}
