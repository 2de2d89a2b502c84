//! The data that each peer still lacks, as lists of writes (BAT-3; Spindle III-C).
//!
//! Links are sorted by peer, so the changes of several subgroups go to a peer in one list. If the
//! fabric does not accept a list now, its links stay as they were: the next step retries, and only
//! that peer waits.
//!
//! How a message and its counter travel depends on the fabric's promises (SMC-6):
//!
//! | promises | message | counter |
//! |---|---|---|
//! | address order and write order | with its neighbours in one write, or in its own | in the same write |
//! | write order | its payload, as a separate write | a guard directly after it |
//! | completions, with or without address order | as above, with one list in flight per link | in the same write, or in the next list |
//!
//! Without order between writes, a link has only one list in flight. Two writes of the same cell
//! are therefore never in flight together, so the cell cannot shrink.
//!
//! Posting a message costs its bytes (SMC-7): the padding of a slot is posted only between two
//! messages in one write, and only if a separate write would cost more.

#[cfg(feature = "relays")]
use super::relay::RingPart;
use super::state::{Link, Posted, SenderState, SubgroupState, Work};
use super::subgroup_set::SubgroupSet;
use crate::fabric::{
    Capabilities, ErrorKind, Fabric, FabricError, Kind, Promises, Token, Write, WriteList,
};
use crate::ids::{Rank, Slot, ViewId, index_from_u32, u64_from_index};
use crate::layout::{Delivery, SLOT_HEADER};
use crate::memory::{Ring, Row};
use crate::smc::RingCursor;

/// Size in bytes of a slot's counter.
const COUNTER: usize = 8;

const _: () = assert!(COUNTER < SLOT_HEADER);

/// The result of the post stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PostReport {
    /// Number of lists that the fabric accepted.
    pub(crate) lists: u32,
    /// Number of writes in those lists.
    pub(crate) writes: u32,
    /// Whether a peer could not be served in this step.
    pub(crate) held_back: bool,
    /// Peer that the fabric refuses to write to.
    pub(crate) refused: Option<(Rank, ErrorKind)>,
}

/// The state of one subgroup that peers should see.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'m> {
    /// The local ring if this node sends here, or the ring that it passes on.
    ring: Option<ShownRing<'m>>,
    marker: u64,
    stride: usize,
    window: u32,
    control: usize,
    control_bytes: usize,
    control_kind: Kind,
    version: u64,
    /// Version of the control block.
    control_version: u64,
}

/// A ring as peers should see it: the local one, or one that this node passes on.
#[derive(Clone, Copy)]
pub(super) struct ShownRing<'m> {
    ring: Ring<'m>,
    /// Offset in bytes from the start of the row.
    offset: usize,
    /// Next slot to publish; in a ring that this node passes on, the next slot to pass on.
    pub(super) published: RingCursor,
    /// The part of the ring that the link carries, if the subgroup has relays.
    #[cfg(feature = "relays")]
    pub(super) part: Option<RingPart>,
}

impl<'m> Shown<'m> {
    /// Returns the state of a subgroup, or `None` if this version of it was posted. `senders` are
    /// those of all subgroups, and `rows` all rows in rank order.
    #[inline(always)]
    pub(crate) fn unless_posted(
        subgroup: &SubgroupState,
        posted: u64,
        senders: &[SenderState],
        rows: &[Row<'m>],
    ) -> Option<Self> {
        if subgroup.version == posted {
            return None;
        }
        Some(Self::of(subgroup, subgroup.senders.of(senders)?, rows))
    }

    /// Returns the state of a subgroup and its senders.
    fn of(subgroup: &SubgroupState, senders: &[SenderState], rows: &[Row<'m>]) -> Self {
        let own = subgroup.own.as_ref();
        let state = own.and_then(|own| senders.get(own.rank.index()));
        #[cfg(feature = "relays")]
        let state = state.or_else(|| senders.first().filter(|_| subgroup.relay.is_some()));
        let ring = state.and_then(|state| {
            let ring = rows.get(state.rank.index())?.ring_at(&state.ring).ok()?;
            #[cfg(feature = "relays")]
            let relay = subgroup.relay.as_ref();
            Some(ShownRing {
                ring,
                offset: state.ring.offset(),
                #[cfg(not(feature = "relays"))]
                published: state.take,
                #[cfg(feature = "relays")]
                published: relay.map_or(state.take, |of| of.published(own.is_some(), state.take)),
                #[cfg(feature = "relays")]
                part: relay.map(|relay| relay.part(own.is_some(), state.rank)),
            })
        });
        Self {
            ring,
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
            #[cfg(not(feature = "relays"))]
            control_version: subgroup.version,
            #[cfg(feature = "relays")]
            control_version: subgroup
                .version
                .saturating_sub(subgroup.relay.as_ref().map_or(0, |relay| relay.moves)),
        }
    }

    /// Returns this as one link carries it.
    #[cfg(feature = "relays")]
    fn limited_to(mut self, link: &Link) -> Self {
        if let Some(ShownRing { part: Some(part), .. }) = self.ring {
            let part = part.limited_to(link.stripes);
            self.ring = self.ring.filter(|_| part.is_some()).map(|ring| ShownRing { part, ..ring });
        }
        self
    }

    /// Returns the offset in the row at which a slot of the local ring ends.
    fn slot_end(&self, ring: &ShownRing<'_>, slot: u32) -> usize {
        let slots = index_from_u32(slot).saturating_add(1);
        ring.offset.saturating_add(self.stride.saturating_mul(slots))
    }
}

#[cfg(not(feature = "relays"))]
impl ShownRing<'_> {
    /// Returns the maximum number of slots of a run from a slot: those up to the end of the ring.
    const fn run_max(&self, window: u32, from: Slot) -> u32 {
        window.saturating_sub(from.0)
    }

    /// Returns a write of a range of the ring's row.
    const fn write(&self, offset: usize, length: usize, kind: Kind) -> Write {
        Write::of_row(offset, length, kind)
    }
}

impl<'m> Work<'_, 'm> {
    /// Returns the state that peers should see, or `None` if it is not `wanted` or was `posted`.
    pub(crate) fn shown(&self, wanted: bool, posted: u64) -> Option<Shown<'m>> {
        if wanted && self.subgroup.version != posted {
            Some(Shown::of(self.subgroup, self.senders, self.rows))
        } else {
            None
        }
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

