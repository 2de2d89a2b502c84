//! Reads of regions. Each is a request, and an answer in pieces, the oldest read first.
//!
//! An answer contains the bytes as they are when each of its pieces is sent. Pieces are sent one at
//! a time, when no list is waiting, so that lists and heartbeats do not wait for a long answer.

use std::collections::VecDeque;

use tramontane_core::fabric::{Region, Token};
use tramontane_core::ids::ViewId;

use super::memory::RegionMemory;
use crate::frame::Frame;
use crate::stream_end::StreamEnd;

/// The maximum number of unanswered reads per peer.
pub(crate) const READS_MAX: usize = 16;

/// The maximum number of bytes in a piece of an answer.
const PIECE_MAX: usize = 256 << 10;

/// A read that is waiting for its answer.
#[derive(Debug)]
pub(crate) struct PostedRead {
    pub(crate) view: ViewId,
    pub(crate) region: Region,
    /// The destination for the rest of the answer, or `None` once the view has ended here.
    pub(crate) into: Option<RegionMemory>,
    pub(crate) offset: usize,
    /// The number of bytes that have not begun to arrive.
    pub(crate) left: usize,
    pub(crate) token: Token,
}

/// Reads of this member at one peer.
#[derive(Debug, Default)]
pub(crate) struct PostedReads(VecDeque<PostedRead>);

impl PostedReads {
    pub(crate) fn has_room(&self) -> bool {
        self.0.len() < READS_MAX
    }

    pub(crate) fn add(&mut self, read: PostedRead) {
        self.0.push_back(read);
    }

    /// Begins a piece of the oldest read's answer, and returns its destination.
    pub(crate) fn begin(
        &mut self,
        view: ViewId,
        region: Region,
        (length, left): (usize, u64),
    ) -> Result<Option<(RegionMemory, usize)>, StreamEnd> {
        const UNASKED: StreamEnd = StreamEnd::Malformed("an answer without a read");
        let read = self.0.front_mut().ok_or(UNASKED)?;
        let is_it = (read.view, read.region) == (view, region)
            && u64::try_from(read.left) == Ok(left)
            && (1..=read.left).contains(&length);
        if !is_it {
            return Err(UNASKED);
        }
        let place = read.into.clone().map(|into| (into, read.offset));
        read.offset += length;
        read.left -= length;
        Ok(place)
    }

    /// Notes that a piece is complete. Returns the read's token if that was the last piece and the
    /// read is still awaited.
    pub(crate) fn finish(&mut self) -> Option<Token> {
        let is_whole = self.0.front().is_some_and(|read| read.left == 0);
        let read = if is_whole { self.0.pop_front() } else { None };
        read.filter(|read| read.into.is_some()).map(|read| read.token)
    }

    /// Notes that a view has ended here, so that its reads are no longer awaited.
    pub(crate) fn retire(&mut self, view: ViewId) {
        for read in self.0.iter_mut().filter(|read| read.view == view) {
            read.into = None;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}

/// A peer's read, or the unsent rest of its answer.
#[derive(Debug)]
pub(crate) struct AskedRead {
    pub(crate) view: ViewId,
    pub(crate) region: Region,
    pub(crate) memory: RegionMemory,
    pub(crate) offset: usize,
    pub(crate) left: usize,
}

/// Reads of one peer at this member.
#[derive(Debug, Default)]
pub(crate) struct AskedReads(VecDeque<AskedRead>);

impl AskedReads {
    /// Adds a read whose range has been checked.
    pub(crate) fn add(&mut self, read: AskedRead) -> Result<(), StreamEnd> {
        if self.0.len() >= READS_MAX {
            return Err(StreamEnd::Malformed("more pending reads than are allowed"));
        }
        self.0.push_back(read);
        Ok(())
    }

    pub(crate) fn is_pending(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the next piece: its frame, and the location of its bytes.
    pub(crate) fn next_piece(&mut self) -> Option<(Frame, RegionMemory, usize, usize)> {
        let read = self.0.front_mut()?;
        let length = read.left.min(PIECE_MAX);
        let frame = Frame::Answer {
            view: read.view,
            region: read.region,
            // The length fits, because pieces are short.
            length: u32::try_from(length).unwrap_or(u32::MAX),
            left: u64::try_from(read.left).unwrap_or(u64::MAX),
        };
        let piece = (frame, read.memory.clone(), read.offset, length);
        read.offset += length;
        read.left -= length;
        if read.left == 0 {
            self.0.pop_front();
        }
        Some(piece)
    }

    pub(crate) fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::OwnRegions;
    use super::*;

    const VIEW: ViewId = ViewId(3);
    const LOG: Region = Region(1);

    #[test]
    fn read_answer_pieces_never_exceed_the_read() {
        let bytes = 2 * PIECE_MAX + 100;
        let memory = OwnRegions::default().make(LOG, 4 * PIECE_MAX).expect("memory");
        let (mut asked, mut posted) = (AskedReads::default(), PostedReads::default());
        let (view, region) = (VIEW, LOG);
        asked
            .add(AskedRead { view, region, memory: memory.clone(), offset: 8, left: bytes })
            .expect("room");
        let into = Some(memory);
        posted.add(PostedRead { view, region, into, offset: 64, left: bytes, token: Token(7) });
        assert!(posted.begin(view, region, (bytes + 1, bytes as u64)).is_err(), "too long");
        assert!(posted.begin(view, region, (8, 8)).is_err(), "another length");
        assert!(posted.begin(ViewId(4), region, (8, bytes as u64)).is_err(), "another view");
        assert!(posted.begin(view, Region(2), (8, bytes as u64)).is_err(), "another region");
        let mut went = 0;
        while let Some((frame, _, offset, length)) = asked.next_piece() {
            let Frame::Answer { length: said, left, .. } = frame else { panic!("{frame:?}") };
            assert_eq!((offset, usize::try_from(said)), (8 + went, Ok(length)));
            assert_eq!(posted.finish(), None, "it is not whole");
            let place = posted.begin(view, region, (length, left)).expect("it fits");
            assert!(place.is_some_and(|(_, offset)| offset == 64 + went));
            went += length;
        }
        assert_eq!((went, posted.finish()), (bytes, Some(Token(7))));
        assert!(!asked.is_pending() && posted.begin(view, region, (8, 8)).is_err());
    }

    #[test]
    fn reads_of_ended_view_do_not_complete() {
        let memory = OwnRegions::default().make(LOG, 64).expect("memory");
        let mut posted = PostedReads::default();
        for (view, token) in [(VIEW, 1), (ViewId(4), 2)] {
            let into = Some(memory.clone());
            let token = Token(token);
            posted.add(PostedRead { view, region: LOG, into, offset: 0, left: 8, token });
        }
        posted.retire(VIEW);
        assert!(matches!(posted.begin(VIEW, LOG, (8, 8)), Ok(None)));
        assert_eq!(posted.finish(), None);
        assert!(matches!(posted.begin(ViewId(4), LOG, (8, 8)), Ok(Some(_))));
        assert_eq!(posted.finish(), Some(Token(2)));
    }

    #[test]
    fn pending_reads_are_bounded() {
        let memory = OwnRegions::default().make(LOG, 64).expect("memory");
        let mut asked = AskedReads::default();
        let read = || {
            let memory = memory.clone();
            AskedRead { view: VIEW, region: LOG, memory, offset: 0, left: 8 }
        };
        for _ in 0..READS_MAX {
            assert!(asked.add(read()).is_ok());
        }
        assert!(asked.add(read()).is_err());
    }
}
