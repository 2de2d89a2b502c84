//! What a process is started with, and why it did not become a member.

use std::num::NonZeroU64;
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

/// How long it may take to become a member, unless set otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Where and how a process becomes a member.
#[derive(Debug)]
pub struct StartOptions<'s> {
    /// Which node of the description this is.
    pub node: u32,
    /// Where groups of this user live, over shared memory.
    pub root: Root,
    /// A socket that listens at the own address already, if there is one; over TCP and RDMA.
    pub listener: Option<Listener>,
    /// Which device, over RDMA.
    pub device: DeviceOptions,
    /// How long it may take to become a member.
    pub time_limit: Duration,
    /// Ends the wait when it becomes true.
    pub cancel: &'s AtomicBool,
    /// How the member behaves.
    pub settings: Settings,
    /// Whether it may form the group, and where it remembers that it did.
    pub forming: Forming,
    /// The folder of this node's logs, where it belongs to logged subgroups: one for each node, and
    /// the same at every start.
    pub data: Option<PathBuf>,
    /// About how many bytes of records each of these logs keeps; at most about twice as many,
    /// beside a snapshot of the application. All records are kept if nothing is said.
    pub data_keep_bytes: Option<u64>,
    /// What else all members must have been told alike, as a number: a member with another one is
    /// refused, as with another description.
    pub terms: u64,
    /// The most bytes a second that this member sends to each of these nodes, over TCP. For
    /// experiments, and where others share the network.
    pub rates: Vec<(u32, NonZeroU64)>,
}

impl StartOptions<'static> {
    /// As most programs want it: groups live where those of this user do, any device will do, and
    /// it may take a minute to become a member.
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
            rates: Vec::new(),
        }
    }
}

/// Why a process did not become a member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The description has no such node.
    #[error(
        "node {node} is not in the group file, which has {known:?}; take one of these, or add it at all members"
    )]
    UnknownNode {
        /// The node.
        node: u32,
        /// Those that it has.
        known: Vec<u32>,
    },
    /// The others' control servers cannot be reached.
    #[error(transparent)]
    ControlEndpoints(#[from] ControlEndpointsError),
    /// No place in shared memory.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// Nothing to carry the writes.
    #[error(transparent)]
    Fabric(#[from] NoFabric),
    /// The own address is taken, or none.
    #[error(
        "cannot listen at {address}: {source}; is node {node} running already, or a node of another group? End that \
         one, or give this node a free address of this host"
    )]
    Listen {
        /// Where.
        address: Address,
        /// This node.
        node: u32,
        /// What the system says.
        source: std::io::Error,
    },
    /// The node's logs cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The initial nodes did not come together.
    #[error(transparent)]
    Meet(#[from] MeshError),
    /// The group runs, and did not let this node in.
    #[error("the group did not let node {node} in: {why}; see 'tramontane status', and try again")]
    NotLetIn {
        /// This node.
        node: u32,
        /// The last reason.
        why: String,
    },
    /// Nobody runs, and this is no initial node.
    #[error(
        "no member of group \"{group}\" is running, and node {node} is not among its initial nodes; start those first"
    )]
    NobodyRuns {
        /// The group.
        group: String,
        /// This node.
        node: u32,
    },
    /// The group runs, and its membership is fixed.
    #[error(
        "the group runs already, and its membership is fixed: node {node} cannot join it; end all its members, and start \
         all nodes again"
    )]
    FixedRuns {
        /// This node.
        node: u32,
    },
    /// Not all members opened the view.
    #[error("node {node} did not get ready in time; see what it does, and start all nodes again")]
    NotReady {
        /// The first such node.
        node: u32,
    },
    /// The view's layout is wrong.
    #[error("the group is wrong: {0}; correct the group file")]
    Layout(#[from] LayoutError),
    /// A node goes by another description.
    #[error(
        "node {node} has another configuration{}",
        if fields.is_empty() {
            "; give all nodes the same group file, and start them with the same options".to_owned()
        } else {
            format!(
                ": another {fields}; give all nodes the same group file, or, if that node is of another group, give this \
                 group another name and other addresses"
            )
        }
    )]
    OtherConfiguration {
        /// The node.
        node: u32,
        /// The fields that differ, as far as that can be told.
        fields: String,
    },
    /// The initial nodes came together, and may not form the group.
    #[error("{}{}", .0, .0.last_resort())]
    NotFormed(#[from] NotFormed),
    /// The group's members died, and not enough of them came back.
    #[error("the group was not restarted: {0}")]
    NotRestarted(RestartWaiting),
    /// Another node restarts the group from its log, and this one has nothing of it.
    #[error("node {node} restarts the group from its log, and waits for others; {}", others(*node))]
    NothingOfGroup {
        /// That node.
        node: u32,
    },
    /// This node's disk failed while the group restarted from its logs: which file, why, and what
    /// to do. The other nodes go on waiting for it, or without it.
    #[error("{0}")]
    DiskFailed(String),
    /// What this node remembers cannot be had.
    #[error(transparent)]
    State(#[from] StateError),
    /// A process of the group goes by another key or program, and no other one runs.
    #[error("node {node}: {why}")]
    Refused {
        /// The node.
        node: u32,
        /// What it said.
        why: OpenSessionError,
    },
    /// The wait was ended.
    #[error("interrupted while joining")]
    Cancelled,
    /// The member ended before it was one.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The system refused something.
    #[error("cannot start: {0}; see what the system says, and try again")]
    Io(#[from] std::io::Error),
}
