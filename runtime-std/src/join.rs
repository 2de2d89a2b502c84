//! Joining a group, over whichever fabric the members meet on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::fabric::{ErrorKind, Fabric, ViewMemory};
use tramontane_core::layout::{Layout, LayoutError};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_core::node::OpenError;

use crate::configuration::GroupConfiguration;
use crate::host::{HostFabric, LocalBell};
use crate::joined::JoinedFabric;
use crate::member::{FIXED_VIEW, Member, Memory, Settings};
use crate::shared_memory::{self, Bell, GroupName, Mappings, Rendezvous, Root, SharedMemory, Wake};

/// Why a group could not be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The group's description is wrong.
    #[error("the group is wrong: {0}")]
    Layout(#[from] LayoutError),
    /// The members did not come together.
    #[error(transparent)]
    Rendezvous(#[from] shared_memory::Error),
    /// The memory does not fit the layout.
    #[error("the member cannot be opened: {0}")]
    Open(#[from] OpenError),
    /// The fabric refused the memory that it made itself.
    #[error("the shared-memory fabric cannot be opened: {0}")]
    Fabric(#[from] ErrorKind),
}

/// Where members meet: all of a group give the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Meeting {
    /// On this machine, over shared memory.
    SharedMemory {
        /// Where groups of this user live.
        root: Root,
        /// The group's name.
        name: GroupName,
    },
}

/// Where and how to join.
#[derive(Clone, Debug)]
pub struct JoinOptions<'j> {
    /// Where the members meet, which also says over what.
    pub meeting: Meeting,
    /// How long to wait for the others.
    pub time_limit: Duration,
    /// Ends the wait when it becomes true.
    pub cancel: &'j AtomicBool,
    /// How the member behaves.
    pub settings: Settings,
}

/// Joins a group: waits for all its members, and returns this one, ready to step.
///
/// # Errors
/// [`JoinError`]; nothing is left behind then.
pub fn join(
    group: &GroupConfiguration,
    node: u32,
    options: &JoinOptions<'_>,
) -> Result<Member<JoinedFabric>, JoinError> {
    group.with_layout(|layout| join_layout(layout, group, node, options))?
}

fn join_layout(
    layout: &Layout<'_>,
    group: &GroupConfiguration,
    node: u32,
    options: &JoinOptions<'_>,
) -> Result<Member<JoinedFabric>, JoinError> {
    let own = group.rank_of(node).ok_or(OpenError::NotAMember)?;
    let (fabric, memory) = match &options.meeting {
        Meeting::SharedMemory { root, name } => {
            let rendezvous = Rendezvous::new(root, name, layout, own)?;
            share_memory(rendezvous.join(options.time_limit, options.cancel)?)?
        }
    };
    Ok(Member::open(layout, own, memory, fabric, &options.settings)?)
}

/// Opens the fabric over shared rows, and lends them.
fn share_memory(mappings: Mappings) -> Result<(JoinedFabric, Memory), JoinError> {
    let mappings = Arc::new(mappings);
    let mut fabric = SharedMemory::new(&mappings);
    let own = mappings.own();
    fabric.open(
        FIXED_VIEW,
        &ViewMemory { own, members: mappings.members(), row: mappings.row(), rows: &mappings.rows() },
    )?;
    Ok((JoinedFabric::SharedMemory(fabric), lend(mappings)))
}

/// The rows of mappings that live on in the memory's keeper.
fn lend(mappings: Arc<Mappings>) -> Memory {
    let rows = mappings
        .rows()
        .iter()
        // SAFETY: mapped while `mappings` lives, and the keeper below is `mappings`.
        .map(|row| unsafe { Row::from_raw(row.base(), row.bytes()) })
        .collect();
    let row = mappings.row().reader();
    // SAFETY: as above; it came from a row to be written.
    let row = unsafe { RowWriter::from_raw(row.base(), row.bytes()) };
    // SAFETY: both as above.
    unsafe { Memory::new(rows, row, mappings) }
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

    fn leave(&self) {
        SharedMemory::leave(self);
    }
}
