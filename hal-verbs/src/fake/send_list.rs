//! Lists of requests under construction.

use std::marker::PhantomData;

use super::request::{LocalBytes, PostedRequest};
use crate::adapter::{LocalRange, Operation, REQUESTS_MAX};

/// Reusable memory for one list.
pub(crate) struct SendBuffers {
    requests: Vec<PostedRequest>,
}

impl SendBuffers {
    pub(crate) fn new() -> Self {
        Self { requests: Vec::with_capacity(REQUESTS_MAX) }
    }
}

/// A list under construction. It borrows the memory that it refers to until it is posted.
pub(crate) struct SendList<'l> {
    requests: &'l mut Vec<PostedRequest>,
    memory: PhantomData<LocalRange<'l>>,
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
        if self.requests.len() >= REQUESTS_MAX {
            return false;
        }
        let mut request = PostedRequest::new(name, operation, bytes.map(LocalBytes::from));
        request.is_inline = inline && bytes.is_some();
        self.requests.push(request);
        true
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
    pub(super) fn into_requests(self) -> &'l [PostedRequest] {
        self.requests
    }
}

impl From<LocalRange<'_>> for LocalBytes {
    fn from(range: LocalRange<'_>) -> Self {
        Self { address: range.address(), length: range.length(), key: range.local_key() }
    }
}
