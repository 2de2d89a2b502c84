//! What carries a group whose membership changes: a fabric, and where each view's memory comes from.

use std::sync::Arc;

use tramontane_core::fabric::{ErrorKind, Fabric as _, ViewMemory};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::Layout;
use tramontane_mesh::Talk;

use crate::joined::JoinedFabric;
use crate::member::Memory;
use crate::shared_memory::{self, Residence};
use crate::tcp::Rows;

/// Why a view has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is none to be had.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// The device has none to give.
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Rdma(#[from] crate::rdma_views::NoView),
    /// The fabric does not take it.
    #[error("the fabric cannot open the view: {0}")]
    Fabric(#[from] ErrorKind),
}

/// The fabric of a member through all its views.
pub(super) struct GroupFabric {
    pub(super) fabric: JoinedFabric,
    /// This process's place in the group, over shared memory.
    residence: Option<Arc<Residence>>,
}

impl GroupFabric {
    pub(super) fn new(fabric: JoinedFabric, residence: Option<Arc<Residence>>) -> Self {
        Self { fabric, residence }
    }

    /// Makes fresh memory for a view, and opens it (VIE-11).
    pub(super) fn open_view(
        &mut self,
        layout: &Layout<'_>,
        own: Rank,
        view: ViewId,
    ) -> Result<Memory, MemoryError> {
        let members = layout.group().members;
        match (&mut self.fabric, &self.residence) {
            (JoinedFabric::SharedMemory(fabric), Some(residence)) => {
                let mappings = residence.view(layout, own, view)?;
                fabric.lend(&mappings);
                let (row, rows) = (mappings.row(), mappings.rows());
                fabric.open(view, &ViewMemory { own, members, row, rows: &rows })?;
                // SAFETY: mapped while `mappings` lives.
                Ok(unsafe { Memory::new(&rows, row, mappings.clone()) })
            }
            (JoinedFabric::Tcp(fabric), _) => {
                let rows = Rows::new(layout, own);
                fabric.lend(&rows);
                fabric.open(view, &ViewMemory { own, members, row: rows.row(), rows: &rows.rows() })?;
                Ok(rows.lend())
            }
            #[cfg(feature = "verbs")]
            (JoinedFabric::RdmaViews(fabric), _) => Ok(fabric.open_view(layout, own, view)?),
            _ => Err(ErrorKind::Other.into()),
        }
    }

    /// Whether a node can be reached without a connection being made first.
    pub(super) fn is_connected(&self, node: NodeId) -> bool {
        match &self.fabric {
            JoinedFabric::Tcp(fabric) => fabric.has_peer(node),
            #[cfg(feature = "verbs")]
            JoinedFabric::RdmaViews(fabric) => fabric.has_peer(node),
            _ => true,
        }
    }

    /// Takes over the connection to a node.
    pub(super) fn connect(&mut self, node: NodeId, talk: Talk) {
        let Some(connection) = talk.into_connection() else { return };
        let added = match &mut self.fabric {
            JoinedFabric::Tcp(fabric) => fabric.add_peer(node, connection),
            #[cfg(feature = "verbs")]
            JoinedFabric::RdmaViews(fabric) => fabric.add_peer(node, connection),
            _ => return,
        };
        if let Err(error) = added {
            tracing::debug!(%node, %error, "a connection is not used");
        }
    }
}
