//! A group as its file describes it: the nodes that may be members, and the subgroups of these
//! nodes.
//!
//! The file lists all nodes that may ever be members. The members at a given moment form a view. A
//! view's subgroups and memory follow from the file and the view, so all members compute the same
//! result.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tramontane_control::HostAddress;
use tramontane_core::ids::{NodeId, SubgroupId};

use crate::carrier::Carrier;
use crate::group::large::limits::LargeBlocks;
use crate::rdma::DeviceOptions;

/// The default window: Spindle IV-A.2 found 100 slots to be best.
pub const WINDOW_DEFAULT: u32 = 100;

/// The default maximum message size: the 10 KB of Spindle's experiments.
pub const MESSAGE_MAX_DEFAULT: u32 = 10_240;

/// Whether members may join and leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Membership {
    /// Members may fail, leave and join; the others continue in the next view.
    #[default]
    Changing,
    /// All nodes are members from beginning to end. The group starts when all nodes are present,
    /// and ends when the first one leaves or fails: the others stop, and report which node it was
    /// ([`Stopped::PeerLost`](crate::member::Stopped::PeerLost)). There are no heartbeats, state
    /// folders or large messages, and an idle group posts nothing.
    Fixed,
}

/// A group file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The group's name, which must be the same at all members.
    pub name: String,
    /// The fabric that carries the group's writes.
    #[serde(default)]
    pub fabric: Carrier,
    /// Whether members may join and leave.
    #[serde(default)]
    pub membership: Membership,
    /// The file with the key that all members share. A relative path is resolved against the folder
    /// of the group file.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Whether unencrypted traffic is allowed. A group without a key needs this for addresses that
    /// are not loopback. A group over RDMA needs it even with a key, because the key does not
    /// encrypt RDMA.
    #[serde(default)]
    pub allow_clear: bool,
    /// The heartbeat interval in ms, which must be the same at all members. Groups with fixed
    /// membership have no heartbeats.
    #[serde(default = "heartbeat_default")]
    pub heartbeat_ms: u64,
    /// The time without a heartbeat after which a member is removed, in ms. It must exceed the
    /// duration of the longest upcall (VIE-2), and be the same at all members.
    #[serde(default = "failure_timeout_default")]
    pub failure_timeout_ms: u64,
    /// The time after which a live member that holds others back is removed, in ms. If 0, the
    /// others wait for that member without limit (EXT-2). It must be the same at all members, and
    /// is not available with fixed membership.
    #[serde(default)]
    pub evict_slow_after_ms: u64,
    /// Whether the next view needs a majority of the previous one (VIE-9). If false, a network
    /// partition can split the group in two.
    #[serde(default = "majority_default")]
    pub majority: bool,
    /// The nodes of the first view. All of them must be present before the group starts. If
    /// omitted, all nodes of the group.
    #[serde(default)]
    pub initial: Vec<u32>,
    /// All nodes that may ever be members.
    pub nodes: Vec<NodeDescription>,
    /// For RDMA: the device, and how it is used. Each node chooses its own. Options given when a
    /// program starts take precedence.
    #[serde(default)]
    pub rdma: DeviceOptions,
    /// The subgroups. If omitted, one subgroup of all nodes.
    #[serde(default)]
    pub subgroups: Vec<SubgroupDescription>,
}

/// A node of the group file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDescription {
    /// The node's id, which never changes.
    pub id: u32,
    /// The address at which the node listens over TCP, or at which peers connect to it before they
    /// use RDMA.
    #[serde(default)]
    pub address: Option<HostAddress>,
    /// The folder for the node's membership, which each node chooses for itself. A relative path is
    /// resolved against the folder of the group file.
    #[serde(default)]
    pub state: Option<PathBuf>,
    /// The name of the rack that the node is in. If all nodes have one, large messages cross
    /// between racks as few times as possible (RDMC 4.3). It must be the same at all members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
}

impl NodeDescription {
    /// Describes a node on this machine.
    #[must_use]
    pub const fn of(id: u32) -> Self {
        Self { id, address: None, state: None, rack: None }
    }
}

