//! Lists of requests under construction.

use std::marker::PhantomData;

use super::libibverbs::{
    ibv_send_flags::{IBV_SEND_INLINE, IBV_SEND_SIGNALED},
    ibv_send_wr, ibv_sge, ibv_wr_opcode, rdma_t, wr_t,
};

use crate::adapter::{LocalRange, Operation, REQUESTS_MAX, Target};

/// Reusable memory for one list.
pub(crate) struct SendBuffers {
    pub(super) requests: Box<[ibv_send_wr; REQUESTS_MAX]>,
    pub(super) ranges: Box<[ibv_sge; REQUESTS_MAX]>,
}

// SAFETY: its pointers are set when a list is posted, and point into the two boxes.
unsafe impl Send for SendBuffers {}

impl SendBuffers {
    pub(crate) fn new() -> Self {
        // SAFETY: integers and nullable pointers: all zero is a valid value.
        let requests = Box::new(unsafe { std::mem::zeroed() });
        Self {
            requests,
            ranges: Box::new([const { ibv_sge { addr: 0, length: 0, lkey: 0 } }; REQUESTS_MAX]),
        }
    }
}

/// A list under construction. It borrows the memory that it refers to until it is posted.
pub(crate) struct SendList<'l> {
    buffers: &'l mut SendBuffers,
    count: usize,
    memory: PhantomData<LocalRange<'l>>,
}

impl<'l> SendList<'l> {
    pub(crate) fn new(buffers: &'l mut SendBuffers) -> Self {
        Self { buffers, count: 0, memory: PhantomData }
    }

    /// Adds a request for a range of registered memory, or for no bytes. Returns false, and adds
    /// nothing, if the list is full. Inline bytes are read when the list is posted.
    pub(crate) fn push(
        &mut self,
        name: u64,
        operation: Operation,
        bytes: Option<LocalRange<'l>>,
        inline: bool,
    ) -> bool {
        let (Some(request), Some(range)) =
            (self.buffers.requests.get_mut(self.count), self.buffers.ranges.get_mut(self.count))
        else {
            return false;
        };
        let ranges = i32::from(bytes.is_some());
        if let Some(bytes) = bytes {
            *range =
                ibv_sge { addr: bytes.address(), length: bytes.length(), lkey: bytes.local_key() };
        }
        let remote = |target: Target| rdma_t { remote_addr: target.address, rkey: target.key };
        let nowhere = rdma_t { remote_addr: 0, rkey: 0 };
        let (opcode, rdma, immediate) = match operation {
            Operation::Write(target) => (ibv_wr_opcode::IBV_WR_RDMA_WRITE, remote(target), 0),
            Operation::WriteWithImmediate(target, value) => {
                (ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM, remote(target), value)
            }
            Operation::Read(target) => (ibv_wr_opcode::IBV_WR_RDMA_READ, remote(target), 0),
            Operation::Send => (ibv_wr_opcode::IBV_WR_SEND, nowhere, 0),
        };
        request.wr_id = name;
        request.num_sge = ranges;
        request.opcode = opcode;
        request.send_flags = if inline && ranges == 1 { IBV_SEND_INLINE } else { 0 };
        request.imm_data = immediate.to_be();
        request.wr = wr_t { rdma, rest_of_atomic: [0; 2] };
        self.count += 1;
        true
    }

    /// Requests a completion of the last request.
    pub(crate) fn signal_last(&mut self) {
        if let Some(last) =
            self.count.checked_sub(1).and_then(|last| self.buffers.requests.get_mut(last))
        {
            last.send_flags |= IBV_SEND_SIGNALED;
        }
    }

    /// Returns the number of requests.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the buffers, to be chained and posted.
    pub(super) fn into_buffers(self) -> &'l mut SendBuffers {
        self.buffers
    }

    /// Returns whether the list is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}
