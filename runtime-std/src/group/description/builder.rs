//! A description built by a program, for groups without a file.

use tramontane_control::HostAddress;

use super::error::DescriptionError;
use super::terms::{Description, Membership, NodeDescription, SubgroupDescription};
use crate::carrier::Carrier;

/// Builds a [`Description`]: [`Description::builder`] begins one, [`build`](Self::build) checks it.
///
/// Every setting that is not given has the same default as in a group file: shared memory, changing
/// membership, and one subgroup of all nodes in which all nodes send.
#[derive(Clone, Debug)]
pub struct DescriptionBuilder {
    description: Description,
    /// The subgroup of all nodes, used if no other subgroup is given.
    all: SubgroupDescription,
    /// The number of nodes, counted from the first, that send in the subgroup; all if `None`.
    senders: Option<usize>,
}

impl Description {
    /// Begins a description with this name.
    #[must_use]
    pub fn builder(name: &str) -> DescriptionBuilder {
        let description = Self { subgroups: Vec::new(), ..Self::local(name, 0, 1, 0) };
        DescriptionBuilder { description, all: SubgroupDescription::named(name), senders: None }
    }
}

impl DescriptionBuilder {
    /// Sets nodes `0` to `count - 1`, in this rank order, on this machine.
    #[must_use]
    pub fn nodes(mut self, count: u32) -> Self {
        self.description.nodes = (0..count).map(NodeDescription::of).collect();
        self
    }

    /// Sets nodes with these ids, in this rank order, on this machine.
    #[must_use]
    pub fn node_ids(mut self, ids: impl IntoIterator<Item = u32>) -> Self {
        self.description.nodes = ids.into_iter().map(NodeDescription::of).collect();
        self
    }

    /// Sets the address at which each node listens, in rank order. A group over TCP uses the
    /// addresses for all traffic, a group over RDMA only to connect. If no nodes have been set, the
    /// nodes are `0`, `1` and so on.
    #[must_use]
    pub fn addresses<A: Clone + Into<HostAddress>>(mut self, addresses: &[A]) -> Self {
        if self.description.nodes.is_empty() {
            self = self.nodes(u32::try_from(addresses.len()).unwrap_or(u32::MAX));
        }
        for (node, address) in self.description.nodes.iter_mut().zip(addresses) {
            node.address = Some(address.clone().into());
        }
        self
    }

    /// Sets the fabric that carries the writes.
    #[must_use]
    pub fn fabric(mut self, fabric: Carrier) -> Self {
        self.description.fabric = fabric;
        self
    }

    /// Makes membership fixed: all nodes are members from beginning to end. See
    /// [`Membership::Fixed`].
    #[must_use]
    pub fn fixed(mut self) -> Self {
        self.description.membership = Membership::Fixed;
        self
    }

    /// Sets the number of slots per sender.
    #[must_use]
    pub fn window(mut self, slots: u32) -> Self {
        self.all.window = slots;
        self
    }

    /// Sets the maximum message size, in bytes.
    #[must_use]
    pub fn message_max(mut self, bytes: u32) -> Self {
        self.all.message_max = bytes;
        self
    }

    /// Lets only the first `count` nodes send.
    #[must_use]
    pub fn senders(mut self, count: u32) -> Self {
        self.senders = usize::try_from(count).ok();
        self
    }

    /// Delivers messages on receipt, unordered and without waiting for stability.
    #[must_use]
    pub fn unordered(mut self) -> Self {
        self.all.unordered = true;
        self
    }

    /// Makes members pass on the messages of the only sender. See [`SubgroupDescription::relayed`].
    #[must_use]
    pub fn relayed(mut self) -> Self {
        self.all.relayed = true;
        self
    }

    /// Makes members log the messages that they deliver. See [`SubgroupDescription::logged`].
    #[must_use]
    pub fn logged(mut self) -> Self {
        self.all.logged = true;
        self
    }

    /// Adds a subgroup, which replaces the default subgroup of all nodes. Call this once per
    /// subgroup.
    #[must_use]
    pub fn subgroup(mut self, subgroup: SubgroupDescription) -> Self {
        self.description.subgroups.push(subgroup);
        self
    }

    /// Sets the heartbeat interval, and the time without a heartbeat after which a member is
    /// removed, both in ms.
    #[must_use]
    pub fn heartbeat_ms(mut self, heartbeat_ms: u64, failure_timeout_ms: u64) -> Self {
        self.description.heartbeat_ms = heartbeat_ms;
        self.description.failure_timeout_ms = failure_timeout_ms;
        self
    }

    /// Sets the file that contains the key shared by all members.
    #[must_use]
    pub fn key_file(mut self, file: impl Into<std::path::PathBuf>) -> Self {
        self.description.key_file = Some(file.into());
        self
    }

    /// Allows unencrypted traffic. See [`Description::allow_clear`].
    #[must_use]
    pub fn allow_clear(mut self) -> Self {
        self.description.allow_clear = true;
        self
    }

    /// Checks the description and returns it.
    ///
    /// # Errors
    /// [`DescriptionError`].
    pub fn build(self) -> Result<Description, DescriptionError> {
        let Self { mut description, mut all, senders } = self;
        if description.subgroups.is_empty() {
            all.senders = senders
                .map(|count| description.nodes.iter().take(count).map(|node| node.id).collect());
            description.subgroups.push(all);
        }
        description.complete()?;
        Ok(description)
    }
}
