//! libibverbs as the package `rdma-sys` links it, for the fabric over RDMA.
//!
//! By default the fabric loads libibverbs when a device is first requested, so that one program
//! works on hosts with and without RDMA, and builds without libclang. A program that must not load
//! libraries calls [`link`] first. It then needs libibverbs to start, and libclang 14 to build.
//!
//! The tests compare the fabric's declarations with those of `rdma-sys`, field by field and
//! function by function. Both describe the same library, so a difference is an error in one of
//! them.
//!
//! ```
//! tramontane_rdma_sys::link()?;
//! # Ok::<(), tramontane_verbs::NoLibrary>(())
//! ```

#[cfg(test)]
mod ffi;
#[cfg(test)]
mod theirs;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use rdma_sys::*;
use tramontane_verbs::NoLibrary;

/// Reads the fabric's list of functions. It compiles only if `rdma-sys` declares the same types.
macro_rules! functions {
    ($($version:literal fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        fn find(function: &str) -> Option<NonNull<c_void>> {
            match function {
                $(stringify!($name) => {
                    let linked: unsafe extern "C" fn($($kind),*) $(-> $result)? = rdma_sys::$name;
                    NonNull::new(linked as *mut c_void)
                })*
                _ => None,
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// Makes the fabric use libibverbs as this program has linked it. Call this before any device is
/// requested; later it has no effect.
///
/// # Errors
/// Fails if `rdma-sys` lacks a function that the fabric calls.
pub fn link() -> Result<(), NoLibrary> {
    // SAFETY: `find` returns the functions with their own names, as the linker has bound them.
    unsafe { tramontane_verbs::link(find) }
}
