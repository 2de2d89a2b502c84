//! The core's fabric over two queuing ports: what is posted is staged as frames, and what comes is
//! applied to the copy of the partner's row.

use crate::frame::{Header, Session};
use crate::group::WRITE_BYTES;
use crate::queue::Queue;
use crate::staged::{Staged, WRITES};
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Promises, Region, Token, ViewMemory, Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};

/// The rows of one partition: its own, and the copy of its partner's.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'m> {
    /// What is sent is read here.
    pub own: Row<'m>,
    /// What comes is stored here.
    pub copy: RowWriter<'m>,
}

/// The fabric of one partition.
#[derive(Debug)]
pub struct PortFabric<'m> {
    rows: Rows<'m>,
    /// Frames to the partner.
    pub staged: Staged,
    /// The session of what is sent; none, if the partition is alone or fresh.
    session: Option<Session>,
    /// Frames of the session that have come.
    received: u32,
    tokens: Queue<Token, 4>,
}

/// What every fabric of this kind promises and takes.
pub const CAPABILITIES: Capabilities = Capabilities {
    // One queue, in order; and the parts of a write in the order of their addresses.
    promises: Promises::WRITE_ORDER.union(Promises::ADDRESS_ORDER),
    writes_max: WRITES,
    write_bytes_max: WRITE_BYTES,
    guard_bytes_max: 32,
    write_overhead_bytes: 24,
};

impl<'m> PortFabric<'m> {
    /// A fabric without a session.
    pub const fn new(rows: Rows<'m>) -> Self {
        let tokens = Queue::new();
        Self { rows, staged: Staged::new(), session: None, received: 0, tokens }
    }

    /// Begins a session, after so many of its frames have come; or none. What was staged of another
    /// one is forgotten.
    pub fn begin(&mut self, session: Option<Session>, received: u32) {
        self.staged.clear();
        self.tokens.clear();
        (self.session, self.received) = (session, received);
    }

    /// The session that there is.
    pub const fn session(&self) -> Option<Session> {
        self.session
    }

    /// Applies a part of a write of the partner's, if it is of this session. Nothing, if it cannot
    /// be: something was lost before it, or it lies outside of the row.
    pub fn apply(&mut self, header: &Header, part: &[u8]) -> Option<()> {
        if self.session.map(Session::reversed) != Some(header.session) {
            return Some(());
        }
        if header.sequence != self.received {
            return None;
        }
        self.received = self.received.checked_add(1)?;
        self.rows.copy.apply(usize::try_from(header.offset).ok()?, part).ok()
    }
}

impl Fabric for PortFabric<'_> {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn ready(&self, view: ViewId, _: Rank) -> bool {
        self.session.is_some_and(|session| session.view == view)
    }

    fn cut(&mut self, _: ViewId, _: Rank) {
        self.begin(None, 0);
    }

    fn retire(&mut self, _: ViewId) -> bool {
        true
    }

    fn post(
        &mut self,
        view: ViewId,
        _: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let Some(session) = self.session.filter(|session| session.view == view) else {
            return Err(ErrorKind::QueueFull);
        };
        if writes.len() > WRITES || writes.iter().any(|write| write.length > WRITE_BYTES) {
            return Err(ErrorKind::OutOfRange);
        }
        if !self.staged.has_room(writes) {
            return Err(ErrorKind::QueueFull);
        }
        if token.is_some_and(|token| !self.tokens.push(token)) {
            return Err(ErrorKind::QueueFull);
        }
        for write in writes {
            let is_of_row = [write.source.region, write.target.region] == [Region::ROW; 2];
            if !is_of_row || write.source.offset != write.target.offset {
                return Err(ErrorKind::OutOfRange);
            }
            self.staged.write(session, self.rows.own, write).ok_or(ErrorKind::OutOfRange)?;
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Event> {
        // The bytes were taken at the call.
        self.tokens.pop().map(Event::Completed)
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        true
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {}
}
