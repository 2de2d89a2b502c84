//! Device properties that are not among the attributes, and preparation for forks.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Once;

use super::libibverbs::{ibv_fork_init, ibv_port_attr, ibv_query_pkey, ibv_query_port};
use super::{Context, check};
use crate::adapter::DeviceFeatures;

impl Context {
    /// Returns the device's transport and the number of completion vectors.
    pub(crate) fn features(&self) -> DeviceFeatures {
        // SAFETY: the context is open, and so is its device; the kind is read as the number that C
        // stores there, because a newer library may have more kinds.
        let (transport, vectors) = unsafe {
            let context = self.raw();
            let kind = &raw const (*(*context).device).transport_type;
            (kind.cast::<i32>().read(), (*context).num_comp_vectors)
        };
        DeviceFeatures { transport, completion_vectors: u32::try_from(vectors).unwrap_or(0) }
    }

    /// Returns a port's table of partition keys, by index.
    pub(crate) fn partition_keys(&self, port: u8) -> io::Result<Vec<u16>> {
        let mut attributes = MaybeUninit::<ibv_port_attr>::zeroed();
        // SAFETY: the context is open; the structure is writable, and zeroed in case an old library
        // leaves fields untouched.
        check(unsafe { ibv_query_port(self.raw(), port, attributes.as_mut_ptr()) })?;
        // SAFETY: the structure consists of plain numbers, and was zeroed before the call filled
        // it.
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

/// Prepares this process for forks, once and before any object exists on a device.
///
/// Since Linux 5.12, a fork copies the pages that a device holds; the library detects that and does
/// nothing. On an older kernel, a child would share the pages until the first write, and the parent
/// would continue with copies that the device does not know. On such a kernel, the library marks
/// the memory that it registers, including its own queues, so that a child does not inherit it. Our
/// own pages are already marked.
pub(super) fn prepare_forks() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        // SAFETY: the function takes no arguments, and this process has not created anything on a
        // device before.
        if let Err(error) = check(unsafe { ibv_fork_init() }) {
            tracing::warn!(%error, "a fork of this process may break its RDMA");
        }
    });
}
