//! A fabric whose calls are implemented in C.

use core::ffi::c_void;

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, LossCause, Promises, Region, Token, ViewMemory,
    WRITES_MAX, Write,
};
use tramontane_core::ids::{Rank, ViewId};

/// A range of bytes of the local row that a peer should receive, at the same offset in its copy.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tramontane_write {
    /// Offset in bytes from the start of the row.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
}

/// The post accepted the whole list, with the bytes as they were at the call.
pub const TRAMONTANE_TAKEN: i32 = 0;
/// The post accepted nothing of the list, because there is no room now.
pub const TRAMONTANE_QUEUE_FULL: i32 = 1;
/// The connection to the peer is lost. Any other result of a post is treated as this one.
pub const TRAMONTANE_PEER_LOST: i32 = 2;

/// Carries writes. Writes to one peer become visible in the order of the calls, and each aligned
/// group of 8 bytes becomes visible at once. No call waits, and no call calls the node.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tramontane_fabric {
    /// Value that is passed to each call.
    pub context: *mut c_void,
    /// Accepts either a whole list of writes to one peer or nothing of it. The bytes are copied
    /// before the call returns.
    pub post: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            peer: u16,
            writes: *const tramontane_write,
            count: usize,
        ) -> i32,
    >,
    /// Returns whether a peer has been lost since the last call, and if so stores its rank. May be
    /// null.
    pub lost: Option<unsafe extern "C" fn(context: *mut c_void, peer: *mut u16) -> bool>,
    /// Size in bytes of the largest write.
    pub write_bytes_max: usize,
}

/// Passes the core's calls to the fabric of the C program.
pub(crate) struct Carried<'f>(pub(crate) &'f tramontane_fabric);

impl Fabric for Carried<'_> {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: Promises::WRITE_ORDER,
            writes_max: WRITES_MAX,
            write_bytes_max: self.0.write_bytes_max,
            guard_bytes_max: self.0.write_bytes_max,
            // Without address order, each message is a separate write anyway.
            write_overhead_bytes: 0,
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
        _: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let Some(post) = self.0.post else { return Err(ErrorKind::Other) };
        let mut list = [tramontane_write { offset: 0, length: 0 }; WRITES_MAX];
        if writes.len() > list.len() {
            return Err(ErrorKind::OutOfRange);
        }
        for (to, from) in list.iter_mut().zip(writes) {
            let is_of_row = [from.source.region, from.target.region] == [Region::ROW; 2];
            if !is_of_row || from.source.offset != from.target.offset {
                return Err(ErrorKind::OutOfRange);
            }
            *to = tramontane_write { offset: from.source.offset, length: from.length };
        }
        // SAFETY: the provider of the fabric has promised that its calls may be made in this way.
        match unsafe { post(self.0.context, to.get(), list.as_ptr(), writes.len()) } {
            TRAMONTANE_TAKEN => Ok(()),
            TRAMONTANE_QUEUE_FULL => Err(ErrorKind::QueueFull),
            _ => Err(ErrorKind::PeerLost),
        }
    }

    fn poll(&mut self) -> Option<Event> {
        let lost = self.0.lost?;
        let mut peer = 0;
        // SAFETY: as above; the pointer refers to a local variable.
        let was_lost = unsafe { lost(self.0.context, &raw mut peer) };
        let (view, peer, cause) = (crate::node::VIEW, Rank(peer), LossCause::Unreachable);
        was_lost.then_some(Event::PeerLost { view, peer, cause })
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        true
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {}
}
