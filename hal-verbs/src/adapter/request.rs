//! Requests and their completions as plain data.

use std::marker::PhantomData;

use tramontane_core::fabric::WRITES_MAX;

bitflags::bitflags! {
    /// Access rights, as in `<infiniband/verbs.h>`. Relaxed ordering is not among them, because
    /// rows need order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Access: u32 {
        /// The local device may write.
        const LOCAL_WRITE = 1;
        /// Peers may write.
        const REMOTE_WRITE = 1 << 1;
        /// Peers may read.
        const REMOTE_READ = 1 << 2;
    }
}

/// Maximum number of requests in one list: the writes of a post, an update, and a ring that follows
/// them.
pub(crate) const REQUESTS_MAX: usize = WRITES_MAX + 2;

/// An address in the remote end's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) address: u64,
    pub(crate) key: u32,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Write(Target),
    WriteWithImmediate(Target, u32),
    Read(Target),
    Send,
}

/// A range inside a registration, which is borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalRange<'r> {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) local_key: u32,
    pub(super) region: PhantomData<&'r ()>,
}

impl LocalRange<'_> {
    /// Returns the start address.
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }

    /// Returns the length in bytes.
    pub(crate) const fn length(&self) -> u32 {
        self.length
    }

    /// Returns the key of the range's registration.
    pub(crate) const fn local_key(&self) -> u32 {
        self.local_key
    }
}

/// Maximum number of completions taken per call.
pub(crate) const BATCH: usize = 32;

/// A completion. If the request failed, only the name, the status and the vendor's error are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The name with which the request was posted.
    pub(crate) name: u64,
    /// `enum ibv_wc_status`.
    pub(crate) status: u32,
    /// The vendor's error code, which gives details of the status.
    pub(crate) vendor_error: u32,
    /// Bytes received.
    pub(crate) bytes: u32,
    /// The immediate value, if there was one.
    pub(crate) immediate: Option<u32>,
}
