//! What a group is, as its file says: nodes that may be members, and subgroups of them.
//!
//! All nodes that may ever be members are in the file. Which of them are members at a moment is a
//! view; what a view's subgroups and memory look like follows from file and view alone, so that all
//! members compute the same.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tramontane_control::HostAddress;
use tramontane_core::ids::{NodeId, SubgroupId};

use crate::carrier::Carrier;
use crate::group::large::limits::LargeBlocks;
use crate::rdma::DeviceOptions;

/// The window where nothing else is said: Spindle IV-A.2 found 100 slots best.
pub const WINDOW_DEFAULT: u32 = 100;

/// The largest message where nothing else is said: the 10 KB of Spindle's experiments.
pub const MESSAGE_MAX_DEFAULT: u32 = 10_240;

/// Whether members may come and go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Membership {
    /// Members may fail, leave and join; the others go on in the next view.
    #[default]
    Changing,
    /// All nodes are members from beginning to end. The group starts once all have come, and ends
    /// with the first that goes: the others stop, and say which
    /// ([`Stopped::PeerLost`](crate::member::Stopped::PeerLost)). There are no heartbeats, no state
    /// folders and no large messages, and a group that rests posts nothing.
    Fixed,
}

/// A group file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What the group is called. Part of what all members must have alike.
    pub name: String,
    /// What carries its writes.
    #[serde(default)]
    pub fabric: Carrier,
    /// Whether members may come and go.
    #[serde(default)]
    pub membership: Membership,
    /// The file of the key that all members share, beside the group file if it is relative.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Whether what is said may go in clear: without a key also where an address is not loopback,
    /// and over RDMA also beside a key, which does not seal what goes over RDMA.
    #[serde(default)]
    pub allow_clear: bool,
    /// From one heartbeat to the next, in ms. The same at all members. Fixed membership has no
    /// heartbeats.
    #[serde(default = "heartbeat_default")]
    pub heartbeat_ms: u64,
    /// A member without a heartbeat for so long is removed, in ms: longer than the longest upcall
    /// (VIE-2). The same at all members.
    #[serde(default = "failure_timeout_default")]
    pub failure_timeout_ms: u64,
    /// A member that holds others back for so long, though it lives, is removed, in ms; 0: the
    /// others wait for it as long as it takes (EXT-2). The same at all members. It cannot be with
    /// fixed membership.
    #[serde(default)]
    pub evict_slow_after_ms: u64,
    /// Whether a next view needs a majority of the last one (VIE-9). Without it a network that
    /// splits makes two groups of one.
    #[serde(default = "majority_default")]
    pub majority: bool,
    /// The nodes of the first view, all of which must come before anything starts; all nodes if
    /// left out.
    #[serde(default)]
    pub initial: Vec<u32>,
    /// All nodes that may ever be members.
    pub nodes: Vec<NodeDescription>,
    /// Which RDMA device is taken and how it is used, over RDMA; each node's own affair. What a
    /// program is started with goes before it.
    #[serde(default)]
    pub rdma: DeviceOptions,
    /// The subgroups; one of all nodes if left out.
    #[serde(default)]
    pub subgroups: Vec<SubgroupDescription>,
}

/// A node of the group file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDescription {
    /// Its id, by which it is known for ever.
    pub id: u32,
    /// Where it listens, over TCP; where it is met, over RDMA.
    #[serde(default)]
    pub address: Option<HostAddress>,
    /// The folder where it remembers its membership, beside the group file if it is relative. Each
    /// node's own affair.
    #[serde(default)]
    pub state: Option<PathBuf>,
}

/// A subgroup of the group file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubgroupDescription {
    /// What it is called.
    pub name: String,
    /// Which nodes belong to it, while they are members of the group; all if left out.
    #[serde(default)]
    pub members: Option<Vec<u32>>,
    /// Which of them send, in sender order; all its members if left out.
    #[serde(default)]
    pub senders: Option<Vec<u32>>,
    /// Slots a sender has.
    #[serde(default = "window_default")]
    pub window: u32,
    /// The largest message, in bytes.
    #[serde(default = "message_max_default")]
    pub message_max: u32,
    /// Hand over on receipt, without one order and without waiting for stability.
    #[serde(default)]
    pub unordered: bool,
    /// The largest large message, in bytes: such go by block multicast, and have their place in the
    /// one order (RDM-7). Zero: there are none.
    #[serde(default)]
    pub large_max: u64,
    /// Large messages of one sender that may be under way at a time. Each member has memory for so
    /// many of each sender.
    #[serde(default = "large_window_default")]
    pub large_window: u32,
    /// How the blocks of large messages go; as suits the fabric if left out. The same at all
    /// members. A group file does not have it, and members do not compare it when they meet.
    #[serde(skip)]
    pub large_blocks: Option<LargeBlocks>,
    /// Whether clients from outside may publish and subscribe (EXT-1). Each message takes up to 25
    /// bytes more then.
    #[serde(default)]
    pub clients: bool,
    /// How long the group remembers a client that no member hears, in ms: for so long it may come
    /// back and send again what was not acknowledged, and nothing is delivered twice.
    #[serde(default = "client_lease_default")]
    pub client_lease_ms: u64,
    /// Whether it starts anew, empty, after all its members were lost at once, and its state with
    /// them (VIE-10). Otherwise it stays without members.
    #[serde(default)]
    pub restart_empty: bool,
    /// Whether its members log what they deliver, each in a data folder of its own: then receipts
    /// tell where a message is durable. Part of what all members must have alike.
    #[serde(default)]
    pub logged: bool,
    /// Whether it has members only while it is open: it begins closed, and views open and close it
    /// at run time ([`ReservedSubgroups`](crate::group::ReservedSubgroups)). Closed it takes a few
    /// cells of a row, and no slots.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserved: bool,
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
    /// Nodes `0` to `nodes - 1` on this machine, in one subgroup in which all send: for programs
    /// that need no file.
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
            nodes: all
                .into_iter()
                .map(|id| NodeDescription { id, address: None, state: None })
                .collect(),
            rdma: DeviceOptions::default(),
            subgroups: vec![subgroup],
        }
    }

    /// Whether there are reserved subgroups.
    pub(crate) fn has_reserved(&self) -> bool {
        self.subgroups.iter().any(|subgroup| subgroup.reserved)
    }

    /// Whether a node may be a member.
    #[must_use]
    pub fn has_node(&self, node: NodeId) -> bool {
        self.nodes.iter().any(|known| known.id == node.get())
    }

    /// The subgroup of that name.
    #[must_use]
    pub fn subgroup(&self, name: &str) -> Option<SubgroupId> {
        let index = self.subgroups.iter().position(|subgroup| subgroup.name == name)?;
        u16::try_from(index).ok().map(SubgroupId)
    }
}

impl SubgroupDescription {
    /// A subgroup of all nodes, with everything else left out too.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            members: None,
            senders: None,
            window: window_default(),
            message_max: message_max_default(),
            unordered: false,
            large_max: 0,
            large_window: large_window_default(),
            large_blocks: None,
            clients: false,
            client_lease_ms: client_lease_default(),
            restart_empty: false,
            logged: false,
            reserved: false,
        }
    }

    /// The nodes that belong to it.
    #[must_use]
    pub fn members(&self) -> &[u32] {
        self.members.as_deref().unwrap_or_default()
    }

    /// The nodes that send in it.
    #[must_use]
    pub fn senders(&self) -> &[u32] {
        self.senders.as_deref().unwrap_or_default()
    }
}