    /// Brings links up to date as far as the fabric accepts: the links of each subgroup in
    /// `lagging`, with the number of the node's subgroups, for which `shown` returns the state that
    /// peers should see. It also gets the version last posted.
    pub(crate) fn post<'m>(
        &mut self,
        links: &mut [Link],
        lagging: (SubgroupSet, usize),
        shown: impl Fn(usize, u64) -> Option<Shown<'m>>,
    ) {
        let mut list = WriteList::new();
        // The links in the list are `first..end`, and perhaps some between them that lack nothing.
        let mut first = 0_usize;
        let mut end = 0_usize;
        let mut index = Link::next_of(links, 0, lagging);
        // bound: the links
        while let Some(link) = links.get_mut(index) {
            let lacking = if link.lost { None } else { shown(link.subgroup, link.posted.version) };
            #[cfg(feature = "relays")]
            let lacking = lacking.map(|shown| shown.limited_to(link));
            if let Some(shown) = lacking {
                let peer = link.peer;
                link.pending = link.posted;
                let is_other = links.get(first).is_some_and(|of_list| of_list.peer != peer);
                if !list.is_empty() && (is_other || self.serial()) {
                    self.flush(links, &mut list, first, end);
                }
                if list.is_empty() {
                    first = index;
                }
                first = self.serve(links, &mut list, first, index, &shown);
                end = index.saturating_add(1);
            }
            index = Link::next_of(links, index.saturating_add(1), lagging);
        }
        if !list.is_empty() {
            self.flush(links, &mut list, first, end);
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
    /// list that is under construction afterwards.
    fn serve(
        &mut self,
        links: &mut [Link],
        list: &mut WriteList,
        first: usize,
        index: usize,
        shown: &Shown<'_>,
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
    fn fill(
        &self,
        posted: &mut Posted,
        list: &mut WriteList,
        shown: &Shown<'_>,
        room: usize,
    ) -> bool {
        let mut room = room;
        let mut done = true;
        let promises = self.capabilities.promises;
        if let Some(ring) = &shown.ring {
            done = if promises.contains(Promises::ADDRESS_ORDER) {
                self.fill_runs(posted, list, shown, ring, &mut room)
            } else if promises.contains(Promises::WRITE_ORDER) {
                self.fill_pairs(posted, list, shown, ring, &mut room)
            } else {
                self.fill_in_turn(posted, list, shown, ring, &mut room)
            };
            // The control block covers the messages before it (NUL-5). If writes keep their order,
            // it is posted after all of them.
            if !done && promises.contains(Promises::WRITE_ORDER) {
                return false;
            }
            if done && shown.marker > posted.marker {
                if !add(list, &mut room, counter_of(shown, ring, ring.published)) {
                    return false;
                }
                posted.marker = shown.marker;
            }
        }
        if posted.control_version != shown.control_version {
            let write = Write::of_row(shown.control, shown.control_bytes, shown.control_kind);
            if !add(list, &mut room, write) {
                return false;
            }
            posted.control_version = shown.control_version;
        }
        // Without order between writes, a counter may lag because it waits for its content. The
        // control block then covers only itself, so an acknowledgement need not wait.
        if done {
            posted.version = shown.version;
        }
        done
    }

    /// Adds whole messages, including their counters, with as many in one write as [`Poster::run`]
    /// joins.
    fn fill_runs(
        &self,
        posted: &mut Posted,
        list: &mut WriteList,
        shown: &Shown<'_>,
        ring: &ShownRing<'_>,
        room: &mut usize,
    ) -> bool {
        let mut runs = 0_u32;
        // bound: the runs of a window, at most as many as its slots
        while posted.content != ring.published && runs <= shown.window {
            #[cfg(feature = "relays")]
            if posted.pass_over(ring, shown.window) {
                runs = runs.saturating_add(1);
                continue;
            }
            let (write, count) = self.run(shown, ring, posted.content);
            if !add(list, room, write) {
                return false;
            }
            posted.content = posted.content.advanced(count, shown.window);
            posted.counters = posted.content;
            runs = runs.saturating_add(1);
        }
        true
    }

    /// Returns the next write of whole messages, and the number of its slots. The slots are
    /// contiguous, and the padding before each message costs less than a separate write.
    fn run(&self, shown: &Shown<'_>, ring: &ShownRing<'_>, from: RingCursor) -> (Write, u32) {
        let slots_max = u64_from_index(self.capabilities.write_bytes_max)
            .checked_div(u64_from_index(shown.stride))
            .unwrap_or(1)
            .max(1);
        let to_end = u64::from(ring.run_max(shown.window, from.slot));
        let slots = ring.published.since(from).min(to_end).min(slots_max);
        let most = u32::try_from(slots).unwrap_or(1);
        let overhead = self.capabilities.write_overhead_bytes;
        let mut count = 1_u32;
        if ring.ring.padding_max() <= overhead {
            // Padding never costs more than a write, so no length has to be read.
            count = most;
        }
        // bound: the slots of a window
        while count < most {
            let used = ring.ring.used(Slot(from.slot.0.saturating_add(count)));
            if shown.stride.saturating_sub(used) > overhead {
                break;
            }
            count = count.saturating_add(1);
        }
        let first = ring.ring.used(from.slot);
        let others = shown.stride.saturating_mul(index_from_u32(count.saturating_sub(1)));
        let start = shown.slot_end(ring, from.slot.0).saturating_sub(first);
        (ring.write(start, first.saturating_add(others), Kind::Content), count)
    }

    /// Adds each payload, followed by its counter as a guard.
    fn fill_pairs(
        &self,
        posted: &mut Posted,
        list: &mut WriteList,
        shown: &Shown<'_>,
        ring: &ShownRing<'_>,
        room: &mut usize,
    ) -> bool {
        // bound: a window
        while posted.content != ring.published {
            #[cfg(feature = "relays")]
            if posted.pass_over(ring, shown.window) {
                continue;
            }
            if *room < 2 {
                return false;
            }
            let at = posted.content;
            add(list, room, content_of(shown, ring, at));
            add(list, room, counter_of(shown, ring, at));
            posted.content = at.next(shown.window);
            posted.counters = posted.content;
        }
        true
    }

    /// Adds the counters of completed content, then new content. The counters of the new content
    /// follow in the next list, after this list has completed.
    fn fill_in_turn(
        &self,
        posted: &mut Posted,
        list: &mut WriteList,
        shown: &Shown<'_>,
        ring: &ShownRing<'_>,
        room: &mut usize,
    ) -> bool {
        let completed = posted.content;
        // bound: a window
        while posted.counters != completed {
            let at = posted.counters;
            if !add(list, room, counter_of(shown, ring, at)) {
                return false;
            }
            posted.counters = at.next(shown.window);
        }
        // bound: a window
        while posted.content != ring.published {
            if !add(list, room, content_of(shown, ring, posted.content)) {
                return false;
            }
            posted.content = posted.content.next(shown.window);
        }
        posted.counters == ring.published
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

/// Returns the write of a message without its counter. The length field directly precedes the
/// counter and travels with the payload.
fn content_of(shown: &Shown<'_>, ring: &ShownRing<'_>, at: RingCursor) -> Write {
    let used = ring.ring.used(at.slot);
    let start = shown.slot_end(ring, at.slot.0).saturating_sub(used);
    ring.write(start, used.saturating_sub(COUNTER), Kind::Content)
}

/// Returns the write of a slot's counter.
fn counter_of(shown: &Shown<'_>, ring: &ShownRing<'_>, at: RingCursor) -> Write {
    let end = shown.slot_end(ring, at.slot.0);
    ring.write(end.saturating_sub(COUNTER), COUNTER, Kind::Guard)
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
