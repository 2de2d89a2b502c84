//! A fabric that carries nothing: it records each call with its arguments, and answers as
//! configured.

use core::time::Duration;
use std::cell::RefCell;
use std::fmt::Debug;

use crate::common::{Carries, OneMemory, fabric};
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, HostFabric, LocalBell, Promises, Token, ViewMemory,
    ViewPlan, ViewRows, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Line, Row, RowWriter};

/// The recorded calls, and whether calls succeed.
pub struct Recorder {
    pub calls: RefCell<Vec<String>>,
    pub succeeds: bool,
}

impl Recorder {
    pub const fn new(succeeds: bool) -> Self {
        Self { calls: RefCell::new(Vec::new()), succeeds }
    }

    /// Records a call, and returns the result for a call that may fail.
    pub fn note(&self, call: &str, with: &dyn Debug) -> Result<(), ErrorKind> {
        self.calls.borrow_mut().push(format!("{call} {with:?}"));
        // The error depends on the number of calls so far, so that two calls fail differently.
        let errors = [ErrorKind::QueueFull, ErrorKind::PeerLost, ErrorKind::Revoked];
        let error = errors[self.calls.borrow().len() % errors.len()];
        if self.succeeds { Ok(()) } else { Err(error) }
    }
}

impl Fabric for Recorder {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        let _ = self.note("capabilities", &());
        Capabilities {
            promises: Promises::WRITE_ORDER,
            writes_max: 5,
            write_bytes_max: 700,
            guard_bytes_max: 24,
            write_overhead_bytes: 24,
        }
    }
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        self.note("open", &(view, memory.own, memory.members, memory.row.reader().base()))
    }
    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.note("ready", &(view, peer)).is_ok()
    }
    fn cut(&mut self, view: ViewId, peer: Rank) {
        let _ = self.note("cut", &(view, peer));
    }
    fn retire(&mut self, view: ViewId) -> bool {
        self.note("retire", &view).is_ok()
    }
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        self.note("post", &(view, to, writes, token))
    }
    fn poll(&mut self) -> Option<Event> {
        self.note("poll", &()).is_ok().then_some(Event::Completed(Token(77)))
    }
    fn wake(&mut self, view: ViewId, to: Rank) {
        let _ = self.note("wake", &(view, to));
    }
    fn arm(&mut self) -> bool {
        self.note("arm", &()).is_ok()
    }
    fn disarm(&mut self) {
        let _ = self.note("disarm", &());
    }
    fn observe_barrier(&self) {
        let _ = self.note("observe_barrier", &());
    }
}

/// A doorbell that wakes no thread.
#[derive(Clone, Debug)]
pub struct Silent;

impl LocalBell for Silent {
    fn ring_if_asleep(&self) {}
}

/// Rows in static memory: one member, one line.
#[derive(Clone)]
pub struct StaticRows(pub &'static [Line], pub Vec<Row<'static>>);

impl ViewRows for StaticRows {
    fn own(&self) -> Rank {
        Rank(0)
    }
    fn members(&self) -> &[NodeId] {
        &[NodeId(4)]
    }
    fn row(&self) -> RowWriter<'_> {
        RowWriter::from_lines(self.0)
    }
    fn rows(&self) -> &[Row<'_>] {
        &self.1
    }
}

pub fn static_rows() -> StaticRows {
    static LINES: [Line; 1] = [Line::new()];
    StaticRows(&LINES, vec![Row::from_lines(&LINES)])
}

/// A host fabric that relies on the trait's defaults wherever it can.
pub struct Unhurried;

impl Carries for Unhurried {
    fn limits(&self) -> Capabilities {
        OneMemory.limits()
    }
}

fabric!(Unhurried);

impl HostFabric for Unhurried {
    type Bell = Silent;
    type Rows = StaticRows;
    type MemoryError = ErrorKind;

    fn rows(&mut self, _: &ViewPlan<'_>) -> Result<StaticRows, ErrorKind> {
        Ok(static_rows())
    }
    fn local_bell(&self) -> Silent {
        Silent
    }
    fn sleep(&mut self, _: Duration) -> bool {
        false
    }
    fn check_peers(&mut self) -> bool {
        false
    }
    fn leave(&mut self) {}
}
