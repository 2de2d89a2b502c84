//! What can be asked of a device beside its attributes, and what forks need.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Once;

use super::libibverbs::{ibv_fork_init, ibv_port_attr, ibv_query_pkey, ibv_query_port};
use super::{Context, check};
use crate::adapter::DeviceFeatures;

impl Context {
    /// What carries its traffic, and how many vectors it has.
    pub(crate) fn features(&self) -> DeviceFeatures {
        // SAFETY: the context is open, and so is its device; the kind is read as the number that C
        // has there, since a newer library may know more of them.
        let (transport, vectors) = unsafe {
            let context = self.raw();
            let kind = &raw const (*(*context).device).transport_type;
            (kind.cast::<i32>().read(), (*context).num_comp_vectors)
        };
        DeviceFeatures { transport, completion_vectors: u32::try_from(vectors).unwrap_or(0) }
    }

    /// A port's table of partition keys, by index.
    pub(crate) fn partition_keys(&self, port: u8) -> io::Result<Vec<u16>> {
        let mut attributes = MaybeUninit::<ibv_port_attr>::zeroed();
        // SAFETY: the context is open; the structure is writable, and all zero where an old library
        // leaves fields alone.
        check(unsafe { ibv_query_port(self.raw(), port, attributes.as_mut_ptr()) })?;
        // SAFETY: numbers alone, zero before the call filled them.
        let entries = unsafe { attributes.assume_init() }.pkey_tbl_len;
        let key = |index| {
            let mut key = 0_u16;
            // SAFETY: the context is open; the key is writable.
            check(unsafe { ibv_query_pkey(self.raw(), port, index, &raw mut key) })?;
            Ok(u16::from_be(key))
        };
        (0..i32::from(entries)).map(key).collect()
    }
}

/// Lets this process fork, once and before anything is made on a device.
///
/// Since Linux 5.12 a fork copies the pages that a device holds, and the library finds that out and
/// does nothing. On an older kernel a child would share them until somebody writes, and the parent
/// would go on with copies that the device does not know: the library marks what it registers, its
/// own queues included, so that a child does not have it. Our own pages are marked already.
pub(super) fn prepare_forks() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        // SAFETY: takes nothing; nothing was made on a device of this process before.
        if let Err(error) = check(unsafe { ibv_fork_init() }) {
            tracing::warn!(%error, "a fork of this process may break its RDMA");
        }
    });
}
