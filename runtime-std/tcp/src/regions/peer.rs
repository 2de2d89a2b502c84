//! The knowledge that this member and one peer have of each other's regions.
//!
//! # Invariants
//! - A peer's bytes are stored in a region only as part of a list under a right that the peer
//!   currently has.
//! - While a list is arriving, nothing except its writes may arrive.

use tramontane_core::fabric::{Area, ErrorKind, PermissionEvent, Region, Token, WRITES_MAX};
use tramontane_core::ids::ViewId;

use super::lists::{ComingList, ComingLists, Unconfirmed};
use super::memory::{OwnRegions, REGIONS_MAX, RegionMemory};
use super::reads::{AskedRead, PostedRead, PostedReads};
use super::rights::{Right, Rights};
use crate::body::Target;
use crate::frame::Frame;
use crate::landing::Landings;
use crate::notice::Notice;
use crate::stream_end::StreamEnd;

/// The connection's end if its peer writes or reads out of range.
const OUTSIDE: StreamEnd = StreamEnd::Malformed("a range outside its region");

/// The connection's end if a peer's list is for an unknown region.
const NO_REGION: StreamEnd = StreamEnd::Malformed("a region that does not exist");

/// The regions of this member and of one peer.
#[derive(Debug, Default)]
pub(crate) struct PeerRegions {
    pub(crate) own: OwnRegions,
    /// The lengths of the peer's regions.
    theirs: Vec<(Region, usize)>,
    /// The peer's rights to local regions.
    given: Rights,
    /// This member's rights to the peer's regions.
    held: Rights,
    pub(crate) unconfirmed: Unconfirmed,
    pub(crate) coming: ComingLists,
    pub(crate) reads: PostedReads,
}

impl PeerRegions {
    /// Returns the peer's right to write to a local region.
    pub(crate) fn given(&self, view: ViewId, region: Region) -> Option<Right> {
        self.given.get(view, region)
    }

    /// Grants the peer a right that it does not have.
    pub(crate) fn give(&mut self, view: ViewId, region: Region, right: Right) {
        self.given.add(view, region, right);
    }

    /// Revokes a right. Nothing more from the peer is stored in that region. Returns true if the
    /// peer had the right.
    pub(crate) fn take_back(&mut self, view: ViewId, region: Region) -> bool {
        self.given.remove(view, region)
    }

    /// Returns the right to write to the peer's region.
    pub(crate) fn held(&self, view: ViewId, region: Region) -> Option<Right> {
        self.held.get(view, region)
    }

    /// Returns whether an area of `length` bytes is inside a region of the peer.
    pub(crate) fn has_area(&self, area: Area, length: usize) -> bool {
        let bytes = self.theirs.iter().find(|(of, _)| *of == area.region).map(|(_, bytes)| *bytes);
        let end = area.offset.checked_add(length);
        end.zip(bytes).is_some_and(|(end, bytes)| end <= bytes)
    }

    /// Notes that a list is posted that the peer has to confirm.
    pub(crate) fn note_list(&mut self, view: ViewId, region: Region, token: Option<Token>) {
        self.unconfirmed.add(view, region, token);
    }

    /// Notes that a read is requested.
    pub(crate) fn note_read(&mut self, read: PostedRead) -> Result<(), ErrorKind> {
        if !self.reads.has_room() {
            return Err(ErrorKind::QueueFull);
        }
        self.reads.add(read);
        Ok(())
    }

    /// Notes that a view has ended here. Returns true if part of the view was in progress, for a
    /// region or a row.
    pub(crate) fn retire(&mut self, view: ViewId) -> bool {
        self.given.retire(view);
        self.held.retire(view);
        self.unconfirmed.retire(view);
        self.reads.retire(view);
        self.coming.drop_to(view, None)
    }

    /// Forgets everything, because the peer is gone.
    pub(crate) fn clear(&mut self) {
        self.given.clear();
        self.held.clear();
        self.unconfirmed.clear();
        self.reads.clear();
        self.coming.clear();
    }

    /// Notes that the peer has ended a view, so that unconfirmed lists in it were not applied.
    pub(crate) fn end_there(
        &mut self,
        view: ViewId,
        landings: &Landings,
        notify: &mut impl FnMut(Notice),
    ) {
        self.given.retire(view);
        self.held.retire(view);
        while let Some(region) = self.unconfirmed.awaited_region(view) {
            self.give_up(view, region, landings, notify);
        }
    }

    fn give_up(
        &mut self,
        view: ViewId,
        region: Region,
        landings: &Landings,
        notify: &mut impl FnMut(Notice),
    ) {
        let is_denied = self.unconfirmed.give_up(view, region);
        if let (true, Some(peer)) = (is_denied, landings.rank_in(view)) {
            notify(Notice::Permission(PermissionEvent::Denied { view, peer, region }));
        }
    }

