//! A process's posts to the regions of one peer in a view, and the results of these posts.
//!
//! # Invariants
//! - All lists in flight to a region were posted under the same right. So a single word from the
//!   owner is enough to say which of them were denied: all lists from that position onwards.
//! - After a denied list or a refused post, a region accepts no posts until this process has been
//!   notified that it may post again.

use std::collections::VecDeque;

use tramontane_core::fabric::{
    Area, ErrorKind, PermissionEvent, Region, RegionMemory as _, Token, WRITES_MAX, Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::Row;

use super::region_lanes::{RegionLane, Right};
use super::region_memory::{OwnRegions, PeerRegions, REGIONS_MAX, RegionIndex};
use super::write_queue::{List, Nonsense, QueueWriter};

/// The maximum number of lists with a token in flight to one peer in a view.
pub(super) const TOKENS_MAX: usize = 1024;

/// The state of the posts to one region.
#[derive(Clone, Copy, Debug, Default)]
struct OutletWay {
    /// Whether posts are refused until this process has been notified of a new right.
    is_refusing: bool,
    /// The right under which the last lists were posted.
    right: Right,
    /// The queue position after the last of those lists.
    end: u64,
    /// The owner's last known word about denied lists.
    denied: u64,
    /// The position at which the last posted lists start to be denied.
    denied_from: Option<u64>,
}

/// A list with a token in flight.
#[derive(Clone, Copy, Debug)]
struct ListInFlight {
    start: u64,
    end: u64,
    region: RegionIndex,
    token: Token,
}

/// The memory from which writes are copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'s> {
    pub(super) row: Row<'s>,
    pub(super) regions: &'s OwnRegions,
    /// The maximum number of bytes in a list.
    pub(super) list_bytes_max: usize,
}

impl<'s> Sources<'s> {
    #[inline]
    fn of(&self, area: Area) -> Option<Row<'s>> {
        if area.region == Region::ROW {
            return Some(self.row);
        }
        let memory = self.regions.get(RegionIndex::of(area.region)?.0)?.as_ref()?;
        Some(memory.writer().reader())
    }
}

/// The destinations for the results of lists.
#[derive(Debug)]
pub(super) struct ListResults<'t> {
    pub(super) completed: &'t mut VecDeque<Token>,
    pub(super) permissions: &'t mut VecDeque<PermissionEvent>,
}

/// The path to one peer's regions.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    queue: Option<QueueWriter>,
    regions: PeerRegions,
    /// The number of bytes of the queue known to have been taken.
    taken: u64,
    ways: [OutletWay; REGIONS_MAX],
    under_way: VecDeque<ListInFlight>,
}

impl Outlet {
    /// Stores the peer's regions.
    pub(super) fn show(&mut self, regions: PeerRegions) {
        self.regions = regions;
    }

    /// Returns the peer's region with that number.
    pub(super) fn region(&self, region: Region) -> Option<&super::region_memory::PeerRegion> {
        self.regions.get(RegionIndex::of(region)?.0)?.as_deref()
    }

    /// Returns whether the peer has granted a right, but there is no queue yet.
    pub(super) fn wants_queue(&self, lane: RegionLane<'_>) -> bool {
        self.queue.is_none() && RegionIndex::all().any(|region| lane.right(region).is_given())
    }

    /// Takes a fresh queue.
    pub(super) fn take_queue(&mut self, queue: QueueWriter) {
        self.under_way.reserve(TOKENS_MAX);
        self.queue = Some(queue);
    }

    /// Returns the queue as long as it has not been sent to the peer.
    pub(super) fn unsent_queue(&mut self) -> Option<&mut QueueWriter> {
        self.queue.as_mut().filter(|queue| !queue.is_sent())
    }

    /// Returns whether there is a queue.
    pub(super) const fn has_queue(&self) -> bool {
        self.queue.is_some()
    }

    /// Gives up the lists in flight, which get no result.
    pub(super) fn end(&mut self) {
        self.queue = None;
        self.under_way.clear();
    }

