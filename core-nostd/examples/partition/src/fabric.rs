//! The core's fabric over two queuing ports. Posted writes are staged as frames, and arriving
//! frames are applied to the copy of the partner's row.

use crate::frame::{Header, Session};
use crate::group::WRITE_BYTES;
use crate::queue::Queue;
use crate::staged::{Staged, WRITES};
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Promises, Region, Token, ViewMemory, Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};

/// The rows of one partition: its own row, and the copy of its partner's row.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'m> {
    /// Row from which posted bytes are read.
    pub own: Row<'m>,
    /// Row in which arriving bytes are stored.
    pub copy: RowWriter<'m>,
}

/// The fabric of one partition.
#[derive(Debug)]
pub struct PortFabric<'m> {
    rows: Rows<'m>,
    /// Frames to the partner.
    pub staged: Staged,
    /// Session of the frames that are sent; `None` if the partition has no partner or is fresh.
    session: Option<Session>,
    /// Number of frames of the session that have arrived.
    received: u32,
    tokens: Queue<Token, 4>,
}

/// The promises and limits of all fabrics of this kind.
pub const CAPABILITIES: Capabilities = Capabilities {
    // There is one ordered queue, and the parts of a write are sent in address order.
    promises: Promises::WRITE_ORDER.union(Promises::ADDRESS_ORDER),
    writes_max: WRITES,
    write_bytes_max: WRITE_BYTES,
    guard_bytes_max: 32,
    write_overhead_bytes: 24,
};

impl<'m> PortFabric<'m> {
    /// Creates a fabric without a session.
    pub const fn new(rows: Rows<'m>) -> Self {
        let tokens = Queue::new();
        Self { rows, staged: Staged::new(), session: None, received: 0, tokens }
    }

    /// Begins a session, or none. `received` frames of the session have already arrived. Staged
    /// frames of an earlier session are discarded.
    pub fn begin(&mut self, session: Option<Session>, received: u32) {
        self.staged.clear();
        self.tokens.clear();
        (self.session, self.received) = (session, received);
    }

    /// Returns the current session.
    pub const fn session(&self) -> Option<Session> {
        self.session
    }

    /// Applies a part of a write by the partner if the part belongs to this session. Returns `None`
    /// if the part is impossible: something was lost before it, or it is outside the row.
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
        // The bytes were copied at the call.
        self.tokens.pop().map(Event::Completed)
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        true
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {}
}
