//! Options for starting a process as a member, and the reasons why it may not become one.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::{Address, Listener, MeshError, OpenSessionError};
use tramontane_core::layout::LayoutError;

use super::forming::{Forming, NotFormed, RestartWaiting, others};
use crate::group::control::control_endpoints::ControlEndpointsError;
use crate::group::durable::data_error::DataError;
use crate::group::state::folder::StateError;
use crate::member::{Settings, Stopped};
use crate::rdma::{DeviceOptions, NoFabric};
use crate::shared_memory;
use crate::shared_memory::Root;

/// The default time limit for becoming a member.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The options for a process that becomes a member.
#[derive(Debug)]
pub struct StartOptions<'s> {
    /// The node of the description that this process runs.
    pub node: u32,
    /// The folder of this user's groups over shared memory.
    pub root: Root,
    /// A socket that already listens at this node's address, if there is one. Used over TCP and
    /// RDMA.
    pub listener: Option<Listener>,
    /// The device and its options. Used over RDMA.
    pub device: DeviceOptions,
    /// The time limit for becoming a member.
    pub time_limit: Duration,
    /// Flag that ends the wait when it becomes true.
    pub cancel: &'s AtomicBool,
    /// The member's settings.
    pub settings: Settings,
    /// Whether the process may form the group, and where it records its membership.
    pub forming: Forming,
    /// The folder for this node's logs, if it belongs to logged subgroups. Each node needs its own
    /// folder, and must use the same one at every start.
    pub data: Option<PathBuf>,
    /// The approximate number of record bytes that each of these logs keeps. A log may keep up to
    /// about twice as many, plus a snapshot of the application. `None` keeps all records.
    pub data_keep_bytes: Option<u64>,
    /// A digest of further settings that must be the same at all members. A member with a different
    /// value is refused, as with a different description.
    pub terms: u64,
}

impl StartOptions<'static> {
    /// Returns options that suit most programs: the user's default folder for groups, any device,
    /// and one minute to become a member.
    #[must_use]
    pub fn new(node: u32) -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self {
            node,
            root: Root::from_env(),
            listener: None,
            device: DeviceOptions::default(),
            time_limit: TIME_LIMIT,
            cancel: &NEVER,
            settings: Settings::default(),
            forming: Forming::default(),
            data: None,
            data_keep_bytes: None,
            terms: 0,
        }
    }
}

/// The reason why a process did not become a member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The description does not contain this node.
    #[error(
        "node {node} is not in the group file, which lists {known:?}; use one of these, or add the \
         node to the group file of all members"
    )]
    UnknownNode {
        /// The node.
        node: u32,
        /// The nodes in the description.
        known: Vec<u32>,
    },
    /// The control servers of the other nodes cannot be reached.
    #[error(transparent)]
    ControlEndpoints(#[from] ControlEndpointsError),
    /// The node's directory in shared memory is not available.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// There is no fabric to carry the writes.
    #[error(transparent)]
    Fabric(#[from] NoFabric),
    /// This node's address is in use or does not exist.
    #[error(
        "cannot listen at {address}: {source}; if node {node} or a node of another group is \
         already running there, stop it, or give this node a free address of this host"
    )]
    Listen {
        /// The address of the socket.
        address: Address,
        /// This node.
        node: u32,
        /// The system's error.
        source: std::io::Error,
    },
    /// The node's logs cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The initial nodes did not meet.
    #[error(transparent)]
    Meet(#[from] MeshError),
    /// The group is running, but did not admit this node.
    #[error("the group did not admit node {node}: {why}; check the group's status, and try again")]
    NotLetIn {
        /// This node.
        node: u32,
        /// The last reason that a member gave.
        why: String,
    },
    /// No member is running, and this node is not an initial node.
    #[error(
        "no member of group \"{group}\" is running, and node {node} is not one of its initial \
         nodes; start those first"
    )]
    NobodyRuns {
        /// The group.
        group: String,
        /// This node.
        node: u32,
    },
    /// The group is already running, and its membership is fixed.
    #[error(
        "node {node} cannot join, because the group is already running with fixed membership; stop \
         all its members, and start all nodes again"
    )]
    FixedRuns {
        /// This node.
        node: u32,
    },
    /// Some member did not open the view.
    #[error("node {node} was not ready in time; check that node's output, then restart all nodes")]
    NotReady {
        /// The first such member.
        node: u32,
    },
    /// The view's layout is invalid.
    #[error("the group file is invalid: {0}; correct it")]
    Layout(#[from] LayoutError),
    /// A node has a different description.
    #[error(
        "node {node} has a different configuration{}",
        if fields.is_empty() {
            "; give all nodes the same group file, and start them with the same options".to_owned()
        } else {
            format!(
                " ({fields}); give all nodes the same group file, or, if that node belongs to \
                 another group, give this group a different name and different addresses"
            )
        }
    )]
    OtherConfiguration {
        /// The node.
        node: u32,
        /// The fields that differ, as far as they can be determined.
        fields: String,
    },
    /// The initial nodes met, but may not form the group.
    #[error("{}{}", .0, .0.last_resort())]
    NotFormed(#[from] NotFormed),
    /// The group's members failed, and too few of them have returned.
    #[error("the group was not restarted: {0}")]
    NotRestarted(RestartWaiting),
    /// Another node is restarting the group from its log, but this node has no data of the group.
    #[error("node {node} is restarting the group from its log, and is waiting for other nodes; {}", others(*node))]
    NothingOfGroup {
        /// That node.
        node: u32,
    },
    /// This node's disk failed while the node was joining, or while the group was restarting from
    /// its logs. The text names the file, the reason, and the remedy. The other nodes keep waiting
    /// for this node, or continue without it.
    #[error("{0}")]
    DiskFailed(String),
    /// This node's recorded state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A process of the group has a different key or program, and no other process is running.
    #[error("node {node}: {why}")]
    Refused {
        /// The node.
        node: u32,
        /// Its answer.
        why: OpenSessionError,
    },
    /// The wait was cancelled.
    #[error("interrupted while joining")]
    Cancelled,
    /// The process stopped before it became a member.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A system call failed.
    #[error("cannot start: {0}; resolve the cause, and try again")]
    Io(#[from] std::io::Error),
}
