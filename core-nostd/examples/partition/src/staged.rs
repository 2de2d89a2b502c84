//! Frames that wait for room in the queue. A list of writes is staged either as a whole or not at
//! all, so that a full queue loses nothing.

use crate::frame::{Frame, FrameKind, Header, PART_BYTES, Session};
use crate::group::WRITE_BYTES;
use crate::ports::{PortError, Ports};
use crate::queue::Queue;
use tramontane_core::fabric::Write;
use tramontane_core::memory::Row;

/// Maximum number of writes in one list.
pub const WRITES: usize = 4;

/// Number of frames for the longest list: each write may begin with a short part.
const FRAMES: usize = WRITES * (WRITE_BYTES.div_ceil(PART_BYTES) + 1);

/// The staged frames of one session.
#[derive(Debug)]
pub struct Staged {
    frames: Queue<Frame, FRAMES>,
    sequence: u32,
}

/// Maximum size in bytes of a snapshot, which is also staged as a whole.
pub const SNAPSHOT_MAX: usize = (FRAMES - 1) * PART_BYTES;

impl Staged {
    /// Creates an empty stage.
    pub const fn new() -> Self {
        Self { frames: Queue::new(), sequence: 0 }
    }

    /// Discards everything because a new session begins.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Returns whether there is room for a list of writes.
    pub fn has_room(&self, writes: &[Write]) -> bool {
        let parts = writes.iter().fold(0, |sum: usize, write| {
            let mut count = 0_usize;
            for_parts(write.source.offset, write.length, |_, _| count = count.wrapping_add(1));
            sum.saturating_add(count)
        });
        parts <= FRAMES.wrapping_sub(self.frames.len())
    }

    /// Stages a write from a row, with its current bytes. Returns `None` if the write is not inside
    /// the row or there is no room for it.
    pub fn write(&mut self, session: Session, row: Row<'_>, write: &Write) -> Option<()> {
        let mut done = Some(());
        for_parts(write.source.offset, write.length, |offset, length| {
            done = done.and_then(|()| {
                let mut frame = self.next(FrameKind::Write, session, offset, length, 0)?;
                row.read(offset, frame.part()).ok()?;
                self.push(frame)
            });
        });
        done
    }

    /// Stages a snapshot.
    #[cfg(feature = "views")]
    pub fn snapshot(&mut self, session: Session, bytes: &[u8]) -> Option<()> {
        let mut offset = 0_usize;
        for part in bytes.chunks(PART_BYTES) {
            let mut frame =
                self.next(FrameKind::Snapshot, session, offset, part.len(), bytes.len())?;
            for (to, from) in frame.part().iter_mut().zip(part) {
                *to = *from;
            }
            self.push(frame)?;
            offset = offset.checked_add(part.len())?;
        }
        Some(())
    }

    /// Puts as many frames into the queue as it accepts.
    ///
    /// # Errors
    /// Fails if the port has failed.
    pub fn send(&mut self, ports: &mut impl Ports) -> Result<(), PortError> {
        while let Some(frame) = self.frames.first() {
            if !ports.send(frame.bytes())? {
                break;
            }
            self.frames.pop();
        }
        Ok(())
    }

    fn next(
        &self,
        kind: FrameKind,
        session: Session,
        offset: usize,
        length: usize,
        total: usize,
    ) -> Option<Frame> {
        let (offset, total) = (u32::try_from(offset).ok()?, u16::try_from(total).ok()?);
        let header = Header { kind, session, sequence: self.sequence, offset, total };
        Some(Frame::new(&header, length))
    }

    fn push(&mut self, frame: Frame) -> Option<()> {
        self.frames.push(frame).then_some(())?;
        self.sequence = self.sequence.checked_add(1)?;
        Some(())
    }
}

/// Splits a range into parts. Only the ends of the range may be at offsets that are not multiples
/// of 8, so that cells stay whole.
fn for_parts(offset: usize, length: usize, mut take: impl FnMut(usize, usize)) {
    let end = offset.saturating_add(length);
    let mut at = offset;
    while at < end {
        let most = PART_BYTES.saturating_sub(at % 8);
        let count = most.min(end.saturating_sub(at));
        take(at, count);
        at = at.saturating_add(count);
    }
}
