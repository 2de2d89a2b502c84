//! Lists of requests under construction.

use std::marker::PhantomData;

use super::request::{LocalBytes, Request, Work};
use super::window::BindWindow;
use super::{MemoryWindow, Registration};
use crate::adapter::{Access, LocalRange, MemoryRegion, Operation, REQUESTS_MAX};

/// Reusable room for one list.
pub(crate) struct SendBuffers {
    requests: Vec<Request>,
}

impl SendBuffers {
    pub(crate) fn new() -> Self {
        Self { requests: Vec::with_capacity(REQUESTS_MAX) }
    }
}

/// A list under construction. It borrows the memory that it names until it is posted.
pub(crate) struct SendList<'l> {
    requests: &'l mut Vec<Request>,
    memory: PhantomData<&'l MemoryRegion>,
}

impl<'l> SendList<'l> {
    pub(crate) fn new(buffers: &'l mut SendBuffers) -> Self {
        buffers.requests.clear();
        Self { requests: &mut buffers.requests, memory: PhantomData }
    }

    /// Adds a request for a range of registered memory, or for no bytes. Returns false, and adds
    /// nothing, if the list is full.
    pub(crate) fn push(
        &mut self,
        name: u64,
        operation: Operation,
        bytes: Option<LocalRange<'l>>,
        inline: bool,
    ) -> bool {
        let mut request = Request::new(name, Work::Remote(operation), bytes.map(LocalBytes::from));
        request.is_inline = inline && bytes.is_some();
        self.push_work(request)
    }

    /// Returns whether another request can be added.
    pub(crate) const fn has_room(&self) -> bool {
        self.requests.len() < REQUESTS_MAX
    }

    /// Adds a request that binds a window to a part of a region, under a key. False, and nothing is
    /// added, if the list is full.
    pub(crate) fn push_bind(
        &mut self,
        name: u64,
        window: &MemoryWindow,
        region: &Registration,
        range: LocalRange<'l>,
        access: Access,
        key: u32,
    ) -> bool {
        let (window, region, range) = (window.id, region.id, LocalBytes::from(range));
        let bind = BindWindow { window, region, range, access, key };
        self.push_work(Request::new(name, Work::Bind(bind), None))
    }

    /// Adds a request that takes a window's key back. False, and nothing is added, if the list is
    /// full.
    pub(crate) fn push_invalidate(&mut self, name: u64, key: u32) -> bool {
        self.push_work(Request::new(name, Work::Invalidate(key), None))
    }

    fn push_work(&mut self, request: Request) -> bool {
        let has_room = self.has_room();
        if has_room {
            self.requests.push(request);
        }
        has_room
    }

    /// Requests a completion of the last request.
    pub(crate) fn signal_last(&mut self) {
        if let Some(last) = self.requests.last_mut() {
            last.is_signalled = true;
        }
    }

    /// Returns whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns the requests to post.
    pub(super) fn into_requests(self) -> &'l [Request] {
        self.requests
    }
}

impl From<LocalRange<'_>> for LocalBytes {
    fn from(range: LocalRange<'_>) -> Self {
        Self { address: range.address(), length: range.length(), key: range.local_key() }
    }
}
