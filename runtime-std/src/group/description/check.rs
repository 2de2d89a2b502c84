//! Reads, completes and checks a description.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tramontane_core::ids::NodeId;

use super::error::DescriptionError;
use super::subgroup_change::may_be_change;
use super::terms::{Description, Membership, NodeDescription, SubgroupDescription};
use super::view::View;
use crate::group::large::limits::BUFFERS_MAX;
use crate::rdma::DeviceOptions;
use crate::shared_memory::GroupName;
use crate::toml_text::{WrongLine, parse};

impl Description {
    /// Reads a group file, and checks all of it. A relative `key_file` is resolved against the
    /// folder of the group file.
    ///
    /// # Errors
    /// [`DescriptionError`].
    pub fn read(path: &Path) -> Result<Self, DescriptionError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| DescriptionError::Read { path: path.to_path_buf(), source })?;
        Self::parse(path, &text)
    }

    /// Parses the text of a group file.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, DescriptionError> {
        let mut description: Self = parse(text).map_err(|wrong| {
            let WrongLine { line, text } = wrong;
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

    /// Fills in defaults, and checks everything.
    ///
    /// # Errors
    /// [`DescriptionError`].
    pub fn complete(&mut self) -> Result<(), DescriptionError> {
        GroupName::new(&self.name)?;
        let all: Vec<u32> = self.nodes.iter().map(|node| node.id).collect();
        let mut known = BTreeSet::new();
        if let Some(twice) = all.iter().find(|id| !known.insert(**id)) {
            return Err(DescriptionError::DuplicateNode(*twice));
        }
        check_addresses(&self.nodes)?;
        if !self.fabric.is_on_one_host()
            && let Some(node) = self.nodes.iter().find(|node| node.address.is_none())
        {
            return Err(DescriptionError::NoAddress(node.id));
        }
        if self.nodes.iter().any(|node| node.rack.is_some())
            && let Some(node) = self.nodes.iter().find(|node| node.rack.is_none())
        {
            return Err(DescriptionError::NoRack(node.id));
        }
        if !self.fabric.is_rdma() && self.rdma != DeviceOptions::default() {
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
            if subgroup.name.is_empty() || subgroup.name.contains(char::is_control) {
                return Err(DescriptionError::SubgroupName(subgroup.name.clone()));
            }
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
            if let Some(why) = self.relay_refusal(subgroup) {
                return Err(DescriptionError::Relayed(subgroup.name.clone(), why));
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
        let is_change = |id: &&u32| self.has_changing_subgroups() && may_be_change(NodeId(**id));
        if let Some(node) = all.iter().find(is_change) {
            return Err(DescriptionError::ReservedId(*node));
        }
        self.check_fixed()?;
        let buffers = self.large_buffers();
        if buffers > BUFFERS_MAX {
            return Err(DescriptionError::LargeBuffers(buffers));
        }
        // The largest possible view: if its layout is valid, so is the layout of every other view.
        self.view_layout(&View::of_all(self))?;
        self.view_layout(&View::first(self))?;
        Ok(())
    }

    /// Returns the reason why a subgroup cannot be logged, or `None` if it can (DUR-2).
    fn log_refusal(&self, subgroup: &SubgroupDescription) -> Option<&'static str> {
        if !subgroup.logged {
            None
        } else if self.membership == Membership::Fixed {
            Some("membership is fixed; set membership = \"changing\"")
        } else if subgroup.unordered {
            Some("it is unordered; remove unordered = true")
        } else if !self.majority {
            Some(
                "two halves of the group could continue with different logs; set majority = true, \
                 or remove logged = true",
            )
        } else if subgroup.restart_empty {
            Some("its durable messages would be lost with its members; remove restart_empty = true")
        } else if subgroup.clients && subgroup.large_max > 0 {
            Some("a log cannot distinguish large messages from those of clients; remove large_max")
        } else {
            None
        }
    }

    /// Returns the reason why the members of a subgroup cannot pass on messages, or `None` if they
    /// can (REL-1).
    fn relay_refusal(&self, subgroup: &SubgroupDescription) -> Option<&'static str> {
        if !subgroup.relayed {
            None
        } else if self.fabric.is_on_one_host() {
            Some(
                "over shared memory all members read the sender's row; remove relayed = true, or \
                 set fabric = \"tcp\" or \"verbs\"",
            )
        } else if subgroup.unordered {
            Some("it is unordered; remove unordered = true")
        } else if subgroup.senders().len() != 1 && subgroup.pause_senders_after_ms == 0 {
            Some(
                "it does not have exactly one sender; remove relayed = true, because several \
                 senders already share the links, list one node in senders, or set \
                 pause_senders_after_ms",
            )
        } else {
            None
        }
    }

    /// Returns the reason why a subgroup cannot be reserved, or `None` if it can.
    fn reserve_refusal(&self, subgroup: &SubgroupDescription) -> Option<&'static str> {
        if !subgroup.reserved {
            None
        } else if self.membership == Membership::Fixed {
            Some("membership is fixed; set membership = \"changing\"")
        } else if subgroup.logged {
            Some("its durable messages would be lost when it is closed; remove logged = true")
        } else if subgroup.large_max > 0 {
            Some("large messages may be in flight when it is closed; remove large_max")
        } else {
            None
        }
    }

    /// Refuses the settings that are not available with fixed membership.
    fn check_fixed(&self) -> Result<(), DescriptionError> {
        if self.membership == Membership::Changing {
            return Ok(());
        }
        if self.initial.len() != self.nodes.len() {
            return Err(DescriptionError::Fixed("nodes that are not initial (initial)"));
        }
        if self.subgroups.iter().any(|subgroup| subgroup.large_max > 0) {
            return Err(DescriptionError::Fixed("large messages (large_max)"));
        }
        if self.evict_slow_after_ms != 0 {
            return Err(DescriptionError::Fixed("a limit for slow members (evict_slow_after_ms)"));
        }
        if self.subgroups.iter().any(|subgroup| subgroup.pause_senders_after_ms > 0) {
            return Err(DescriptionError::Fixed("pausing senders (pause_senders_after_ms)"));
        }
        if self.subgroups.iter().any(|subgroup| subgroup.clients) {
            return Err(DescriptionError::Fixed("clients (clients)"));
        }
        if self.nodes.iter().any(|node| node.state.is_some()) {
            return Err(DescriptionError::Fixed("state folders (state)"));
        }
        Ok(())
    }
}

/// Checks that other nodes can connect to each address, and that no two nodes share one.
pub(crate) fn check_addresses(nodes: &[NodeDescription]) -> Result<(), DescriptionError> {
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

pub(crate) fn check_nodes(
    what: &str,
    named: &[u32],
    known: &BTreeSet<u32>,
) -> Result<(), DescriptionError> {
    let mut seen = BTreeSet::new();
    for node in named {
        let what = || what.to_owned();
        if !known.contains(node) {
            return Err(DescriptionError::UnknownNode { what: what(), node: *node });
        }
        if !seen.insert(node) {
            return Err(DescriptionError::NodeTwice { what: what(), node: *node });
        }
    }
    Ok(())
}
