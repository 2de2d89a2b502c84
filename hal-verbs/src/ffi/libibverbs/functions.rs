//! The functions that are called, each with the version of its interface.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use super::open::{Library, NoLibrary, functions};
use super::structures::*;

/// Defines the table of functions, and for each entry a function of the same name that calls it. A
/// `later` function returns `None` if the library is too old for it.
macro_rules! functions {
    (
        $($version:literal fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*
        $(later $later_version:literal fn $later:ident(
            $($later_argument:ident: $later_kind:ty),*
        ) -> $later_result:ty;)*
    ) => {
        /// The addresses of the functions.
        pub(super) struct Functions {
            $($name: unsafe extern "C" fn($($kind),*) $(-> $result)?,)*
            $($later: Option<unsafe extern "C" fn($($later_kind),*) -> $later_result>,)*
        }

        impl Functions {
            /// Looks up all functions.
            pub(super) fn find(library: &Library) -> Result<Self, NoLibrary> {
                Ok(Self {
                    $($name: {
                        let address = library.find(stringify!($name), $version)?;
                        // SAFETY: the function has this name and version, and its type is as the
                        // header declares it; the library is never closed.
                        unsafe {
                            std::mem::transmute::<
                                NonNull<c_void>,
                                unsafe extern "C" fn($($kind),*) $(-> $result)?,
                            >(address)
                        }
                    },)*
                    $($later: library.find(stringify!($later), $later_version).ok().map(
                        // SAFETY: as for the functions above.
                        |address| unsafe {
                            std::mem::transmute::<
                                NonNull<c_void>,
                                unsafe extern "C" fn($($later_kind),*) -> $later_result,
                            >(address)
                        },
                    ),)*
                })
            }

            /// The same declarations for the comparison with the header.
            #[cfg(test)]
            pub(super) const DECLARED: &[(&str, &[&str], &str)] = &[
                $((
                    stringify!($name),
                    &[$(stringify!($kind)),*],
                    concat!("", $(stringify!($result))?),
                ),)*
                $((
                    stringify!($later),
                    &[$(stringify!($later_kind)),*],
                    stringify!($later_result),
                ),)*
            ];
        }

        $(
            /// Calls the function of the same name in `<infiniband/verbs.h>`.
            ///
            /// # Safety
            /// The caller must meet the conditions of the manual page.
            #[allow(dead_code, reason = "some are for those who ask for more than the fabric does")]
            pub(in crate::ffi) unsafe fn $name($($argument: $kind),*) $(-> $result)? {
                // SAFETY: the caller meets the conditions of the manual page.
                unsafe { (functions().$name)($($argument),*) }
            }
        )*

        $(
            /// Calls the function of the same name in `<infiniband/verbs.h>`, if the library has
            /// it.
            ///
            /// # Safety
            /// The caller must meet the conditions of the manual page.
            pub(in crate::ffi) unsafe fn $later(
                $($later_argument: $later_kind),*
            ) -> Option<$later_result> {
                // SAFETY: the caller meets the conditions of the manual page.
                functions().$later.map(|call| unsafe { call($($later_argument),*) })
            }
        )*
    };
}

functions! {
    "IBVERBS_1.1" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    "IBVERBS_1.1" fn ibv_free_device_list(list: *mut *mut ibv_device);
    "IBVERBS_1.1" fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
    "IBVERBS_1.1" fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    "IBVERBS_1.1" fn ibv_close_device(context: *mut ibv_context) -> c_int;
    "IBVERBS_1.1" fn ibv_query_device(
        context: *mut ibv_context, attributes: *mut ibv_device_attr
    ) -> c_int;
    "IBVERBS_1.1" fn ibv_query_port(
        context: *mut ibv_context, port: u8, attributes: *mut ibv_port_attr
    ) -> c_int;
    "IBVERBS_1.1" fn ibv_query_gid(
        context: *mut ibv_context, port: u8, index: c_int, gid: *mut ibv_gid
    ) -> c_int;
    "IBVERBS_1.1" fn ibv_query_pkey(
        context: *mut ibv_context, port: u8, index: c_int, key: *mut u16
    ) -> c_int;
    "IBVERBS_1.1" fn ibv_fork_init() -> c_int;
    "IBVERBS_1.1" fn ibv_get_async_event(
        context: *mut ibv_context, event: *mut ibv_async_event
    ) -> c_int;
    "IBVERBS_1.1" fn ibv_ack_async_event(event: *mut ibv_async_event);
    "IBVERBS_1.1" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    "IBVERBS_1.1" fn ibv_dealloc_pd(domain: *mut ibv_pd) -> c_int;
    "IBVERBS_1.1" fn ibv_reg_mr(
        domain: *mut ibv_pd, address: *mut c_void, bytes: usize, access: c_int
    ) -> *mut ibv_mr;
    "IBVERBS_1.1" fn ibv_dereg_mr(region: *mut ibv_mr) -> c_int;
    "IBVERBS_1.0" fn ibv_create_comp_channel(
        context: *mut ibv_context
    ) -> *mut ibv_comp_channel;
    "IBVERBS_1.0" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    "IBVERBS_1.1" fn ibv_create_cq(
        context: *mut ibv_context, entries: c_int, user: *mut c_void,
        channel: *mut ibv_comp_channel, vector: c_int
    ) -> *mut ibv_cq;
    "IBVERBS_1.1" fn ibv_destroy_cq(queue: *mut ibv_cq) -> c_int;
    "IBVERBS_1.1" fn ibv_get_cq_event(
        channel: *mut ibv_comp_channel, queue: *mut *mut ibv_cq, user: *mut *mut c_void
    ) -> c_int;
    "IBVERBS_1.1" fn ibv_ack_cq_events(queue: *mut ibv_cq, events: c_uint);
    "IBVERBS_1.1" fn ibv_create_qp(
        domain: *mut ibv_pd, attributes: *mut ibv_qp_init_attr
    ) -> *mut ibv_qp;
    "IBVERBS_1.1" fn ibv_modify_qp(
        pair: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: c_int
    ) -> c_int;
    "IBVERBS_1.1" fn ibv_query_qp(
        pair: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: c_int,
        made_with: *mut ibv_qp_init_attr
    ) -> c_int;
    "IBVERBS_1.1" fn ibv_destroy_qp(pair: *mut ibv_qp) -> c_int;
    // Available since rdma-core 40.
    later "IBVERBS_1.14" fn ibv_query_qp_data_in_order(
        pair: *mut ibv_qp, operation: c_uint, flags: u32
    ) -> c_int;
}
