//! A fabric for members in the same memory.

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Promises, Region, Token, ViewMemory, Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};

/// Number of bytes that are carried at a time; a multiple of 8, so that cells stay whole.
const CHUNK: usize = 256;

/// Number of completions that may wait to be polled.
const TOKENS: usize = 16;

/// The path of a member's writes to its peers.
pub enum Way {
    /// The peers read the same row: the store has the effect of the write, and a post has nothing
    /// to do.
    Shared,
    /// Each peer has a copy of the row, which a post brings up to date.
    Copied {
        /// Local row, from which the bytes are read.
        row: Row<'static>,
        /// Copies of the row, in rank order.
        copies: [RowWriter<'static>; crate::group::MEMBERS],
    },
}

/// One member's fabric.
pub struct Local {
    way: Way,
    tokens: heapless::Vec<Token, TOKENS>,
    /// Number of posted lists.
    pub posts: u64,
}

impl Local {
    /// Creates a fabric in which everything arrives at once.
    pub const fn new(way: Way) -> Self {
        Self { way, tokens: heapless::Vec::new(), posts: 0 }
    }

    fn carry(&self, to: Rank, write: &Write) -> Option<()> {
        let Way::Copied { row, copies } = &self.way else {
            return Some(());
        };
        if write.source.region != Region::ROW || write.target.region != Region::ROW {
            return None;
        }
        let copy = copies.get(to.index())?;
        let mut buffer = [0; CHUNK];
        let mut done = 0_usize;
        while done < write.length {
            let part = buffer.get_mut(..write.length.wrapping_sub(done).min(CHUNK))?;
            row.read(write.source.offset.checked_add(done)?, part).ok()?;
            #[cfg(feature = "planted-fault")]
            self.damage(part);
            copy.apply(write.target.offset.checked_add(done)?, part).ok()?;
            done = done.checked_add(part.len())?;
        }
        Some(())
    }
}

#[cfg(feature = "planted-fault")]
impl Local {
    /// Changes one byte of one message's payload in flight.
    fn damage(&self, bytes: &mut [u8]) {
        if self.posts == 99 && bytes.len() > 64 {
            if let Some(first) = bytes.first_mut() {
                *first ^= 1;
            }
        }
    }
}

impl Fabric for Local {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        let promises = Promises::all();
        Capabilities {
            promises: match self.way {
                Way::Shared => promises,
                Way::Copied { .. } => promises.difference(Promises::SHARED),
            },
            writes_max: 8,
            write_bytes_max: 1 << 20,
            guard_bytes_max: 64,
            write_overhead_bytes: 24,
        }
    }

    fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn ready(&self, _: ViewId, _: Rank) -> bool {
        true
    }

    fn cut(&mut self, _: ViewId, _: Rank) {}

    fn retire(&mut self, _: ViewId) -> bool {
        true
    }

    fn post(
        &mut self,
        _: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        if let Some(token) = token {
            self.tokens.push(token).map_err(|_| ErrorKind::QueueFull)?;
        }
        for write in writes {
            self.carry(to, write).ok_or(ErrorKind::OutOfRange)?;
        }
        self.posts = self.posts.saturating_add(1);
        Ok(())
    }

    fn poll(&mut self) -> Option<Event> {
        self.tokens.pop().map(Event::Completed)
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        true
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {}
}
