//! Joining over shared memory, and what a host needs of that fabric.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::fabric::{Fabric as _, ViewMemory};
use tramontane_core::ids::Rank;
use tramontane_core::layout::Layout;

use super::{JoinError, JoinOptions};
use crate::host::{HostFabric, LocalBell};
use crate::joined::JoinedFabric;
use crate::member::{FIXED_VIEW, Memory};
use crate::shared_memory::{Bell, GroupName, Rendezvous, Root, RowPlan, SharedMemory, Wake};

/// Waits for all members, opens the fabric over their rows, and lends them.
pub(super) fn join(
    layout: &Layout<'_>,
    own: Rank,
    root: &Root,
    name: &GroupName,
    options: &JoinOptions<'_>,
) -> Result<(JoinedFabric, Memory), JoinError> {
    let plan = RowPlan::of_layout(layout);
    let rendezvous = Rendezvous::of_rows(root, name, plan, own)?;
    let mappings = Arc::new(rendezvous.join(options.time_limit, options.cancel)?);
    let mut fabric = SharedMemory::new(&mappings);
    let (rows, row) = (mappings.rows(), mappings.row());
    fabric.open(FIXED_VIEW, &ViewMemory { own, members: mappings.members(), row, rows: &rows })?;
    // SAFETY: mapped while `mappings` lives.
    let memory = unsafe { Memory::new(&rows, row, mappings.clone()) };
    Ok((JoinedFabric::SharedMemory(fabric), memory))
}

impl LocalBell for Bell {
    #[inline]
    fn ring_if_asleep(&self) {
        Bell::ring_if_asleep(self);
    }
}

impl HostFabric for SharedMemory {
    type Bell = Bell;

    fn local_bell(&self) -> Bell {
        self.bell()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        SharedMemory::sleep(self, timeout) == Wake::Rung
    }

    fn check_peers(&mut self) {
        SharedMemory::check_peers(self);
    }

    fn leave(&mut self) {
        SharedMemory::leave(self);
    }
}
