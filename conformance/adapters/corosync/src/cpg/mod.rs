//! Corosync's closed process groups: the only file with foreign calls.
//!
//! - [`Connection`] sends, joins and leaves; any thread may.
//! - [`Inbox`] makes the upcalls; there is one for each connection, and it cannot be cloned. So the
//!   context that the library hands to upcalls is set by one thread at a time, and only while it
//!   dispatches.

mod error;
mod ffi;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use std::time::Duration;

pub use error::CorosyncError;
use error::outcome;

/// A process in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The node of its daemon.
    pub nodeid: u32,
    /// The process.
    pub pid: u32,
}

/// Why a process joined or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It called `cpg_join`.
    Join,
    /// It called `cpg_leave`.
    Leave,
    /// Its node is no longer in the ring.
    NodeDown,
    /// Its node came into the ring, and it was a member there.
    NodeUp,
    /// It ended, or closed its connection.
    ProcessDown,
    /// A number that this adapter does not know.
    Unknown(u32),
}

/// What Corosync says when the membership of a group changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// All members, in Corosync's order: by node, then by process.
    pub members: Vec<Address>,
    /// The members that are gone.
    pub left: Vec<(Address, Reason)>,
    /// The members that are new.
    pub joined: Vec<(Address, Reason)>,
}

/// The id of a ring of daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ring {
    /// Rises with each ring of a node.
    pub seq: u64,
    /// The node that leads it. Two rings that came from one may have the same `seq`, not the same
    /// leader.
    pub nodeid: u32,
}

/// What a member of a group is told.
pub trait Upcalls {
    /// A message came.
    fn deliver(&mut self, from: Address, payload: &[u8]);
    /// The group's membership changed.
    fn change(&mut self, change: Change);
    /// The daemons formed a ring, and the changes that come from it were told.
    fn ring(&mut self, ring: Ring);
    /// Whether nothing more is wanted.
    fn is_over(&self) -> bool;
}

/// The library's handle, closed with its last user.
#[derive(Debug)]
struct Open(ffi::Handle);

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the handle came from `cpg_model_initialize`, and nobody uses it after this. A
        // failure leaves nothing to do: the daemon cleans up when the process ends.
        let _ = unsafe { ffi::cpg_finalize(self.0) };
    }
}

/// One connection to the daemon, for one group.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Open>);

/// Where a connection's upcalls are made.
#[derive(Debug)]
pub struct Inbox(Arc<Open>);

impl Connection {
    /// Connects to the daemon.
    ///
    /// # Errors
    /// The library's; [`CorosyncError::TRY_AGAIN`] and [`CorosyncError::LIBRARY`] while the daemon
    /// starts.
    pub fn open() -> Result<(Self, Inbox), CorosyncError> {
        let mut handle = 0;
        let mut model = ffi::ModelV1 {
            model: ffi::MODEL_V1,
            deliver: on_deliver,
            change: on_change,
            ring: on_ring,
            flags: ffi::DELIVER_INITIAL_TOTEM_CONF,
        };
        // SAFETY: both pointers are to live locals of the layouts in `cpg.h`; the library copies
        // the model.
        outcome(unsafe {
            ffi::cpg_model_initialize(&mut handle, ffi::MODEL_V1, &mut model, std::ptr::null_mut())
        })?;
        let open = Arc::new(Open(handle));
        Ok((Self(Arc::clone(&open)), Inbox(open)))
    }

    /// This node's number.
    ///
    /// # Errors
    /// The library's.
    pub fn nodeid(&self) -> Result<u32, CorosyncError> {
        let mut nodeid: c_uint = 0;
        // SAFETY: the handle is open, the pointer is to a live local.
        outcome(unsafe { ffi::cpg_local_get(self.0.0, &mut nodeid) }).map(|()| nodeid)
    }

    /// Asks to become a member of `group`. It is one when its first change of membership was told.
    ///
    /// # Errors
    /// The library's.
    pub fn join(&self, group: &GroupName) -> Result<(), CorosyncError> {
        // SAFETY: the handle is open, the name lives through the call and is not kept.
        outcome(unsafe { ffi::cpg_join(self.0.0, &group.0) })
    }

    /// Asks to leave `group`. It has left when that change of membership was told.
    ///
    /// # Errors
    /// The library's.
    pub fn leave(&self, group: &GroupName) -> Result<(), CorosyncError> {
        // SAFETY: as for `join`.
        outcome(unsafe { ffi::cpg_leave(self.0.0, &group.0) })
    }

    /// Sends to the group that was joined, in the order that all agree on.
    ///
    /// # Errors
    /// The library's; [`CorosyncError::TRY_AGAIN`] where there is no room, or the ring is being
    /// formed.
    pub fn multicast(&self, payload: &[u8]) -> Result<(), CorosyncError> {
        let part =
            libc::iovec { iov_base: payload.as_ptr() as *mut c_void, iov_len: payload.len() };
        // SAFETY: the handle is open; the library only reads the one part, and keeps no pointer to
        // it.
        outcome(unsafe { ffi::cpg_mcast_joined(self.0.0, ffi::TYPE_AGREED, &part, 1) })
    }
}