    /// Posts a list to a region; the caller rings.
    #[inline]
    pub(super) fn post(
        &mut self,
        lane: RegionLane<'_>,
        sources: Sources<'_>,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let region = self.check(&sources, writes)?;
        let (right, way) = (lane.right(region), &mut self.ways[region.0]);
        if way.is_refusing {
            return Err(ErrorKind::Revoked);
        }
        if right != way.right && way.end > self.taken {
            // The results of lists posted under the previous right must be reported first.
            return Err(ErrorKind::QueueFull);
        }
        if !right.is_given() {
            way.is_refusing = true;
            return Err(ErrorKind::Revoked);
        }
        let queue = self.queue.as_mut().filter(|queue| queue.is_sent());
        let queue = queue.ok_or(ErrorKind::QueueFull)?;
        if token.is_some() && self.under_way.len() >= TOKENS_MAX {
            return Err(ErrorKind::QueueFull);
        }
        let list = List { writes, region, right };
        let source_of = |write: &Write| sources.of(write.source);
        let start = queue.post(list, source_of).or_else(|| {
            // Bytes taken since the last check are already free.
            queue.note_taken(lane.taken()).ok()?;
            queue.post(list, source_of)
        });
        let start = start.ok_or(ErrorKind::QueueFull)?;
        if way.right != right {
            (way.right, way.denied_from) = (right, None);
        }
        way.end = queue.posted();
        if let Some(token) = token {
            self.under_way.push_back(ListInFlight { start, end: way.end, region, token });
        }
        Ok(())
    }

    /// Returns the target region of a list, if the list is within its limits.
    #[inline]
    fn check(&self, sources: &Sources<'_>, writes: &[Write]) -> Result<RegionIndex, ErrorKind> {
        let first = writes.first().ok_or(ErrorKind::OutOfRange)?;
        let region = RegionIndex::of(first.target.region).ok_or(ErrorKind::OutOfRange)?;
        let bytes = self.regions[region.0].as_ref().ok_or(ErrorKind::OutOfRange)?.bytes();
        let fits = |offset: usize, length: usize, bytes: usize| {
            offset.checked_add(length).is_some_and(|end| end <= bytes)
        };
        let mut whole = 0_usize;
        for write in writes {
            let source = sources.of(write.source).ok_or(ErrorKind::OutOfRange)?;
            let is_inside = write.target.region == first.target.region
                && fits(write.target.offset, write.length, bytes)
                && fits(write.source.offset, write.length, source.bytes());
            if !is_inside {
                return Err(ErrorKind::OutOfRange);
            }
            whole = whole.saturating_add(write.length);
        }
        let is_short = writes.len() <= WRITES_MAX && whole <= sources.list_bytes_max;
        if is_short { Ok(region) } else { Err(ErrorKind::OutOfRange) }
    }

    /// Reads what the owner has taken since the last call, and what it has denied.
    #[inline]
    pub(super) fn hear(
        &mut self,
        lane: RegionLane<'_>,
        (view, peer): (ViewId, Rank),
        told: &mut ListResults<'_>,
    ) -> Result<(), Nonsense> {
        let Some(queue) = &mut self.queue else { return Ok(()) };
        if self.taken == queue.posted() {
            return Ok(());
        }
        let taken = lane.taken();
        if taken == self.taken {
            return Ok(());
        }
        queue.note_taken(taken)?;
        self.hear_denials(lane, (view, peer), told);
        self.taken = taken;
        while let Some(list) = self.under_way.front().copied().filter(|list| list.end <= taken) {
            self.under_way.pop_front();
            let denied_from = self.ways[list.region.0].denied_from;
            if denied_from.is_none_or(|from| list.start < from) {
                told.completed.push_back(list.token);
            }
        }
        self.restore(lane, (view, peer), told);
        Ok(())
    }

    /// Checks whether lists in flight have been denied.
    #[inline]
    fn hear_denials(
        &mut self,
        lane: RegionLane<'_>,
        (view, peer): (ViewId, Rank),
        told: &mut ListResults<'_>,
    ) {
        let before = self.taken;
        for (region, way) in RegionIndex::all().zip(&mut self.ways) {
            if way.end <= before {
                continue;
            }
            let denied = lane.denied(region);
            if denied != way.denied {
                way.denied = denied;
                way.denied_from = Some(denied.saturating_sub(1));
                way.is_refusing = true;
                let region = region.region();
                told.permissions.push_back(PermissionEvent::Denied { view, peer, region });
            }
        }
    }

    /// Reports the regions that can be posted to again, because the right exists and all denials
    /// have been reported.
    pub(super) fn restore(
        &mut self,
        lane: RegionLane<'_>,
        (view, peer): (ViewId, Rank),
        told: &mut ListResults<'_>,
    ) {
        for (region, way) in RegionIndex::all().zip(&mut self.ways) {
            if way.is_refusing && way.end <= self.taken && lane.right(region).is_given() {
                way.is_refusing = false;
                let region = region.region();
                told.permissions.push_back(PermissionEvent::Restored { view, peer, region });
            }
        }
    }
}
