//! Reliable connections: a queue pair, its states, and posts to it.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::libibverbs::{
    ibv_create_qp, ibv_destroy_qp, ibv_gid, ibv_modify_qp, ibv_post_recv, ibv_post_send, ibv_qp,
    ibv_qp_attr, ibv_qp_attr_mask, ibv_qp_cap, ibv_qp_init_attr, ibv_qp_state, ibv_qp_type,
    ibv_query_qp, ibv_query_qp_data_in_order, ibv_recv_wr, ibv_sge, ibv_wr_opcode,
};

use super::send_list::{SendBuffers, SendList};
use super::{CompletionQueue, ProtectionDomain, check, last_error};
use crate::adapter::{Access, LocalRange, QueuePairLimits, QueuePairState, Route, SendTimes};
use crate::devices::DataInOrder;

/// A reliable connection to one peer.
#[derive(Debug)]
pub(crate) struct QueuePair {
    raw: NonNull<ibv_qp>,
    number: u32,
    inline_bytes_max: u32,
    _domain: Arc<ProtectionDomain>,
    _completions: Arc<CompletionQueue>,
}

// SAFETY: libibverbs may be called on one queue pair from several threads.
unsafe impl Send for QueuePair {}
// SAFETY: as above; nothing here changes through a shared reference.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Creates a queue pair in the reset state. Both of its queues report to one completion queue.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        completions: &Arc<CompletionQueue>,
        limits: QueuePairLimits,
    ) -> io::Result<Self> {
        let mut attributes = ibv_qp_init_attr {
            qp_context: std::ptr::null_mut(),
            send_cq: completions.raw(),
            recv_cq: completions.raw(),
            srq: std::ptr::null_mut(),
            cap: ibv_qp_cap {
                max_send_wr: limits.sends_max,
                max_recv_wr: limits.receives_max,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: limits.inline_bytes_max,
            },
            qp_type: ibv_qp_type::IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: domain and queue are valid, and are kept alive below; the call writes the granted
        // limits.
        let raw = unsafe { ibv_create_qp(domain.raw(), &raw mut attributes) };
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        // SAFETY: the queue pair has just been created.
        let number = unsafe { raw.as_ref() }.qp_num;
        Ok(Self {
            raw,
            number,
            inline_bytes_max: attributes.cap.max_inline_data,
            _domain: Arc::clone(domain),
            _completions: Arc::clone(completions),
        })
    }

    /// Returns the number that peers need; 24 bits.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the number of bytes that can be sent inline: at least as many as requested.
    pub(crate) const fn inline_bytes_max(&self) -> u32 {
        self.inline_bytes_max
    }

    /// Discards the connection and all posts, without completions for them. After this returns,
    /// nothing more is read or written here.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        self.change(ibv_qp_state::IBV_QPS_RESET, 0, |_| {})
    }

    /// Moves the queue pair from reset to initialised: binds it to a port and sets the remote end's
    /// rights.
    pub(crate) fn initialise(
        &mut self,
        port: u8,
        partition_index: u16,
        access: Access,
    ) -> io::Result<()> {
        let mask = ibv_qp_attr_mask::IBV_QP_PKEY_INDEX
            | ibv_qp_attr_mask::IBV_QP_PORT
            | ibv_qp_attr_mask::IBV_QP_ACCESS_FLAGS;
        self.change(ibv_qp_state::IBV_QPS_INIT, mask, |attributes| {
            attributes.pkey_index = partition_index;
            attributes.port_num = port;
            attributes.qp_access_flags = access.bits();
        })
    }

    /// Moves the queue pair from initialised to connected: sets the remote end's address. From then
    /// on, its packets are accepted.
    pub(crate) fn connect(&mut self, route: &Route) -> io::Result<()> {
        let mask = ibv_qp_attr_mask::IBV_QP_AV
            | ibv_qp_attr_mask::IBV_QP_PATH_MTU
            | ibv_qp_attr_mask::IBV_QP_DEST_QPN
            | ibv_qp_attr_mask::IBV_QP_RQ_PSN
            | ibv_qp_attr_mask::IBV_QP_MAX_DEST_RD_ATOMIC
            | ibv_qp_attr_mask::IBV_QP_MIN_RNR_TIMER;
        /// 0.64 ms: the time for which the remote end waits if no receive is posted.
        const NOT_READY_TIMER: u8 = 12;
        /// Maximum number of routers along the path.
        const HOPS_MAX: u8 = 64;
        self.change(ibv_qp_state::IBV_QPS_RTR, mask, |attributes| {
            attributes.path_mtu = route.mtu;
            attributes.dest_qp_num = route.remote_number;
            attributes.rq_psn = route.remote_packet;
            attributes.max_dest_rd_atomic = route.reads_max;
            attributes.min_rnr_timer = NOT_READY_TIMER;
            attributes.ah_attr.dlid = route.remote_lid;
            attributes.ah_attr.port_num = route.port;
            attributes.ah_attr.sl = route.service.level;
            attributes.ah_attr.is_global = u8::from(route.is_global);
            attributes.ah_attr.grh.dgid = ibv_gid::new(route.remote_gid.octets());
            attributes.ah_attr.grh.sgid_index = route.gid_index;
            attributes.ah_attr.grh.hop_limit = HOPS_MAX;
            attributes.ah_attr.grh.traffic_class = route.service.traffic_class;
        })
    }

    /// Enables sending on a connected queue pair.
    pub(crate) fn start(&mut self, times: &SendTimes) -> io::Result<()> {
        let mask = ibv_qp_attr_mask::IBV_QP_TIMEOUT
            | ibv_qp_attr_mask::IBV_QP_RETRY_CNT
            | ibv_qp_attr_mask::IBV_QP_RNR_RETRY
            | ibv_qp_attr_mask::IBV_QP_SQ_PSN
            | ibv_qp_attr_mask::IBV_QP_MAX_QP_RD_ATOMIC;
        self.change(ibv_qp_state::IBV_QPS_RTS, mask, |attributes| {
            attributes.timeout = times.timeout_exponent;
            attributes.retry_cnt = times.retries;
            // The value must be less than 7, which means "forever".
            attributes.rnr_retry = 6;
            attributes.sq_psn = times.first_packet;
            attributes.max_rd_atomic = times.reads_max;
        })
    }

    /// Queries the state from the device.
    pub(crate) fn state(&self) -> QueuePairState {
        let mut attributes = blank();
        // SAFETY: numbers, null pointers and nullable handles: all zero is a valid value.
        let mut made_with: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        let mask = i32::try_from(ibv_qp_attr_mask::IBV_QP_STATE).unwrap_or(0);
        // SAFETY: the queue pair is valid; both structures are writable.
        let result = unsafe {
            ibv_query_qp(self.raw.as_ptr(), &raw mut attributes, mask, &raw mut made_with)
        };
        match (result, attributes.qp_state) {
            (0, ibv_qp_state::IBV_QPS_RESET) => QueuePairState::Reset,
            (0, ibv_qp_state::IBV_QPS_INIT) => QueuePairState::Initialised,
            (0, ibv_qp_state::IBV_QPS_RTR) => QueuePairState::ReadyToReceive,
            (0, ibv_qp_state::IBV_QPS_RTS) => QueuePairState::ReadyToSend,
            (0, ibv_qp_state::IBV_QPS_SQD) => QueuePairState::Draining,
            (0, ibv_qp_state::IBV_QPS_SQE) => QueuePairState::SendError,
            (0, ibv_qp_state::IBV_QPS_ERR) => QueuePairState::Error,
            _ => QueuePairState::Unknown,
        }
    }

    /// Returns whether the bytes of incoming writes are placed in order, according to the device.
    pub(crate) fn data_in_order(&self) -> DataInOrder {
        let operation = ibv_wr_opcode::IBV_WR_RDMA_WRITE;
        // SAFETY: the queue pair is valid; no flags.
        match unsafe { ibv_query_qp_data_in_order(self.raw.as_ptr(), operation, 0) } {
            None => DataInOrder::NotKnown,
            Some(1) => DataInOrder::Yes,
            Some(_) => DataInOrder::No,
        }
    }

    fn change(
        &mut self,
        to: ibv_qp_state::Type,
        mask: ibv_qp_attr_mask::Type,
        fill: impl FnOnce(&mut ibv_qp_attr),
    ) -> io::Result<()> {
        let mut attributes = blank();
        attributes.qp_state = to;
        fill(&mut attributes);
        self.modify(&mut attributes, mask | ibv_qp_attr_mask::IBV_QP_STATE)
    }

    fn modify(
        &mut self,
        attributes: &mut ibv_qp_attr,
        mask: ibv_qp_attr_mask::Type,
    ) -> io::Result<()> {
        let mask = i32::try_from(mask).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the queue pair is valid; the call reads the fields named in the mask.
        check(unsafe { ibv_modify_qp(self.raw.as_ptr(), attributes, mask) })
    }

    /// Posts a list with one doorbell.
    ///
    /// # Errors
    /// After an error a part of the list may be in flight, and the queue pair can no longer be
    /// trusted.
    pub(crate) fn post(&mut self, list: SendList<'_>) -> io::Result<()> {
        let count = list.count();
        if count == 0 {
            return Ok(());
        }
        let SendBuffers { requests, ranges } = list.into_buffers();
        let (requests, ranges) = (requests.as_mut_ptr(), ranges.as_mut_ptr());
        for index in 0..count {
            let is_last = index + 1 == count;
            // SAFETY: `count` is at most the length of both boxes, which have no other borrow now.
            unsafe {
                let request = requests.add(index);
                (*request).sg_list = ranges.add(index);
                (*request).next =
                    if is_last { std::ptr::null_mut() } else { requests.add(index + 1) };
            }
        }
        let mut bad = std::ptr::null_mut();
        // SAFETY: a terminated chain of `count` requests. Each names at most one range, inside
        // registered memory that the list borrows, so inline bytes are readable; the device reads
        // other bytes through their registration. The queue pair is valid.
        check(unsafe { ibv_post_send(self.raw.as_ptr(), requests, &raw mut bad) })
    }

    /// Posts a receive: for immediate values without bytes, or into a range of registered memory.
    pub(crate) fn post_receive(
        &mut self,
        name: u64,
        into: Option<LocalRange<'_>>,
    ) -> io::Result<()> {
        let mut range = into.map_or(NOWHERE, |range| ibv_sge {
            addr: range.address(),
            length: range.length(),
            lkey: range.local_key(),
        });
        let mut request = ibv_recv_wr {
            wr_id: name,
            next: std::ptr::null_mut(),
            sg_list: &raw mut range,
            num_sge: i32::from(into.is_some()),
        };
        let mut bad = std::ptr::null_mut();
        // SAFETY: one request and its range, read during the call; the bytes are in registered
        // memory. The queue pair is valid.
        check(unsafe { ibv_post_recv(self.raw.as_ptr(), &raw mut request, &raw mut bad) })
    }
}

/// No bytes.
const NOWHERE: ibv_sge = ibv_sge { addr: 0, length: 0, lkey: 0 };

/// Returns empty attributes.
fn blank() -> ibv_qp_attr {
    // SAFETY: numbers and bytes: all zero is a valid value.
    unsafe { std::mem::zeroed() }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: destroyed once; domain and completion queue exist until after the call.
        unsafe { ibv_destroy_qp(self.raw.as_ptr()) };
    }
}