/// A subgroup of the group file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubgroupDescription {
    /// The subgroup's name.
    pub name: String,
    /// The nodes that belong to the subgroup while they are members of the group. If omitted, all
    /// nodes.
    #[serde(default)]
    pub members: Option<Vec<u32>>,
    /// The members that send, in sender order. If omitted, all members of the subgroup.
    #[serde(default)]
    pub senders: Option<Vec<u32>>,
    /// The number of slots per sender.
    #[serde(default = "window_default")]
    pub window: u32,
    /// The maximum message size, in bytes.
    #[serde(default = "message_max_default")]
    pub message_max: u32,
    /// Whether messages are delivered on receipt, unordered and without waiting for stability.
    #[serde(default)]
    pub unordered: bool,
    /// Whether members pass on the messages of the subgroup's only sender (REL-1). The sender's
    /// link then carries each message about once, for any number of members, and the number of
    /// hops of a message grows with the logarithm of that number. It must be the same at all
    /// members, and requires a network: [`Carrier::Tcp`] or [`Carrier::Verbs`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relayed: bool,
    /// The maximum size of a large message, in bytes. Large messages travel by block multicast, and
    /// are ordered together with all other messages (RDM-7). If zero, the subgroup has no large
    /// messages.
    #[serde(default)]
    pub large_max: u64,
    /// The maximum number of large messages per sender that may be in flight. Each member has
    /// memory for that many per sender.
    #[serde(default = "large_window_default")]
    pub large_window: u32,
    /// The way in which blocks of large messages are sent; the fabric's default if omitted. It must
    /// be the same at all members, but is not part of a group file, and members do not compare it
    /// when they meet.
    #[serde(skip)]
    pub large_blocks: Option<LargeBlocks>,
    /// Whether external clients may publish and subscribe (EXT-1). If so, each message takes up to
    /// 25 additional bytes.
    #[serde(default)]
    pub clients: bool,
    /// The time for which the group remembers a client that no member hears from, in ms. Within
    /// that time the client may return and resend unacknowledged messages without causing duplicate
    /// deliveries.
    #[serde(default = "client_lease_default")]
    pub client_lease_ms: u64,
    /// Whether the subgroup restarts empty after all its members, and therefore its state, have
    /// been lost at once (VIE-10). Otherwise it remains without members.
    #[serde(default)]
    pub restart_empty: bool,
    /// Whether members log the messages that they deliver, each in its own data folder. Receipts
    /// then report where a message is durable. The value must be the same at all members.
    #[serde(default)]
    pub logged: bool,
    /// The time after which a sender that has sent nothing pauses, in ms; never if zero. A view
    /// change takes it out of the subgroup's senders, so that the others need not wait for its
    /// turns, and its slots take no memory. Its next message makes it a sender again, and is
    /// delayed by a view change. The value must be the same at all members.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause_senders_after_ms: u64,
    /// Whether the subgroup has members only while it is open. Such a subgroup is closed at first,
    /// and views open and close it at run time
    /// ([`ReservedSubgroups`](crate::group::ReservedSubgroups)). While closed, it occupies a few
    /// cells of a row, and no slots.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserved: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

const fn heartbeat_default() -> u64 {
    50
}
const fn failure_timeout_default() -> u64 {
    1_000
}
const fn majority_default() -> bool {
    true
}
const fn large_window_default() -> u32 {
    2
}
const fn client_lease_default() -> u64 {
    60_000
}
const fn window_default() -> u32 {
    WINDOW_DEFAULT
}
const fn message_max_default() -> u32 {
    MESSAGE_MAX_DEFAULT
}

impl Description {
    /// Describes nodes `0` to `nodes - 1` on this machine, in one subgroup in which all nodes send.
    /// Intended for programs that need no file.
    #[must_use]
    pub fn local(name: &str, nodes: u32, window: u32, message_max: u32) -> Self {
        let all: Vec<u32> = (0..nodes).collect();
        let (members, senders) = (Some(all.clone()), Some(all.clone()));
        let subgroup = SubgroupDescription {
            members,
            senders,
            window,
            message_max,
            ..SubgroupDescription::named(name)
        };
        Self {
            name: name.to_owned(),
            fabric: Carrier::default(),
            membership: Membership::Changing,
            key_file: None,
            allow_clear: false,
            heartbeat_ms: heartbeat_default(),
            failure_timeout_ms: failure_timeout_default(),
            evict_slow_after_ms: 0,
            majority: true,
            initial: all.clone(),
            nodes: all.into_iter().map(NodeDescription::of).collect(),
            rdma: DeviceOptions::default(),
            subgroups: vec![subgroup],
        }
    }

    /// Returns whether there are reserved subgroups.
    pub(crate) fn has_reserved(&self) -> bool {
        self.subgroups.iter().any(|subgroup| subgroup.reserved)
    }

    /// Returns whether there are subgroups that views change, apart from their members.
    pub(crate) fn has_changing_subgroups(&self) -> bool {
        self.has_reserved() || self.subgroups.iter().any(|of| of.pause_senders_after_ms > 0)
    }

    /// Returns whether a node may be a member.
    #[must_use]
    pub fn has_node(&self, node: NodeId) -> bool {
        self.nodes.iter().any(|known| known.id == node.get())
    }

    /// Returns the subgroup with this name.
    #[must_use]
    pub fn subgroup(&self, name: &str) -> Option<SubgroupId> {
        let index = self.subgroups.iter().position(|subgroup| subgroup.name == name)?;
        u16::try_from(index).ok().map(SubgroupId)
    }
}

impl SubgroupDescription {
    /// Describes a subgroup of all nodes, with default settings.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            members: None,
            senders: None,
            window: window_default(),
            message_max: message_max_default(),
            unordered: false,
            relayed: false,
            large_max: 0,
            large_window: large_window_default(),
            large_blocks: None,
            clients: false,
            client_lease_ms: client_lease_default(),
            restart_empty: false,
            logged: false,
            pause_senders_after_ms: 0,
            reserved: false,
        }
    }

    /// Returns the sender with this index in the list of those that may send.
    pub(crate) fn sender(&self, index: u16) -> Option<NodeId> {
        self.senders().get(usize::from(index)).copied().map(NodeId)
    }

    /// Returns the nodes that belong to the subgroup.
    #[must_use]
    pub fn members(&self) -> &[u32] {
        self.members.as_deref().unwrap_or_default()
    }

    /// Returns the nodes that send in the subgroup.
    #[must_use]
    pub fn senders(&self) -> &[u32] {
        self.senders.as_deref().unwrap_or_default()
    }
}
