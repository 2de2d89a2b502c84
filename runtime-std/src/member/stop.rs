//! The reasons why a member is no longer part of its group.

use std::any::Any;

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::node::StepError;

/// The reason why a member stopped. This is final: a node that returns does so as a new process, or
/// at least as a new incarnation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// The member was closed by its own process.
    #[error("this member was closed")]
    Closed,
    /// A peer was lost, and nothing further becomes stable without it.
    #[error("member {} is lost: {cause}", node_or_rank(node, rank))]
    PeerLost {
        /// Its rank.
        rank: Rank,
        /// Its id.
        node: Option<NodeId>,
        /// The cause of the loss.
        cause: LossCause,
    },
    /// This member left the group, as requested.
    #[error("this member has left the group")]
    Left,
    /// The group continues without this member, or not at all (VIE-3, VIE-9).
    #[error(
        "this member is no longer in the group: {}",
        by.map_or_else(|| why.to_string(), |node| format!("node {node} declared it dead"))
    )]
    Halted {
        /// The reason given by the core.
        why: tramontane_core::view::Halt,
        /// The node that suspects this member.
        by: Option<NodeId>,
    },
    /// Memory for a view or a large message cannot be allocated.
    #[error("no memory: {0}")]
    NoMemory(String),
    /// The node's membership record cannot be written.
    #[error("the node's state cannot be written: {0}")]
    NoState(String),
    /// Delivered messages cannot be made durable, because a log of this node has failed. Messages
    /// already reported as durable remain so.
    #[error("delivered messages cannot be made durable: {0}")]
    NotDurable(String),
    /// The fabric refuses a valid post, so this process or its device is broken.
    #[error("the fabric failed: {0}")]
    Fabric(String),
    /// A large message does not match the descriptor in its slot. Neither that message nor any
    /// later one was delivered.
    #[error("a large message does not match its announcement: {0}")]
    DescriptorMismatch(String),
    /// The application's upcall panicked. The order of the messages that it has received is intact.
    #[error("the application panicked in an upcall: {0}")]
    Panicked(String),
    /// The application ended this member from an upcall ([`give_up`]).
    #[error("the application ended this member: {0}")]
    GaveUp(String),
    /// A majority of a shard's replicas have lost their memory, so no replica has the shard's state
    /// (TRM-5).
    #[error(
        "group {0} lost a majority of its replicas at once, and its state with them; stop all \
         processes of the overlay, remove their data folders if they have any, and start them again"
    )]
    GroupLost(String),
    /// A replica of this or another group knows a later process of this replica, or an earlier one
    /// whose state has been lost.
    #[error(
        "{0} remembers a later process of this replica, or one whose state is lost; remove the data \
         folder of this replica, if it has one, and start it again; if all replicas of its group end \
         like this, the group's state is lost: stop all processes of the overlay, remove all data \
         folders, and start them again"
    )]
    Outdated(String),
    /// This replica's disk lacks something that an earlier process of the replica has shown to
    /// another replica (TRM-5).
    #[error(
        "the disk of this replica is an older copy: {0} has seen newer data of this disk; remove the \
         data folder of this replica, and start the replica again"
    )]
    DiskOlder(String),
    /// A process of the overlay uses a different key, program or configuration.
    #[error("{0}: {1}")]
    Refused(String, String),
    /// A replica cannot continue, because its log contradicts itself.
    #[error("an internal error stopped the replica: {0}")]
    Shard(tramontane_core::tram::Halt),
    /// The application refused another replica's state.
    #[error("the application refused the state of its group: {0}")]
    StateRefused(String),
    /// The node's state is damaged.
    #[error("an internal error stopped the node: {0}")]
    Broken(StepError),
}

fn node_or_rank(node: &Option<NodeId>, rank: &Rank) -> String {
    node.map_or_else(|| format!("of rank {rank}"), |node| node.to_string())
}

impl Stopped {
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        if let Some(GivingUp(why)) = payload.downcast_ref() {
            return Self::GaveUp(why.clone());
        }
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Self::Panicked(text)
    }
}

/// The payload with which [`give_up`] unwinds.
struct GivingUp(String);

/// Ends the calling member from an upcall, with [`Stopped::GaveUp`], because its application cannot
/// continue: for example, because it cannot read a message. The application receives no further
/// messages, and nothing is printed. Unwinds like a panic, so that every upcall can call it without
/// a cost for those that do not.
pub fn give_up(why: impl Into<String>) -> ! {
    std::panic::resume_unwind(Box::new(GivingUp(why.into())))
}
