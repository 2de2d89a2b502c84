//! Errors in a group file, each in one line that says what to do.

use std::path::PathBuf;

use tramontane_control::HostAddress;
use tramontane_core::layout::LayoutError;

use crate::group::large::limits::{BUFFERS_MAX, LARGE_MAX};

/// An error in a group file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}; give a group file that you may read (tramontane node --example-config)", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not TOML, or has an unknown field.
    #[error("{}, line {line}: {text}; 'tramontane node --example-config' explains every field", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What.
        text: String,
    },
    /// A node is listed twice.
    #[error("node {0} stands twice among the nodes; give each an id of its own")]
    DuplicateNode(u32),
    /// A setting names a node that does not exist.
    #[error(
        "{what} names node {node}, which is not among the nodes; add it there, or take it out here"
    )]
    UnknownNode {
        /// The setting that names it.
        what: String,
        /// The node.
        node: u32,
    },
    /// A node has no address, over TCP or RDMA.
    #[error(
        "node {0} has no address, and the group is not on shared memory; say where it listens: address = \"10.9.0.1:7000\""
    )]
    NoAddress(u32),
    /// An address that other nodes cannot connect to.
    #[error(
        "node {node} has the address {address}, to which no other node can connect; give the address or the name of its host, and a port"
    )]
    NoDestination {
        /// The node.
        node: u32,
        /// Its address.
        address: HostAddress,
    },
    /// Two nodes have the same address.
    #[error(
        "nodes {first} and {second} both have the address {address}; give each its own, on one host with ports of their own"
    )]
    DuplicateAddress {
        /// The first of them.
        first: u32,
        /// The second of them.
        second: u32,
        /// The address.
        address: HostAddress,
    },
    /// RDMA options in a group that does not use RDMA.
    #[error(
        "the group file has a table [rdma], and the group is not on RDMA; take it out, or set \
         fabric = \"verbs\""
    )]
    NotOnRdma,
    /// A heartbeat interval that is not well below the failure timeout.
    #[error(
        "failure_timeout_ms is less than 3 times heartbeat_ms, or one of them is 0; raise failure_timeout_ms"
    )]
    Times,
    /// A limit for slow members that one long upcall would exceed.
    #[error(
        "evict_slow_after_ms is less than twice failure_timeout_ms, for which an upcall may last; \
         raise it, or set it to 0"
    )]
    Eviction,
    /// Two subgroups have the same name.
    #[error("subgroup \"{0}\" stands twice; give each a name of its own")]
    DuplicateSubgroup(String),
    /// Invalid settings of large messages.
    #[error(
        "subgroup \"{0}\" cannot have such large messages; give a large_max of at most {LARGE_MAX}, a message_max of at least 8, and a large_window from 1 to 64"
    )]
    Large(String),
    /// More large messages than buffers are available for.
    #[error(
        "large messages want {0} buffers at a member, large_window and 2 for each sender, and {BUFFERS_MAX} is the most; lower large_window, or let fewer send"
    )]
    LargeBuffers(usize),
    /// A subgroup that cannot be logged.
    #[error("subgroup \"{0}\" cannot be logged, because {1}")]
    Logged(String, &'static str),
    /// Clients in a subgroup that cannot have them.
    #[error(
        "subgroup \"{0}\" cannot have clients without an order; take out unordered, or clients"
    )]
    Clients(String),
    /// A lease shorter than the time that the detection of a lost member takes.
    #[error(
        "subgroup \"{0}\" has a client_lease_ms of less than twice failure_timeout_ms; raise it"
    )]
    ClientLease(String),
    /// A setting that only a group with changing membership can have.
    #[error(
        "the group has fixed membership, and so {0}; take it out, or set membership = \"changing\""
    )]
    Fixed(&'static str),
    /// A subgroup that cannot be reserved.
    #[error("subgroup \"{0}\" cannot be reserved, because {1}")]
    Reserved(String, &'static str),
    /// A node whose id is reserved for another meaning.
    #[error(
        "node {0} has an id of the upper half, which stands for reserved subgroups; give it one \
         below 2147483648"
    )]
    ReservedId(u32),
    /// An error in the layout.
    #[error("the group is wrong: {0}; correct the group file")]
    Layout(#[from] LayoutError),
}
