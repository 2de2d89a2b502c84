//! Joining over shared memory.

use tramontane_core::fabric::{Fabric as _, ViewRows as _};
use tramontane_core::ids::Rank;
use tramontane_core::layout::Layout;

use super::{JoinError, JoinOptions};
use crate::joined::JoinedFabric;
use crate::member::{FIXED_VIEW, Memory};
use crate::shared_memory::{GroupName, Rendezvous, Root, SharedMemory};

/// Waits for all members, opens the fabric over their rows, and lends them.
pub(super) fn join(
    layout: &Layout<'_>,
    own: Rank,
    root: &Root,
    name: &GroupName,
    options: &JoinOptions<'_>,
) -> Result<(JoinedFabric, Memory), JoinError> {
    let rendezvous = Rendezvous::new(root, name, layout, own)?;
    let mappings = rendezvous.join(options.time_limit, options.cancel)?;
    let mut fabric = SharedMemory::new(&mappings);
    fabric.open(FIXED_VIEW, &mappings.memory())?;
    Ok((JoinedFabric::SharedMemory(fabric), Memory::new(mappings)))
}
