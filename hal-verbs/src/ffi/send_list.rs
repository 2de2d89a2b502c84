//! Lists of requests, as they are built before they are posted.

use std::marker::PhantomData;

use rdma_sys::{ibv_send_wr, ibv_sge, ibv_wr_opcode, rdma_t, wr_t};
use tramontane_core::fabric::WRITES_MAX;

use super::MemoryRegion;

/// The most requests of one list: the writes of a post, and a ring behind them.
pub(crate) const REQUESTS_MAX: usize = WRITES_MAX + 1;

/// `IBV_SEND_SIGNALED` and `IBV_SEND_INLINE` in `<infiniband/verbs.h>`.
const SIGNALLED: u32 = 1 << 1;
const INLINE: u32 = 1 << 3;

/// A place at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) address: u64,
    pub(crate) key: u32,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Write(Target),
    WriteWithImmediate(Target, u32),
    Read(Target),
    Send,
}

/// Room for one list, used again and again.
pub(crate) struct SendBuffers {
    pub(super) requests: Box<[ibv_send_wr; REQUESTS_MAX]>,
    pub(super) ranges: Box<[ibv_sge; REQUESTS_MAX]>,
}

// SAFETY: pointers in it are set when a list is posted, and point into the two boxes.
unsafe impl Send for SendBuffers {}

impl SendBuffers {
    pub(crate) fn new() -> Self {
        // SAFETY: integers, pointers that may be null, and unions of those: all zero is a value.
        let requests = Box::new(unsafe { std::mem::zeroed() });
        Self {
            requests,
            ranges: Box::new([const { ibv_sge { addr: 0, length: 0, lkey: 0 } }; REQUESTS_MAX]),
        }
    }
}

/// A list under construction. It borrows the memory that it names until it is posted.
pub(crate) struct SendList<'l> {
    buffers: &'l mut SendBuffers,
    count: usize,
    memory: PhantomData<&'l MemoryRegion>,
}

impl<'l> SendList<'l> {
    pub(crate) fn new(buffers: &'l mut SendBuffers) -> Self {
        Self { buffers, count: 0, memory: PhantomData }
    }

    /// Adds a request for a range of registered memory, or for no bytes. False, and nothing is
    /// added, if the range does not lie inside or the list is full. Bytes that go inline are read
    /// when the list is posted.
    pub(crate) fn push(
        &mut self,
        name: u64,
        operation: Operation,
        bytes: Option<(&'l MemoryRegion, usize, usize)>,
        inline: bool,
    ) -> bool {
        let (Some(request), Some(range)) =
            (self.buffers.requests.get_mut(self.count), self.buffers.ranges.get_mut(self.count))
        else {
            return false;
        };
        let ranges = i32::from(bytes.is_some());
        if let Some((region, offset, length)) = bytes {
            let (Some(address), Ok(length)) = (region.range(offset, length), u32::try_from(length))
            else {
                return false;
            };
            *range = ibv_sge { addr: address, length, lkey: region.local_key() };
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
        request.send_flags = if inline && ranges == 1 { INLINE } else { 0 };
        request.imm_data_invalidated_rkey_union.imm_data = immediate.to_be();
        request.wr = wr_t { rdma };
        self.count += 1;
        true
    }

    /// Asks for a completion of the last request.
    pub(crate) fn signal_last(&mut self) {
        if let Some(last) =
            self.count.checked_sub(1).and_then(|last| self.buffers.requests.get_mut(last))
        {
            last.send_flags |= SIGNALLED;
        }
    }

    /// How many requests it has.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Where they are, to be chained and posted.
    pub(super) fn into_buffers(self) -> &'l mut SendBuffers {
        self.buffers
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}
