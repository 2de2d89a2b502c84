//! The enumerations of `<infiniband/verbs.h>` that are used here.

#![allow(non_camel_case_types, reason = "the names of C")]

/// Defines a module for each enumeration, because C has no such scope and the names need one.
macro_rules! numbers {
    ($(mod $enumeration:ident { $($name:ident = $value:expr;)* })*) => {
        $(
            pub(in crate::ffi) mod $enumeration {
                /// The type of the values in C.
                pub(in crate::ffi) type Type = u32;
                $(pub(in crate::ffi) const $name: Type = $value;)*
            }
        )*

        /// All values, for the comparison with the header.
        #[cfg(test)]
        pub(super) const DECLARED: &[(&str, u32)] =
            &[$($((stringify!($name), $enumeration::$name),)*)*];
    };
}

numbers! {
    mod ibv_qp_type {
        IBV_QPT_RC = 2;
    }
    mod ibv_qp_state {
        IBV_QPS_RESET = 0;
        IBV_QPS_INIT = 1;
        IBV_QPS_RTR = 2;
        IBV_QPS_RTS = 3;
        IBV_QPS_SQD = 4;
        IBV_QPS_SQE = 5;
        IBV_QPS_ERR = 6;
    }
    mod ibv_qp_attr_mask {
        IBV_QP_STATE = 1 << 0;
        IBV_QP_ACCESS_FLAGS = 1 << 3;
        IBV_QP_PKEY_INDEX = 1 << 4;
        IBV_QP_PORT = 1 << 5;
        IBV_QP_AV = 1 << 7;
        IBV_QP_PATH_MTU = 1 << 8;
        IBV_QP_TIMEOUT = 1 << 9;
        IBV_QP_RETRY_CNT = 1 << 10;
        IBV_QP_RNR_RETRY = 1 << 11;
        IBV_QP_RQ_PSN = 1 << 12;
        IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13;
        IBV_QP_MIN_RNR_TIMER = 1 << 15;
        IBV_QP_SQ_PSN = 1 << 16;
        IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17;
        IBV_QP_DEST_QPN = 1 << 20;
    }
    mod ibv_wr_opcode {
        IBV_WR_RDMA_WRITE = 0;
        IBV_WR_RDMA_WRITE_WITH_IMM = 1;
        IBV_WR_SEND = 2;
        IBV_WR_RDMA_READ = 4;
    }
    mod ibv_send_flags {
        IBV_SEND_SIGNALED = 1 << 1;
        IBV_SEND_INLINE = 1 << 3;
    }
    mod ibv_wc_flags {
        IBV_WC_WITH_IMM = 1 << 1;
    }
}
