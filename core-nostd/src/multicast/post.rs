//! The data that each peer still lacks, as lists of writes (BAT-3; Spindle III-C).
//!
//! Links are sorted by peer, so the changes of several subgroups go to a peer in one list. If the
//! fabric does not accept a list now, its links stay as they were: the next step tries again, and
//! only that peer waits.
//!
//! The way a message and its counter travel depends on the fabric's promises (SMC-6):
//!
//! | promises | message | counter |
//! |---|---|---|
//! | address order and write order | a run of slots, counters included, in one write | in it |
//! | write order | its payload, a write of its own | a guard right behind |
//! | completions, with or without address order | as above, one list in flight a link | in it, or in the next list |
//!
//! Without order between writes a link has only one list in flight. Two writes of one cell are
//! therefore never in flight together, so the cell cannot shrink.

use super::state::{Link, Posted, SenderState, SubgroupState, Work};
use crate::fabric::{
    Capabilities, ErrorKind, Fabric, FabricError, Kind, Promises, Token, Write, WriteList,
};
use crate::ids::{Rank, ViewId, index_from_u32, u64_from_index};
use crate::layout::{Delivery, SLOT_HEADER};
use crate::smc::RingCursor;

/// The result of the post stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PostReport {
    /// Lists that the fabric accepted.
    pub(crate) lists: u32,
    /// Writes in them.
    pub(crate) writes: u32,
    /// At least one peer could not be served now.
    pub(crate) held_back: bool,
    /// Peer that the fabric refuses to write to.
    pub(crate) refused: Option<(Rank, ErrorKind)>,
}

/// The state of one subgroup that peers should see.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    /// Offset of the local ring and its next slot, if this node sends here.
    ring: Option<(usize, RingCursor)>,
    marker: u64,
    stride: usize,
    window: u32,
    control: usize,
    control_bytes: usize,
    control_kind: Kind,
    version: u64,
}

impl Shown {
    /// Returns the state of a subgroup and its senders.
    pub(crate) fn of(subgroup: &SubgroupState, senders: &[SenderState]) -> Self {
        let own = subgroup.own.as_ref();
        let state = own.and_then(|own| senders.get(own.rank.index()));
        Self {
            ring: state.map(|state| (state.ring.offset(), state.take)),
            marker: own.map_or(0, |own| own.marker),
            stride: subgroup.stride,
            window: subgroup.window,
            control: subgroup.control,
            control_bytes: subgroup.control_bytes,
            // Rounds used in silence guard the ring. Consumed counts guard nothing, and there may
            // be many.
            control_kind: match subgroup.delivery {
                Delivery::Ordered => Kind::Guard,
                Delivery::Unordered => Kind::Content,
            },
            version: subgroup.version,
        }
    }

    fn slot_offset(&self, ring: usize, slot: u32) -> usize {
        ring.saturating_add(self.stride.saturating_mul(index_from_u32(slot)))
    }
}

impl Work<'_, '_> {
    /// Returns the state that peers should see, if it is `wanted`.
    pub(crate) fn shown(&self, wanted: bool) -> Option<Shown> {
        if wanted { Some(Shown::of(self.subgroup, self.senders)) } else { None }
    }
}

/// The posts of one node during a step.
pub(crate) struct Poster<'p, F: Fabric> {
    view: ViewId,
    pub(crate) fabric: &'p mut F,
    capabilities: Capabilities,
    pub(crate) report: PostReport,
}

impl<'p, F: Fabric> Poster<'p, F> {
    /// Creates a poster that has posted nothing yet.
    pub(crate) fn new(view: ViewId, fabric: &'p mut F, capabilities: Capabilities) -> Self {
        Self { view, fabric, capabilities, report: PostReport::default() }
    }

