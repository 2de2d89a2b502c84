//! Heartbeats that overtake a list of long writes. A list may hold a window of messages, and a slow
//! link needs seconds for it.
//!
//! The fabric's contract demands no order between content and earlier content. A short write of
//! content is therefore sent first, unless the list also writes to the same place. It is sent
//! between two frames. For this reason, content of many bytes is divided into several writes.

use tramontane_core::fabric::{Kind, Region, WRITES_MAX, Write};
use tramontane_core::ids::ViewId;
use tramontane_core::memory::OutOfRow;

use super::{COPIED_MAX, List, Piece, SendQueue, write_frame};
use crate::lent_content::CELL;

/// The maximum length in bytes of a write that overtakes others: a cache line.
const OVERTAKING_MAX: usize = 64;

/// The maximum number of bytes for which a heartbeat waits, apart from those that the kernel has
/// accepted, which are limited too.
const PART_BYTES: usize = 128 << 10;

/// The places to which the last list writes, if other writes may overtake it.
#[derive(Debug)]
pub(super) struct Overtakable {
    view: ViewId,
    targets: Vec<TargetRange>,
    /// The place of the write that has last overtaken the list.
    overtaking: Option<TargetRange>,
}

/// A range in bytes to which a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TargetRange {
    region: Region,
    from: usize,
    to: usize,
}

impl From<&Write> for TargetRange {
    fn from(write: &Write) -> Self {
        let Write { target, length, .. } = write;
        Self { region: target.region, from: target.offset, to: target.offset + length }
    }
}

impl TargetRange {
    fn overlaps(&self, other: &Self) -> bool {
        self.region == other.region && self.from < other.to && other.from < self.to
    }
}

impl Default for Overtakable {
    fn default() -> Self {
        Self { view: ViewId(0), targets: Vec::with_capacity(WRITES_MAX), overtaking: None }
    }
}

impl Overtakable {
    pub(super) fn note(&mut self, list: &List<'_>, is_confirmed: bool) {
        (self.view, self.overtaking) = (list.view, None);
        self.targets.clear();
        if !is_confirmed && list.writes.iter().any(|write| write.length > COPIED_MAX) {
            self.targets.extend(list.writes.iter().map(TargetRange::from));
        }
    }

    /// Returns whether this write may be sent before the last list.
    fn permits(&self, view: ViewId, write: &Write) -> bool {
        let target = TargetRange::from(write);
        let is_short = write.kind == Kind::Content && write.length <= OVERTAKING_MAX;
        let is_elsewhere = !self.targets.iter().any(|waiting| waiting.overlaps(&target));
        is_short && is_elsewhere && view == self.view && !self.targets.is_empty()
    }
}

/// Divides a write into those that are sent. They end with whole cells, because a part of a cell
/// could be sent with an old value, and the rest with a new one.
pub(super) fn parts(write: &Write, is_confirmed: bool) -> impl Iterator<Item = Write> {
    let (write, mut done) = (*write, 0);
    std::iter::from_fn(move || {
        let mut part = write;
        part.source.offset += done;
        part.target.offset += done;
        let most = if is_confirmed { usize::MAX } else { PART_BYTES - part.source.offset % CELL };
        let length = most.min(write.length - done);
        part.length = length;
        done += length;
        (length > 0).then_some(part)
    })
}

impl SendQueue {
    /// Adds a list to be sent before most of the content that waits, if possible. It replaces an
    /// earlier one for the same place that has not begun. Returns whether it was added.
    pub(crate) fn overtake(&mut self, list: &List<'_>) -> Result<bool, OutOfRow> {
        let [write] = list.writes else { return Ok(false) };
        // A frame ends with each piece that is not staged. The first piece may have begun.
        let ends_frame = |piece: &Piece| !matches!(piece, Piece::Staged(_));
        let place = self.pieces.iter().take(2).position(ends_frame).map(|piece| piece + 1);
        let Some(place) = place.filter(|_| self.answer_pieces == 0) else { return Ok(false) };
        if !self.overtakable.permits(list.view, write) {
            return Ok(false);
        }
        // Content is followed by the header of a frame, and so only by this kind of write.
        let waits = matches!(self.pieces.get(place), Some(Piece::Kept { .. }));
        let target = Some(TargetRange::from(write));
        if waits && self.overtakable.overtaking != target {
            return Ok(false);
        }
        let frame = write_frame(list.view, write)?;
        let memory = list.source(write.source.region)?;
        let content = memory.content(write.source.offset, write.length)?;
        let bytes = [&frame.encode()[..frame.length()], content].concat().into();
        if waits {
            self.pieces.remove(place);
        }
        self.pieces.insert(place, Piece::Kept { bytes, from: 0 });
        self.overtakable.overtaking = target;
        Ok(true)
    }
}
