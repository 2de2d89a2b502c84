//! The errors of an overlay file.

use std::path::PathBuf;

use tramontane_control::HostAddress;
use tramontane_core::tram::{CHILDREN_MAX, GROUPS_MAX, REPLICAS_MAX};

use super::description::{ANSWER_MAX, CLIENTS_MAX};
use crate::carrier::Carrier;

/// An error in an overlay file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error(
        "cannot read {}: {source}; choose an overlay file that you may read",
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
    /// An overlay without groups.
    #[error("the overlay has no group; add a [[groups]] table")]
    NoGroups,
    /// An overlay with too many groups.
    #[error("the overlay has {0} groups, but at most {GROUPS_MAX} are possible; remove some")]
    TooManyGroups(usize),
    /// A group name that cannot be written in a list of groups, or followed by a rank.
    #[error("\"{0}\" is not a valid group name; use 1 to 64 letters, digits, '-' or '_'")]
    Name(String),
    /// A group that is listed twice.
    #[error("group \"{0}\" is listed twice; give each group its own name")]
    DuplicateGroup(String),
    /// A parent that is not a group.
    #[error(
        "the parent of group \"{group}\" is \"{parent}\", which does not exist; add that group, or \
         name a different parent"
    )]
    UnknownParent {
        /// The group.
        group: String,
        /// The parent that the group names.
        parent: String,
    },
    /// A group that is its own ancestor.
    #[error("group \"{0}\" is its own ancestor; change a parent so that the groups form a tree")]
    Cycle(String),
    /// A second group without a parent.
    #[error("group \"{0}\" has no parent, but there is already a root; give it a parent")]
    SecondRoot(String),
    /// A group with too many children.
    #[error(
        "group \"{0}\" has more than {CHILDREN_MAX} children; move some of them below other \
         groups"
    )]
    TooManyChildren(String),
    /// A group with no replica, or with too many.
    #[error("group \"{0}\" must have 1 to {REPLICAS_MAX} replicas; change its number of replicas")]
    Replicas(String),
    /// A group without addresses, in an overlay over TCP or RDMA.
    #[error(
        "group \"{0}\" lists no addresses, which an overlay over TCP or RDMA needs; list the \
         addresses of its replicas: replicas = [\"10.9.0.1:7000\"]"
    )]
    NoAddresses(String),
    /// A group with addresses, in an overlay over shared memory.
    #[error(
        "group \"{0}\" lists addresses, but the overlay uses shared memory; set fabric = \"tcp\" \
         or \"verbs\", or give the number of replicas"
    )]
    Addresses(String),
    /// An address that is listed twice.
    #[error("address {0} is listed twice; give each replica its own address")]
    DuplicateAddress(HostAddress),
    /// An address that other processes cannot connect to.
    #[error(
        "other processes cannot connect to {0}; give the address or name of the replica's host, \
         and a port"
    )]
    NoDestination(HostAddress),
    /// RDMA options in an overlay that does not use RDMA.
    #[error(
        "the overlay file has an [rdma] table, but the overlay does not use RDMA; remove the \
         table, or set fabric = \"verbs\""
    )]
    NotOnRdma,
    /// A heartbeat interval that is not well below the failure timeout.
    #[error(
        "failure_timeout_ms is less than 3 times heartbeat_ms, or a time is 0; raise failure_timeout_ms"
    )]
    Times,
    /// A maximum number of clients that is zero or too large.
    #[error("clients_max is {0}; set it to a value from 1 to {CLIENTS_MAX}")]
    Clients(u16),
    /// More clients than a replica can have views with.
    #[error(
        "clients_max is {clients}, but over {fabric} a replica of group \"{group}\" can have at \
         most {most} clients; lower clients_max to {most}, or use a different fabric"
    )]
    Views {
        /// The group.
        group: String,
        /// The fabric.
        fabric: Carrier,
        /// The maximum number of clients in the file.
        clients: u16,
        /// The maximum number of clients that is possible.
        most: usize,
    },
    /// A minimum size for references that no message can have.
    #[error(
        "references_from is {from}; set it to a value from 1 to message_max ({message_max}), or \
         omit it so that leaders copy all messages"
    )]
    References {
        /// The minimum size of messages that are passed by reference.
        from: u32,
        /// The maximum message size.
        message_max: u32,
    },
    /// Messages that are passed by reference in a durable overlay.
    #[error(
        "durable = true and references_from are both set, but replicas cannot save messages that \
         are passed by reference; remove one of them"
    )]
    DurableReferences,
    /// A limit on answers that is too large.
    #[error("answer_max is {0}; set it to a value from 0 to {ANSWER_MAX}")]
    Answers(u32),
    /// A number or size that is zero or too large.
    #[error(
        "client_window, parent_window, log_entries or message_max is out of range; set each to a \
         value from 1 to 1073741824"
    )]
    Sizes,
}
