//! Joining a group, over whichever fabric the members meet on.

mod network;
mod shared;
#[cfg(feature = "verbs")]
mod verbs;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::fabric::ErrorKind;
use tramontane_core::ids::Rank;
use tramontane_core::layout::{Layout, LayoutError};
use tramontane_core::node::OpenError;

use crate::configuration::GroupConfiguration;
use crate::joined::JoinedFabric;
use crate::member::{Member, Memory, Settings};
use crate::shared_memory::{self, GroupName, Root};
pub use network::NetworkMeeting;
#[cfg(feature = "verbs")]
pub use verbs::VerbsMeeting;

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
    /// The system has no thread for it.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The memory does not fit the layout.
    #[error("the member cannot be opened: {0}")]
    Open(#[from] OpenError),
    /// The fabric has no memory for the rows.
    #[error(transparent)]
    Memory(#[from] crate::joined::MemoryError),
    /// The fabric refused the memory that it made itself.
    #[error("the fabric cannot be opened: {0}")]
    Fabric(#[from] ErrorKind),
    /// The members did not come together over TCP.
    #[error(transparent)]
    Tcp(#[from] crate::tcp::TcpError),
    /// No device, no way to the others, or too little of something, over RDMA.
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Verbs(#[from] tramontane_verbs::JoinError),
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
    /// Over TCP, to go on over TCP.
    Tcp(NetworkMeeting),
    /// Over TCP, to go on over RDMA.
    #[cfg(feature = "verbs")]
    Verbs(VerbsMeeting),
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
    let (fabric, memory) = meet(layout, own, options)?;
    Ok(Member::open(layout, own, memory, fabric, &options.settings)?)
}

/// Waits for all members, and gives the fabric over their rows, open, and the rows.
pub(crate) fn meet(
    layout: &Layout<'_>,
    own: Rank,
    options: &JoinOptions<'_>,
) -> Result<(JoinedFabric, Memory), JoinError> {
    match &options.meeting {
        Meeting::SharedMemory { root, name } => shared::join(layout, own, root, name, options),
        Meeting::Tcp(meeting) => network::join(layout, own, meeting, options),
        #[cfg(feature = "verbs")]
        Meeting::Verbs(meeting) => verbs::join(layout, own, meeting, options),
    }
}
