//! Errors in a group file. Each is one line that says what to do.

use std::path::PathBuf;

use tramontane_control::HostAddress;
use tramontane_core::layout::LayoutError;

use crate::group::large::limits::{BUFFERS_MAX, LARGE_MAX};
use crate::shared_memory;

/// An error in a group file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error(
        "cannot read {}: {source}; give a group file, which is text, and which this user may read",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The error reported by the system.
        source: std::io::Error,
    },
    /// The file is not TOML, or has an unknown field.
    #[error(
        "{}, line {line}: {text}; the example configuration explains every field",
        path.display()
    )]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// The error of the parser.
        text: String,
    },
    /// A name that cannot be that of a folder.
    #[error(transparent)]
    Name(#[from] shared_memory::Error),
    /// A list names a node twice.
    #[error("{what} names node {node} twice; name each node once")]
    NodeTwice {
        /// The list that names the node.
        what: String,
        /// The node.
        node: u32,
    },
    /// A node that is listed twice.
    #[error("node {0} is listed twice; give each node its own id")]
    DuplicateNode(u32),
    /// A setting that names a node that does not exist.
    #[error(
        "{what} names node {node}, which is not in the list of nodes; add the node to the list, or \
         remove it from {what}"
    )]
    UnknownNode {
        /// The setting that names the node.
        what: String,
        /// The node.
        node: u32,
    },
    /// A node without an address, in a group over TCP or RDMA.
    #[error(
        "node {0} has no address, which a group over TCP or RDMA needs; set its listening address: \
         address = \"10.9.0.1:7000\""
    )]
    NoAddress(u32),
    /// An address that other nodes cannot connect to.
    #[error(
        "other nodes cannot connect to {address}, the address of node {node}; give the address or \
         name of its host, and a port"
    )]
    NoDestination {
        /// The node.
        node: u32,
        /// Its address.
        address: HostAddress,
    },
    /// Two nodes that have the same address.
    #[error(
        "nodes {first} and {second} both have the address {address}; give each node its own \
         address, or its own port on the same host"
    )]
    DuplicateAddress {
        /// The first of the two nodes.
        first: u32,
        /// The second of the two nodes.
        second: u32,
        /// The address.
        address: HostAddress,
    },
    /// RDMA options in a group that does not use RDMA.
    #[error(
        "the group file has an [rdma] table, but the group does not use RDMA; remove the table, or \
         set fabric = \"verbs\""
    )]
    NotOnRdma,
    /// A heartbeat interval that is not well below the failure timeout.
    #[error(
        "heartbeat_ms is 0, or failure_timeout_ms is less than 3 times heartbeat_ms; correct these two fields"
    )]
    Times,
    /// A time limit for slow members that is so short that one long upcall would exceed it.
    #[error(
        "evict_slow_after_ms is less than twice failure_timeout_ms, the longest time an upcall may \
         take; raise it, or set it to 0"
    )]
    Eviction,
    /// The name of a subgroup would break the lines of statuses and logs.
    #[error("subgroup name {0:?} is empty or has control characters; give it a printable name")]
    SubgroupName(String),
    /// Two subgroups that have the same name.
    #[error("subgroup \"{0}\" is listed twice; give each subgroup its own name")]
    DuplicateSubgroup(String),
    /// Invalid settings of large messages.
    #[error(
        "the settings for large messages of subgroup \"{0}\" are out of range; set large_max to at \
         most {LARGE_MAX}, message_max to at least 8, and large_window from 1 to 64"
    )]
    Large(String),
    /// A number of large messages that exceeds the available buffers.
    #[error(
        "large messages need {0} buffers at a member (large_window + 2 per sender), but at most \
         {BUFFERS_MAX} are possible; lower large_window, or reduce the number of senders"
    )]
    LargeBuffers(usize),
    /// A subgroup that cannot be logged.
    #[error("subgroup \"{0}\" cannot be logged, because {1}")]
    Logged(String, &'static str),
    /// A subgroup whose members cannot pass on messages.
    #[error("subgroup \"{0}\" cannot be relayed, because {1}")]
    Relayed(String, &'static str),
    /// Clients in a subgroup that cannot accept them.
    #[error(
        "subgroup \"{0}\" is unordered and therefore cannot accept clients; remove unordered or \
         clients"
    )]
    Clients(String),
    /// A lease shorter than the time needed to detect a lost member.
    #[error("client_lease_ms of subgroup \"{0}\" is less than twice failure_timeout_ms; raise it")]
    ClientLease(String),
    /// A setting that is valid only in a group with changing membership.
    #[error(
        "a group with fixed membership cannot have {0}; remove that setting, or set membership = \
         \"changing\""
    )]
    Fixed(&'static str),
    /// A node without a rack, although other nodes have one.
    #[error("node {0} has no rack, but others have; give each node a rack, or none")]
    NoRack(u32),
    /// A subgroup that cannot be reserved.
    #[error("subgroup \"{0}\" cannot be reserved, because {1}")]
    Reserved(String, &'static str),
    /// A node whose id is reserved for another purpose.
    #[error(
        "node {0} has an id that is used for reserved subgroups and for paused senders; give it an \
         id below 2147483648"
    )]
    ReservedId(u32),
    /// An error in the layout.
    #[error("the group file is invalid: {0}; correct it")]
    Layout(#[from] LayoutError),
}