    /// Brings links up to date as far as the fabric accepts: those of each subgroup for which
    /// `shown` returns the state that peers should see.
    pub(crate) fn post(&mut self, links: &mut [Link], shown: impl Fn(usize) -> Option<Shown>) {
        let mut list = WriteList::new();
        let mut first = 0_usize;
        let mut index = 0_usize;
        // bound: the links
        while let Some(link) = links.get_mut(index) {
            let peer = link.peer;
            let lacking = !link.lost;
            match shown(link.subgroup) {
                Some(shown) if lacking && link.posted.version != shown.version => {
                    if list.is_empty() {
                        first = index;
                    }
                    link.pending = link.posted;
                    first = self.serve(links, &mut list, first, index, &shown);
                }
                Some(_) | None => {}
            }
            index = index.saturating_add(1);
            let same_peer = links.get(index).is_some_and(|next| next.peer == peer);
            if !list.is_empty() && (!same_peer || self.serial()) {
                self.flush(links, &mut list, first, index);
            }
        }
    }

    /// Returns whether a link must wait for each list to complete.
    fn serial(&self) -> bool {
        !self.capabilities.promises.contains(Promises::WRITE_ORDER)
    }

    fn room(&self, list: &WriteList) -> usize {
        let most = self.capabilities.writes_max.min(list.capacity());
        most.saturating_sub(list.len())
    }

    /// Adds the data that one link lacks, and posts each list that becomes full. A window needs at
    /// most two writes per slot, which bounds the number of lists. Returns the first link of the
    /// list that is then under construction.
    fn serve(
        &mut self,
        links: &mut [Link],
        list: &mut WriteList,
        first: usize,
        index: usize,
        shown: &Shown,
    ) -> usize {
        let mut first = first;
        let bound = shown.window.saturating_mul(2).saturating_add(2);
        // bound: two lists per slot of a window, plus two
        for _ in 0..bound {
            let room = self.room(list);
            let Some(link) = links.get_mut(index) else { return first };
            if self.serial() && link.in_flight {
                self.report.held_back = true;
                return first;
            }
            let complete = self.fill(&mut link.pending, list, shown, room);
            if complete {
                return first;
            }
            // The list is full. A serial link can post no more for now.
            if self.serial() {
                self.report.held_back = true;
                return first;
            }
            if !self.flush(links, list, first, index.saturating_add(1)) {
                return index;
            }
            first = index;
        }
        first
    }

    /// Adds at most `room` writes, and returns whether the link then lacks nothing.
    fn fill(&self, posted: &mut Posted, list: &mut WriteList, shown: &Shown, room: usize) -> bool {
        let mut room = room;
        let mut done = true;
        let promises = self.capabilities.promises;
        if let Some((ring, published)) = shown.ring {
            done = if promises.contains(Promises::ADDRESS_ORDER) {
                self.fill_runs(posted, list, shown, (ring, published), &mut room)
            } else if promises.contains(Promises::WRITE_ORDER) {
                self.fill_pairs(posted, list, shown, (ring, published), &mut room)
            } else {
                self.fill_in_turn(posted, list, shown, (ring, published), &mut room)
            };
            // The control block covers the messages before it (NUL-5). If writes keep their order,
            // it is posted after all of them.
            if !done && promises.contains(Promises::WRITE_ORDER) {
                return false;
            }
            if done && shown.marker > posted.marker {
                let end = self.counter_offset(shown, ring, published);
                if !add(list, &mut room, Write::of_row(end, 8, Kind::Guard)) {
                    return false;
                }
                posted.marker = shown.marker;
            }
        }
        if posted.control_version != shown.version {
            let write = Write::of_row(shown.control, shown.control_bytes, shown.control_kind);
            if !add(list, &mut room, write) {
                return false;
            }
            posted.control_version = shown.version;
        }
        // Without order between writes, a counter may lag because it waits for its content. The
        // control block then covers nothing but itself, so an acknowledgement need not wait.
        if done {
            posted.version = shown.version;
        }
        done
    }

    fn counter_offset(&self, shown: &Shown, ring: usize, at: RingCursor) -> usize {
        shown.slot_offset(ring, at.slot.0).saturating_add(shown.stride).saturating_sub(8)
    }

