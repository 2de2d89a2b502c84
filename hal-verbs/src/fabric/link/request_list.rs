//! A connection's list of requests, which is posted with one doorbell.

use tramontane_core::fabric::{ErrorKind, Token};

use crate::adapter::{MemoryRegion, Operation, QueuePair, SendBuffers, SendList, Target};
use crate::protocol::{Counters, Name, SendQueue};

/// The request that follows a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    /// A notice, identified by its immediate value.
    Notice(u32),
    /// A completion, even if none was requested.
    Completion,
}

/// A list under construction. It borrows the memory that it refers to until it is posted.
pub(super) struct RequestList<'l> {
    list: SendList<'l>,
    index: u16,
    number: u64,
}

impl<'l> RequestList<'l> {
    /// Starts an empty list for the connection with this index. Its requests are numbered after
    /// those that its queue has posted.
    #[inline]
    pub(super) fn new(buffers: &'l mut SendBuffers, index: u16, queue: &SendQueue) -> Self {
        Self { list: SendList::new(buffers), index, number: queue.posted() }
    }

    /// Returns the number that the next request gets.
    #[inline]
    pub(super) const fn next_number(&self) -> u64 {
        self.number
    }

    /// Returns whether the list is empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a request for a range of registered memory, or for no bytes. Inline bytes are read when
    /// the list is posted.
    ///
    /// # Errors
    /// Fails if the range is out of bounds or the list is full.
    #[inline]
    pub(super) fn push(
        &mut self,
        operation: Operation,
        range: Option<(&'l MemoryRegion, usize, usize)>,
        is_inline: bool,
    ) -> Result<(), ErrorKind> {
        let name = Name::send(self.index, self.number).raw();
        if !self.list.push(name, operation, range, is_inline) {
            return Err(ErrorKind::OutOfRange);
        }
        self.number += 1;
        Ok(())
    }

    /// Adds the notice that follows a list, if one does.
    #[inline]
    pub(super) fn push_notice(
        &mut self,
        to: Target,
        behind: Behind,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let Behind::Notice(notice) = behind else { return Ok(()) };
        counters.notices_sent += 1;
        self.push(Operation::WriteWithImmediate(to, notice), None, false)
    }

    /// Posts the list. Its last request is signalled if the caller wants that, if there is a token,
    /// or if enough requests were posted since the previous signalled one.
    #[inline]
    pub(super) fn post(
        self,
        queue_pair: &mut QueuePair,
        queue: &mut SendQueue,
        is_signalled: bool,
        token: Option<Token>,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let Self { mut list, number, .. } = self;
        let requests = number - queue.posted();
        let is_signalled = queue.signals(requests, is_signalled || token.is_some());
        if is_signalled {
            list.signal_last();
            counters.signalled += 1;
        }
        counters.doorbells += 1;
        queue.push(requests, is_signalled, token);
        queue_pair.post(list).map_err(|_| ErrorKind::PeerLost)
    }
}
