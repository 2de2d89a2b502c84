//! The structures of `<infiniband/verbs.h>`. They are complete if this program creates them; if
//! only libibverbs creates them, they end with the last field that is read.

#![allow(non_camel_case_types, reason = "the names of C")]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Declares a structure that only libibverbs reads.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            #[repr(C)]
            pub(in crate::ffi) struct $name {
                _private: [u8; 0],
            }
        )*
    };
}

opaque! { ibv_srq }

/// Declares structures, and the list of their fields for the comparison with the header. The size
/// of a `whole` one is compared too; a `beginning` has more fields in C, and is never created here.
macro_rules! structures {
    ($($extent:ident $name:ident { $($field:ident: $kind:ty,)* })*) => {
        $(
            /// The structure of the same name in `<infiniband/verbs.h>`.
            #[repr(C)]
            #[allow(dead_code, reason = "what stands before a field that is used")]
            pub(in crate::ffi) struct $name {
                $(pub(in crate::ffi) $field: $kind,)*
            }
        )*

        /// For each structure: whether it is whole, its size, and its fields with their offsets and
        /// sizes.
        #[cfg(test)]
        pub(super) const DECLARED: &[super::against_the_header::Declared] = &[
            $(super::against_the_header::Declared {
                name: stringify!($name),
                is_whole: matches!(stringify!($extent).as_bytes(), b"whole"),
                bytes: size_of::<$name>(),
                fields: &[$((
                    stringify!($field),
                    std::mem::offset_of!($name, $field),
                    super::against_the_header::size_of_field(|it: &$name| &raw const it.$field),
                ),)*],
            },)*
        ];
    };
}