    /// Notes that the peer has a region.
    pub(crate) fn take_region(&mut self, region: Region, bytes: u64) -> Result<(), StreamEnd> {
        let is_known = self.theirs.iter().any(|(of, _)| *of == region);
        if region == Region::ROW || is_known || self.theirs.len() == REGIONS_MAX {
            return Err(NO_REGION);
        }
        self.theirs.push((region, usize::try_from(bytes).map_err(|_| OUTSIDE)?));
        Ok(())
    }

    /// Notes that the peer grants or revokes this member's right.
    pub(crate) fn take_right(
        &mut self,
        (view, region): (ViewId, Region),
        right: Option<Right>,
        landings: &mut Landings,
        notify: &mut impl FnMut(Notice),
    ) -> Result<(), StreamEnd> {
        if !self.theirs.iter().any(|(of, _)| *of == region) {
            return Err(NO_REGION);
        }
        if !landings.takes(view)? {
            return Ok(());
        }
        let had = self.held.remove(view, region);
        let Some(right) = right else {
            self.give_up(view, region, landings, notify);
            return Ok(());
        };
        if had {
            return Err(StreamEnd::Malformed("a permission that was granted twice"));
        }
        self.held.add(view, region, right);
        if let Some(peer) = landings.rank_in(view) {
            notify(Notice::Permission(PermissionEvent::Restored { view, peer, region }));
        }
        Ok(())
    }

    /// Begins a list of the peer.
    pub(crate) fn take_list(
        &mut self,
        (view, region): (ViewId, Region),
        (writes, right): (u32, u64),
        landings: &mut Landings,
    ) -> Result<(), StreamEnd> {
        let is_long = usize::try_from(writes).is_ok_and(|writes| writes > WRITES_MAX);
        let is_row = region == Region::ROW;
        if is_long || is_row != (right == 0) {
            return Err(StreamEnd::Malformed("a list that no member posts"));
        }
        if !is_row && self.own.get(region).is_none() {
            return Err(NO_REGION);
        }
        let has_right = is_row || self.given(view, region).map(Right::get) == Some(right);
        let is_taken = landings.takes(view)? && has_right;
        self.coming.begin(ComingList { view, region, left: writes, is_taken });
        Ok(())
    }

    /// Returns the destination of a peer's write: a row, or a region as part of a list.
    pub(crate) fn take_write(
        &mut self,
        view: ViewId,
        to: Area,
        length: usize,
        landings: &mut Landings,
    ) -> Result<Target, StreamEnd> {
        let mut is_taken = true;
        // The copies of rows count as rows.
        let owner = to.region.owner();
        let region = owner.map_or(to.region, |_| Region::ROW);
        if self.coming.coming().is_some() {
            let next = self.coming.next_write();
            let list = next.filter(|list| (list.view, list.region) == (view, region));
            is_taken =
                list.ok_or(StreamEnd::Malformed("a write that belongs to another list"))?.is_taken;
        } else if region != Region::ROW {
            return Err(StreamEnd::Malformed("a write to a region without its list"));
        }
        if region == Region::ROW {
            let into = landings.target((view, owner), to.offset, length)?.filter(|_| is_taken);
            let target = |(rows, rank)| Target::Row { rows, rank, offset: to.offset };
            return Ok(into.map_or(Target::Nowhere, target));
        }
        let memory = self.own.area(to, length).ok_or(OUTSIDE)?;
        Ok(if is_taken { region_target(memory.clone(), to.offset) } else { Target::Nowhere })
    }

    /// Accepts the peer's request for bytes of a local region.
    pub(crate) fn take_read(
        &self,
        view: ViewId,
        from: Area,
        length: usize,
        landings: &mut Landings,
    ) -> Result<AskedRead, StreamEnd> {
        // Also accepted in a view that has ended here, because the regions have not ended.
        landings.takes(view)?;
        let memory = self.own.area(from, length).filter(|_| length > 0).ok_or(OUTSIDE)?.clone();
        let Area { region, offset } = from;
        Ok(AskedRead { view, region, memory, offset, left: length })
    }

    /// Returns the destination of a piece of an answer.
    pub(crate) fn take_answer(
        &mut self,
        view: ViewId,
        region: Region,
        lengths: (usize, u64),
    ) -> Result<Target, StreamEnd> {
        let place = self.reads.begin(view, region, lengths)?;
        Ok(place.map_or(Target::Nowhere, |(memory, offset)| region_target(memory, offset)))
    }

    /// Returns the first frames to the peer: the lengths of the local regions.
    pub(crate) fn told(&self) -> impl Iterator<Item = Frame> {
        self.own.iter().map(|(region, memory)| Frame::Region {
            region: *region,
            bytes: u64::try_from(memory.bytes()).unwrap_or(u64::MAX),
        })
    }
}

const fn region_target(memory: RegionMemory, offset: usize) -> Target {
    Target::Region { memory, offset }
}
