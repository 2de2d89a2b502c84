//! The errors of an overlay file.

use std::path::PathBuf;

use tramontane_control::HostAddress;
use tramontane_core::tram::{CHILDREN_MAX, GROUPS_MAX, REPLICAS_MAX};

use super::description::CLIENTS_MAX;

/// An error in an overlay file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}; give an overlay file that you may read (tramontane shards --example-config base)", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not TOML, or has an unknown field.
    #[error("{}, line {line}: {text}; 'tramontane shards --example-config base' explains every field", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What.
        text: String,
    },
    /// There is no group.
    #[error("the overlay has no group; add a [[groups]]")]
    NoGroups,
    /// There are too many groups.
    #[error("the overlay has {0} groups, and {GROUPS_MAX} is the most; take some out")]
    TooManyGroups(usize),
    /// A name that cannot be written in a list of groups, or followed by a rank.
    #[error("\"{0}\" is no name of a group; take 1 to 64 letters, digits, '-' or '_'")]
    Name(String),
    /// A group is listed twice.
    #[error("group \"{0}\" stands twice; give each a name of its own")]
    DuplicateGroup(String),
    /// A parent that is not a group.
    #[error(
        "the parent of group \"{group}\" is \"{parent}\", which is no group; add it, or name another"
    )]
    UnknownParent {
        /// The group.
        group: String,
        /// The parent that it names.
        parent: String,
    },
    /// A group is its own ancestor.
    #[error("group \"{0}\" is its own ancestor; let its way upwards end at the root")]
    Cycle(String),
    /// Two groups have no parent.
    #[error("group \"{0}\" is a second root; give it a parent")]
    SecondRoot(String),
    /// A group has too many children.
    #[error("group \"{0}\" has more than {CHILDREN_MAX} children; put some below others")]
    TooManyChildren(String),
    /// A group has no replica, or too many.
    #[error("group \"{0}\" needs 1 to {REPLICAS_MAX} replicas")]
    Replicas(String),
    /// A group has no addresses, over TCP or RDMA.
    #[error(
        "group \"{0}\" has no addresses, and the overlay is not on shared memory; say where its \
         replicas listen: replicas = [\"10.9.0.1:7000\"]"
    )]
    NoAddresses(String),
    /// A group has addresses, over shared memory.
    #[error(
        "group \"{0}\" has addresses, and the overlay is on shared memory; set fabric = \"tcp\" or \"verbs\", or give a count"
    )]
    Addresses(String),
    /// An address is listed twice.
    #[error("address {0} stands twice; give each replica its own")]
    DuplicateAddress(HostAddress),
    /// An address that other processes cannot connect to.
    #[error(
        "no process can connect to the address {0}; give the address or the name of the replica's \
         host, and a port"
    )]
    NoDestination(HostAddress),
    /// RDMA options in an overlay that does not use RDMA.
    #[error(
        "the overlay file has a table [rdma], and the overlay is not on RDMA; take it out, or set \
         fabric = \"verbs\""
    )]
    NotOnRdma,
    /// A heartbeat interval that is not well below the failure timeout.
    #[error(
        "failure_timeout_ms is less than 3 times heartbeat_ms, or a time is 0; raise failure_timeout_ms"
    )]
    Times,
    /// No clients, or too many.
    #[error("clients_max is {0}; take 1 to {CLIENTS_MAX}")]
    Clients(u16),
    /// A size of references that no message can have.
    #[error(
        "references_from is {from}; take 1 to message_max, {message_max}, or leave it out: then \
         leaders copy all messages"
    )]
    References {
        /// The size from which messages are passed by reference.
        from: u32,
        /// The largest message.
        message_max: u32,
    },
    /// A size that is zero or too large.
    #[error(
        "client_window, parent_window, log_entries or message_max is 0 or more than 1073741824; \
         take another"
    )]
    Sizes,
}
