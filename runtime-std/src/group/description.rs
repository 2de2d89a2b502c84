//! What a group is, as its file says: nodes that may be members, and subgroups of them.
//!
//! All nodes that may ever be members are in the file. Which of them are members at a moment is a
//! view; what a view's subgroups and memory look like follows from file and view alone, so that all
//! members compute the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tramontane_control::HostAddress;
use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::layout::LayoutError;

use super::description_error::DescriptionError;
use super::digest::digest;
use super::large::{BUFFERS_MAX, LargeBlocks};
use super::layout::ViewLayout;
use super::subgroup_change::may_be_change;
use super::view::View;
use crate::carrier::Carrier;
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
    /// at run time ([`ReservedSubgroups`](super::ReservedSubgroups)). Closed it takes a few cells
    /// of a row, and no slots.
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
    /// Reads a group file, and checks all of it. A relative `key_file` is taken from beside it.
    ///
    /// # Errors
    /// [`DescriptionError`].
    pub fn read(path: &Path) -> Result<Self, DescriptionError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| DescriptionError::Read { path: path.to_path_buf(), source })?;
        Self::parse(path, &text)
    }

    /// Makes sense of the text of a group file.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, DescriptionError> {
        let mut description: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let text = error.message().trim_end().replace('\n', " ");
            DescriptionError::Parse { path: path.to_path_buf(), line, text }
        })?;
        if let (Some(key), Some(folder)) = (&mut description.key_file, path.parent()) {
            *key = folder.join(&*key);
        }
        if let Some(folder) = path.parent() {
            description.nodes.iter_mut().filter_map(|node| node.state.as_mut()).for_each(|state| {
                *state = folder.join(&*state);
            });
        }
        description.complete()?;
        Ok(description)
    }

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
            fabric: Carrier::SharedMemory,
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

    /// Fills in what was left out, and checks everything.
    ///
    /// # Errors
    /// [`DescriptionError`].
    pub fn complete(&mut self) -> Result<(), DescriptionError> {
        let all: Vec<u32> = self.nodes.iter().map(|node| node.id).collect();
        let mut known = BTreeSet::new();
        if let Some(twice) = all.iter().find(|id| !known.insert(**id)) {
            return Err(DescriptionError::DuplicateNode(*twice));
        }
        check_addresses(&self.nodes)?;
        if self.fabric != Carrier::SharedMemory
            && let Some(node) = self.nodes.iter().find(|node| node.address.is_none())
        {
            return Err(DescriptionError::NoAddress(node.id));
        }
        if self.fabric != Carrier::Verbs && self.rdma != DeviceOptions::default() {
            return Err(DescriptionError::NotOnRdma);
        }
        if self.heartbeat_ms == 0 || self.failure_timeout_ms < self.heartbeat_ms.saturating_mul(3) {
            return Err(DescriptionError::Times);
        }
        let eviction_min = self.failure_timeout_ms.saturating_mul(2);
        if self.evict_slow_after_ms != 0 && self.evict_slow_after_ms < eviction_min {
            return Err(DescriptionError::Eviction);
        }
        if self.initial.is_empty() {
            self.initial.clone_from(&all);
        }
        if self.subgroups.is_empty() {
            self.subgroups.push(SubgroupDescription::named(&self.name));
        }
        let mut names = BTreeSet::new();
        for subgroup in &mut self.subgroups {
            if !names.insert(subgroup.name.clone()) {
                return Err(DescriptionError::DuplicateSubgroup(subgroup.name.clone()));
            }
            let members = subgroup.members.get_or_insert_with(|| all.clone());
            subgroup.senders.get_or_insert_with(|| members.clone());
        }
        check_nodes("initial", &self.initial, &known)?;
        for subgroup in &self.subgroups {
            let what = format!("subgroup \"{}\"", subgroup.name);
            check_nodes(&what, subgroup.members(), &known)?;
            check_nodes(&what, subgroup.senders(), &known)?;
            if !subgroup.has_possible_large() {
                return Err(DescriptionError::Large(subgroup.name.clone()));
            }
            if let Some(why) = self.log_refusal(subgroup) {
                return Err(DescriptionError::Logged(subgroup.name.clone(), why));
            }
            if subgroup.clients && subgroup.unordered {
                return Err(DescriptionError::Clients(subgroup.name.clone()));
            }
            if let Some(why) = self.reserve_refusal(subgroup) {
                return Err(DescriptionError::Reserved(subgroup.name.clone(), why));
            }
            let lease_min = self.failure_timeout_ms.saturating_mul(2);
            if subgroup.clients && subgroup.client_lease_ms < lease_min {
                return Err(DescriptionError::ClientLease(subgroup.name.clone()));
            }
        }
        let is_change = |id: &&u32| self.has_reserved() && may_be_change(NodeId(**id));
        if let Some(node) = all.iter().find(is_change) {
            return Err(DescriptionError::ReservedId(*node));
        }
        self.check_fixed()?;
        let buffers = self.large_buffers();
        if buffers > BUFFERS_MAX {
            return Err(DescriptionError::LargeBuffers(buffers));
        }
        // The largest view there can be: whatever fits it fits all.
        self.view_layout(&View::of_all(self))?;
        self.view_layout(&View::first(self))?;
        Ok(())
    }

    /// Why a subgroup that is to be logged cannot be (DUR-2).
    fn log_refusal(&self, subgroup: &SubgroupDescription) -> Option<&'static str> {
        if !subgroup.logged {
            None
        } else if self.membership == Membership::Fixed {
            Some("membership is fixed; set membership = \"changing\"")
        } else if subgroup.unordered {
            Some("it has no order that a log could keep; take out unordered = true")
        } else if !self.majority {
            Some(
                "two halves of the group could go on with two logs; set majority = true, or take \
                 out logged = true",
            )
        } else if subgroup.restart_empty {
            Some("what is durable would be gone with its members; take out restart_empty = true")
        } else if subgroup.clients && subgroup.large_max > 0 {
            Some("a log does not tell large messages from those of clients; take out large_max")
        } else {
            None
        }
    }

    /// Why a subgroup that is to be reserved cannot be.
    fn reserve_refusal(&self, subgroup: &SubgroupDescription) -> Option<&'static str> {
        if !subgroup.reserved {
            None
        } else if self.membership == Membership::Fixed {
            Some("membership is fixed; set membership = \"changing\"")
        } else if subgroup.logged {
            Some("what is durable would be gone when it is closed; take out logged = true")
        } else if subgroup.large_max > 0 {
            Some("large messages may be under way when it is closed; take out large_max")
        } else {
            None
        }
    }

    /// Whether there are reserved subgroups.
    pub(super) fn has_reserved(&self) -> bool {
        self.subgroups.iter().any(|subgroup| subgroup.reserved)
    }

    /// What a group with fixed membership cannot have.
    fn check_fixed(&self) -> Result<(), DescriptionError> {
        if self.membership == Membership::Changing {
            return Ok(());
        }
        if self.initial.len() != self.nodes.len() {
            return Err(DescriptionError::Fixed("all nodes are initial"));
        }
        if self.subgroups.iter().any(|subgroup| subgroup.large_max > 0) {
            return Err(DescriptionError::Fixed("no large messages (large_max)"));
        }
        if self.evict_slow_after_ms != 0 {
            return Err(DescriptionError::Fixed("no bound for slow members (evict_slow_after_ms)"));
        }
        if self.subgroups.iter().any(|subgroup| subgroup.clients) {
            return Err(DescriptionError::Fixed("no clients (clients)"));
        }
        if self.nodes.iter().any(|node| node.state.is_some()) {
            return Err(DescriptionError::Fixed("no state folders (state)"));
        }
        Ok(())
    }

    /// A number for what all members must have alike; keys, states and the initial nodes are each
    /// member's own affair.
    #[must_use]
    pub fn digest(&self) -> u64 {
        digest(self, false)
    }

    /// The same for the nodes that form the first view, which must also agree on its members. Later
    /// that is history.
    #[must_use]
    pub(super) fn forming_digest(&self) -> u64 {
        digest(self, true)
    }

    /// The layout of a view: its memory, at every member the same.
    ///
    /// # Errors
    /// What is wrong with the description.
    pub fn view_layout(&self, view: &View) -> Result<ViewLayout, LayoutError> {
        ViewLayout::new(view, &self.subgroups, self.membership)
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

/// Others connect to each address, and find one node there.
fn check_addresses(nodes: &[NodeDescription]) -> Result<(), DescriptionError> {
    let mut known = BTreeMap::new();
    for (node, address) in nodes.iter().filter_map(|node| Some((node.id, node.address.as_ref()?))) {
        if !address.is_destination() {
            return Err(DescriptionError::NoDestination { node, address: address.clone() });
        }
        if let Some(first) = known.insert(address, node) {
            let address = address.clone();
            return Err(DescriptionError::DuplicateAddress { first, second: node, address });
        }
    }
    Ok(())
}

fn check_nodes(what: &str, named: &[u32], known: &BTreeSet<u32>) -> Result<(), DescriptionError> {
    match named.iter().find(|node| !known.contains(node)) {
        Some(node) => Err(DescriptionError::UnknownNode { what: what.to_owned(), node: *node }),
        None => Ok(()),
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
