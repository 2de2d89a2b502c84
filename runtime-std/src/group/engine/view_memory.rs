//! The memory of each view.

use tramontane_core::fabric::{ErrorKind, ViewPlan};
use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewRows as _};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::layout::Layout;

use crate::fabric;
use crate::fabric::AnyFabric;
use crate::member::Memory;

/// The reason why a view has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Not enough memory is available.
    #[error(transparent)]
    None(#[from] fabric::MemoryError),
    /// The fabric refuses the view.
    #[error("the fabric cannot open the view: {0}")]
    Fabric(#[from] ErrorKind),
}

/// Allocates fresh memory for a view, and opens the view (VIE-11).
pub(crate) fn open_view(
    fabric: &mut AnyFabric,
    layout: &Layout<'_>,
    own: Rank,
    view: ViewId,
) -> Result<Memory, MemoryError> {
    let memory = fabric.rows(&ViewPlan::of_layout(view, own, layout))?;
    fabric.open(view, &memory.memory())?;
    Ok(memory)
}
