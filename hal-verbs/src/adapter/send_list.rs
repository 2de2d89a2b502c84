//! Lists of requests under construction.

use super::{Context, MemoryRegion, Operation, context};
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

/// Reusable memory for one list.
pub(crate) struct SendBuffers {
    inner: BuffersInner,
}

enum BuffersInner {
    Library(ffi::SendBuffers),
    #[cfg(feature = "fake")]
    Fake(fake::SendBuffers),
}

impl SendBuffers {
    /// Creates buffers for the queue pairs of a context.
    pub(crate) fn new(context: &Context) -> Self {
        let inner = match context.inner() {
            context::Inner::Library(_) => BuffersInner::Library(ffi::SendBuffers::new()),
            #[cfg(feature = "fake")]
            context::Inner::Fake(_) => BuffersInner::Fake(fake::SendBuffers::new()),
        };
        Self { inner }
    }
}

/// A list under construction. It borrows the memory that it refers to until it is posted.
pub(crate) struct SendList<'l> {
    inner: ListInner<'l>,
}

pub(super) enum ListInner<'l> {
    Library(ffi::SendList<'l>),
    #[cfg(feature = "fake")]
    Fake(fake::SendList<'l>),
}

/// Makes the same call on a list of either kind.
macro_rules! either_list {
    ($list:expr, $inner:pat => $call:expr) => {
        match $list {
            ListInner::Library($inner) => $call,
            #[cfg(feature = "fake")]
            ListInner::Fake($inner) => $call,
        }
    };
}

impl<'l> SendList<'l> {
    /// Starts an empty list.
    #[inline]
    pub(crate) fn new(buffers: &'l mut SendBuffers) -> Self {
        let inner = match &mut buffers.inner {
            BuffersInner::Library(buffers) => ListInner::Library(ffi::SendList::new(buffers)),
            #[cfg(feature = "fake")]
            BuffersInner::Fake(buffers) => ListInner::Fake(fake::SendList::new(buffers)),
        };
        Self { inner }
    }

    /// Adds a request for a range of registered memory, or for no bytes. Returns false, and adds
    /// nothing, if the range is out of bounds or the list is full. Inline bytes are read when the
    /// list is posted.
    #[inline]
    pub(crate) fn push(
        &mut self,
        name: u64,
        operation: Operation,
        bytes: Option<(&'l MemoryRegion, usize, usize)>,
        inline: bool,
    ) -> bool {
        let range = match bytes {
            None => None,
            Some((region, offset, length)) => match region.range(offset, length) {
                None => return false,
                range => range,
            },
        };
        either_list!(&mut self.inner, list => list.push(name, operation, range, inline))
    }

    /// Requests a completion of the last request.
    #[inline]
    pub(crate) fn signal_last(&mut self) {
        either_list!(&mut self.inner, list => list.signal_last());
    }

    /// Returns whether the list is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        either_list!(&self.inner, list => list.is_empty())
    }

    /// Returns the list in the form that a queue pair of its kind takes.
    #[inline]
    pub(super) fn into_inner(self) -> ListInner<'l> {
        self.inner
    }
}