    /// Adds contiguous slots in one write each: one run, or two if the ring wraps.
    fn fill_runs(
        &self,
        posted: &mut Posted,
        list: &mut WriteList,
        shown: &Shown,
        (ring, published): (usize, RingCursor),
        room: &mut usize,
    ) -> bool {
        let slots_max = u64_from_index(self.capabilities.write_bytes_max)
            .checked_div(u64_from_index(shown.stride))
            .unwrap_or(1)
            .max(1);
        let mut runs = 0_u32;
        // bound: the runs of a window, at most as many as its slots
        while posted.content != published && runs <= shown.window {
            let to_end = u64::from(shown.window.saturating_sub(posted.content.slot.0));
            let slots = published.since(posted.content).min(to_end).min(slots_max);
            let count = u32::try_from(slots).unwrap_or(1);
            let offset = shown.slot_offset(ring, posted.content.slot.0);
            let length = shown.stride.saturating_mul(index_from_u32(count));
            if !add(list, room, Write::of_row(offset, length, Kind::Content)) {
                return false;
            }
            posted.content = posted.content.advanced(count, shown.window);
            posted.counters = posted.content;
            runs = runs.saturating_add(1);
        }
        true
    }

    /// Adds each payload, then its counter as a guard.
    fn fill_pairs(
        &self,
        posted: &mut Posted,
        list: &mut WriteList,
        shown: &Shown,
        (ring, published): (usize, RingCursor),
        room: &mut usize,
    ) -> bool {
        // bound: a window
        while posted.content != published {
            if *room < 2 {
                return false;
            }
            let at = posted.content;
            add(list, room, self.content_of(shown, ring, at));
            add(list, room, Write::of_row(self.counter_offset(shown, ring, at), 8, Kind::Guard));
            posted.content = at.next(shown.window);
            posted.counters = posted.content;
        }
        true
    }

    /// Adds the counters of completed content, then new content. The counters of the new content
    /// follow in the next list, once this one is complete.
    fn fill_in_turn(
        &self,
        posted: &mut Posted,
        list: &mut WriteList,
        shown: &Shown,
        (ring, published): (usize, RingCursor),
        room: &mut usize,
    ) -> bool {
        let completed = posted.content;
        // bound: a window
        while posted.counters != completed {
            let at = posted.counters;
            if !add(list, room, Write::of_row(self.counter_offset(shown, ring, at), 8, Kind::Guard))
            {
                return false;
            }
            posted.counters = at.next(shown.window);
        }
        // bound: a window
        while posted.content != published {
            if !add(list, room, self.content_of(shown, ring, posted.content)) {
                return false;
            }
            posted.content = posted.content.next(shown.window);
        }
        posted.counters == published
    }

    /// Returns the write of a slot without its counter.
    fn content_of(&self, shown: &Shown, ring: usize, at: RingCursor) -> Write {
        // The length directly precedes the counter and travels with the payload.
        const COUNTER: usize = 8;
        const _: () = assert!(COUNTER < SLOT_HEADER);
        let length = shown.stride.saturating_sub(COUNTER);
        Write::of_row(shown.slot_offset(ring, at.slot.0), length, Kind::Content)
    }

    /// Posts the list for links `first..end`, which belong to one peer. Returns false if the fabric
    /// does not accept it.
    fn flush(
        &mut self,
        links: &mut [Link],
        list: &mut WriteList,
        first: usize,
        end: usize,
    ) -> bool {
        let part = links.get_mut(first..end).unwrap_or_default();
        let Some(peer) = part.first().map(|link| link.peer) else { return false };
        let serial = self.serial();
        let token = if serial { Some(Token(u64_from_index(first))) } else { None };
        let writes = u32::try_from(list.len()).unwrap_or(0);
        let result = self.fabric.post(self.view, peer, list, token);
        list.clear();
        match result {
            Ok(()) => {
                // bound: the links of one peer
                for link in part {
                    link.posted = link.pending;
                    link.in_flight = serial;
                }
                self.report.lists = self.report.lists.saturating_add(1);
                self.report.writes = self.report.writes.saturating_add(writes);
                true
            }
            Err(error) => {
                self.report.held_back = true;
                let kind = error.kind();
                if kind != ErrorKind::QueueFull {
                    self.report.refused = Some((peer, kind));
                }
                // bound: the links of one peer
                for link in part {
                    link.pending = link.posted;
                }
                false
            }
        }
    }
}

/// Adds a write if there is room for it.
fn add(list: &mut WriteList, room: &mut usize, write: Write) -> bool {
    if *room == 0 {
        return false;
    }
    // The push cannot fail: the list has at least `room` free entries.
    let _ = list.push(write);
    *room = room.saturating_sub(1);
    true
}