structures! {
    whole ibv_device_attr {
        fw_ver: [c_char; 64],
        node_guid: u64,
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: c_int,
        max_qp_wr: c_int,
        device_cap_flags: c_uint,
        max_sge: c_int,
        max_sge_rd: c_int,
        max_cq: c_int,
        max_cqe: c_int,
        max_mr: c_int,
        max_pd: c_int,
        max_qp_rd_atom: c_int,
        max_ee_rd_atom: c_int,
        max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
        max_ee_init_rd_atom: c_int,
        atomic_cap: c_uint,
        max_ee: c_int,
        max_rdd: c_int,
        max_mw: c_int,
        max_raw_ipv6_qp: c_int,
        max_raw_ethy_qp: c_int,
        max_mcast_grp: c_int,
        max_mcast_qp_attach: c_int,
        max_total_mcast_qp_attach: c_int,
        max_ah: c_int,
        max_fmr: c_int,
        max_map_per_fmr: c_int,
        max_srq: c_int,
        max_srq_wr: c_int,
        max_srq_sge: c_int,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
    }
    whole ibv_port_attr {
        state: c_uint,
        max_mtu: c_uint,
        active_mtu: c_uint,
        gid_tbl_len: c_int,
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        port_cap_flags2: u16,
    }
    whole ibv_async_event {
        element: ibv_async_event_element_t,
        event_type: c_uint,
    }
    whole ibv_wc {
        wr_id: u64,
        status: c_uint,
        opcode: c_uint,
        vendor_err: u32,
        byte_len: u32,
        imm_data: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }
    whole ibv_global_route {
        dgid: ibv_gid,
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
    }
    whole ibv_ah_attr {
        grh: ibv_global_route,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }
    whole ibv_qp_cap {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }
    whole ibv_qp_init_attr {
        qp_context: *mut c_void,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        cap: ibv_qp_cap,
        qp_type: c_uint,
        sq_sig_all: c_int,
    }
    whole ibv_qp_attr {
        qp_state: c_uint,
        cur_qp_state: c_uint,
        path_mtu: c_uint,
        path_mig_state: c_uint,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: c_uint,
        cap: ibv_qp_cap,
        ah_attr: ibv_ah_attr,
        alt_ah_attr: ibv_ah_attr,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        rate_limit: u32,
    }
    whole ibv_sge {
        addr: u64,
        length: u32,
        lkey: u32,
    }
    whole ibv_send_wr {
        wr_id: u64,
        next: *mut ibv_send_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
        opcode: c_uint,
        send_flags: c_uint,
        imm_data: u32,
        wr: wr_t,
        qp_type: u32,
        bind_mw: [u64; 6],
    }
    whole ibv_recv_wr {
        wr_id: u64,
        next: *mut ibv_recv_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
    }
    beginning ibv_device {
        _ops: [Unused; 2],
        node_type: c_int,
        transport_type: c_int,
    }
    beginning ibv_context {
        device: *mut ibv_device,
        ops: ibv_context_ops,
        cmd_fd: c_int,
        async_fd: c_int,
        num_comp_vectors: c_int,
    }
    whole ibv_context_ops {
        _compat_query_device: Unused,
        _compat_query_port: Unused,
        _compat_alloc_pd: Unused,
        _compat_dealloc_pd: Unused,
        _compat_reg_mr: Unused,
        _compat_rereg_mr: Unused,
        _compat_dereg_mr: Unused,
        alloc_mw: Unused,
        bind_mw: Unused,
        dealloc_mw: Unused,
        _compat_create_cq: Unused,
        poll_cq: unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int,
        req_notify_cq: unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int,
        _compat_cq_event: Unused,
        _compat_resize_cq: Unused,
        _compat_destroy_cq: Unused,
        _compat_create_srq: Unused,
        _compat_modify_srq: Unused,
        _compat_query_srq: Unused,
        _compat_destroy_srq: Unused,
        post_srq_recv: Unused,
        _compat_create_qp: Unused,
        _compat_query_qp: Unused,
        _compat_modify_qp: Unused,
        _compat_destroy_qp: Unused,
        post_send: unsafe extern "C" fn(
            *mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr
        ) -> c_int,
        post_recv: unsafe extern "C" fn(
            *mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr
        ) -> c_int,
        _compat_create_ah: Unused,
        _compat_destroy_ah: Unused,
        _compat_attach_mcast: Unused,
        _compat_detach_mcast: Unused,
        _compat_async_event: Unused,
    }
    beginning ibv_pd {
        context: *mut ibv_context,
        handle: u32,
    }
    whole ibv_mr {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: usize,
        handle: u32,
        lkey: u32,
        rkey: u32,
    }
    beginning ibv_comp_channel {
        context: *mut ibv_context,
        fd: c_int,
    }
    beginning ibv_cq {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
    }
    beginning ibv_qp {
        context: *mut ibv_context,
        qp_context: *mut c_void,
        pd: *mut ibv_pd,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        handle: u32,
        qp_num: u32,
    }
}

/// A pointer to a function that is not called.
type Unused = *mut c_void;

/// An address as bytes; in C it is a union, whose other member gives the alignment.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::ffi) struct ibv_gid {
    pub(in crate::ffi) raw: [u8; 16],
    pub(in crate::ffi) alignment: [u64; 0],
}

impl ibv_gid {
    pub(in crate::ffi) const fn new(raw: [u8; 16]) -> Self {
        Self { raw, alignment: [] }
    }
}

/// The subject of an asynchronous event.
#[repr(C)]
#[allow(dead_code, reason = "each kind of event has its own")]
pub(in crate::ffi) union ibv_async_event_element_t {
    pub(in crate::ffi) cq: *mut ibv_cq,
    pub(in crate::ffi) qp: *mut ibv_qp,
    pub(in crate::ffi) port_num: c_int,
}

/// The remote address of a write or read: in C a member of a union, whose largest member is that of
/// atomic operations.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::ffi) struct wr_t {
    pub(in crate::ffi) rdma: rdma_t,
    pub(in crate::ffi) rest_of_atomic: [u64; 2],
}

/// An address in the remote end's memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::ffi) struct rdma_t {
    pub(in crate::ffi) remote_addr: u64,
    pub(in crate::ffi) rkey: u32,
}