impl Inbox {
    /// Waits up to `patience` for something to tell, and makes all upcalls that are due.
    ///
    /// # Errors
    /// The library's: the daemon is gone.
    pub fn dispatch(
        &mut self,
        patience: Duration,
        upcalls: &mut dyn Upcalls,
    ) -> Result<(), CorosyncError> {
        let hung_up = self.wait(patience)?;
        let mut context = Context { upcalls };
        // SAFETY: the handle is open. The context outlives its use: it is taken back below, and
        // upcalls are made only inside `cpg_dispatch`, by this thread, since `self` is borrowed
        // alone.
        outcome(unsafe { ffi::cpg_context_set(self.0.0, (&raw mut context).cast()) })?;
        let mut told = Ok(());
        while told.is_ok() && !context.upcalls.is_over() {
            // SAFETY: the handle is open, and its upcalls are the functions below.
            told = outcome(unsafe { ffi::cpg_dispatch(self.0.0, ffi::DISPATCH_ONE_NONBLOCKING) });
        }
        // SAFETY: the handle is open.
        outcome(unsafe { ffi::cpg_context_set(self.0.0, std::ptr::null_mut()) })?;
        match told {
            Err(CorosyncError::TRY_AGAIN) if hung_up => Err(CorosyncError::LIBRARY),
            Err(CorosyncError::TRY_AGAIN) => Ok(()),
            over_or_error => over_or_error,
        }
    }

    /// Sleeps until the daemon has something to tell, at most for `patience`. Says whether the
    /// daemon hung up: what it told before can still be had.
    fn wait(&self, patience: Duration) -> Result<bool, CorosyncError> {
        let mut descriptor: c_int = -1;
        // SAFETY: the handle is open, the pointer is to a live local.
        outcome(unsafe { ffi::cpg_fd_get(self.0.0, &mut descriptor) })?;
        let mut waited = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        let patience_ms = c_int::try_from(patience.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: one live entry. A failure, which is a signal's, only ends the wait early.
        unsafe { libc::poll(&mut waited, 1, patience_ms) };
        Ok(waited.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0)
    }
}

/// A group's name as the library takes it.
pub struct GroupName(ffi::Name);

impl GroupName {
    /// The name, or nothing if it is too long.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        if name.len() >= ffi::NAME_BYTES_MAX {
            return None;
        }
        let mut value = [0; ffi::NAME_BYTES_MAX];
        for (to, from) in value.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        Some(Self(ffi::Name { length: name.len() as u32, value }))
    }
}

/// What the library carries to the upcalls.
struct Context<'a> {
    upcalls: &'a mut dyn Upcalls,
}

/// Calls `tell` with the receiver of upcalls, if a dispatch is under way.
fn with_upcalls(handle: ffi::Handle, tell: impl FnOnce(&mut dyn Upcalls)) {
    let mut context: *mut c_void = std::ptr::null_mut();
    // SAFETY: the library calls from within `cpg_dispatch`, so the handle is open.
    if outcome(unsafe { ffi::cpg_context_get(handle, &mut context) }).is_err() || context.is_null()
    {
        return;
    }
    // SAFETY: a context that is not null was set by `dispatch`, which is waiting for this upcall to
    // return.
    let context = unsafe { &mut *context.cast::<Context<'_>>() };
    tell(context.upcalls);
}

/// The library's list as a slice; an empty one may come with any pointer.
///
/// # Safety
/// `first` is the first of `count` entries that live as long as the upcall.
unsafe fn entries<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if count == 0 || first.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(first, count) }
}

fn address(of: &ffi::Address) -> Address {
    Address { nodeid: of.nodeid, pid: of.pid }
}

fn with_reason(of: &ffi::Address) -> (Address, Reason) {
    let reason = match of.reason {
        1 => Reason::Join,
        2 => Reason::Leave,
        3 => Reason::NodeDown,
        4 => Reason::NodeUp,
        5 => Reason::ProcessDown,
        other => Reason::Unknown(other),
    };
    (address(of), reason)
}

unsafe extern "C" fn on_deliver(
    handle: ffi::Handle,
    _group: *const ffi::Name,
    nodeid: u32,
    pid: u32,
    message: *mut c_void,
    message_bytes: usize,
) {
    // SAFETY: the library lends `message_bytes` bytes for the time of the upcall.
    let payload = unsafe { entries(message.cast::<u8>().cast_const(), message_bytes) };
    with_upcalls(handle, |upcalls| upcalls.deliver(Address { nodeid, pid }, payload));
}

unsafe extern "C" fn on_change(
    handle: ffi::Handle,
    _group: *const ffi::Name,
    members: *const ffi::Address,
    members_count: usize,
    left: *const ffi::Address,
    left_count: usize,
    joined: *const ffi::Address,
    joined_count: usize,
) {
    // SAFETY: the library lends three lists of these lengths for the time of the upcall.
    let (members, left, joined) = unsafe {
        (entries(members, members_count), entries(left, left_count), entries(joined, joined_count))
    };
    let change = Change {
        members: members.iter().map(address).collect(),
        left: left.iter().map(with_reason).collect(),
        joined: joined.iter().map(with_reason).collect(),
    };
    with_upcalls(handle, |upcalls| upcalls.change(change));
}

unsafe extern "C" fn on_ring(
    handle: ffi::Handle,
    ring: ffi::RingId,
    _count: u32,
    _nodes: *const u32,
) {
    with_upcalls(handle, |upcalls| upcalls.ring(Ring { seq: ring.seq, nodeid: ring.nodeid }));
}
