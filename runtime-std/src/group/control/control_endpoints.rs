//! The control servers of a group's processes: their addresses and their key.

use std::collections::BTreeMap;
use std::path::Path;

use tramontane_control::{Address, HostAddress, KeyError, SharedKey};
use tramontane_core::ids::NodeId;

use crate::carrier::Carrier;
use crate::group::description::terms::Description;
use crate::rdma::ClearNotAllowed;
use crate::shared_memory::{GroupName, Root};
use crate::{rdma, shared_memory};

/// The reason why the control servers of a group cannot be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlEndpointsError {
    /// The group uses shared memory, and its name is not valid for a folder.
    #[error(transparent)]
    Name(#[from] shared_memory::Error),
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The group has a key, but RDMA cannot encrypt.
    #[error(transparent)]
    Clear(#[from] ClearNotAllowed),
    /// An address can be reached from other hosts, but there is no key.
    #[error(
        "other hosts can reach {0}, and there is no key; set key_file, or set allow_clear = true"
    )]
    KeyNeeded(HostAddress),
}

/// All control servers of a group, or of an overlay.
#[derive(Clone, Debug)]
pub struct ControlEndpoints {
    pub(crate) addresses: BTreeMap<NodeId, Address>,
    pub(crate) key: Option<SharedKey>,
}

impl ControlEndpoints {
    /// Returns the control servers of the group in a description. `root` is the folder of all
    /// groups over shared memory.
    ///
    /// # Errors
    /// [`ControlEndpointsError`]: an address or a key is missing, or cannot be used.
    pub fn of(description: &Description, root: &Root) -> Result<Self, ControlEndpointsError> {
        let nodes = description.nodes.iter();
        let nodes = nodes.map(|node| (NodeId(node.id), node.address.clone()));
        let Description { fabric, ref name, ref key_file, allow_clear, .. } = *description;
        Self::listed(fabric, (root, name.as_str()), nodes, key_file.as_deref(), allow_clear)
    }

    /// Returns the address of each node.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.values()
    }

    /// Returns the key, if there is one.
    #[must_use]
    pub const fn key(&self) -> Option<&SharedKey> {
        self.key.as_ref()
    }

    /// Returns the control servers of nodes with or without addresses. Nodes without addresses meet
    /// in the group's folder on this machine. An address that is not loopback requires a key.
    pub(crate) fn listed(
        carrier: Carrier,
        (root, name): (&Root, &str),
        nodes: impl Iterator<Item = (NodeId, Option<HostAddress>)>,
        key_file: Option<&Path>,
        allow_clear: bool,
    ) -> Result<Self, ControlEndpointsError> {
        if carrier.is_rdma() {
            rdma::check_clear(key_file.is_some(), allow_clear)?;
        }
        let key = key_file.map(SharedKey::from_file).transpose()?;
        if carrier.is_on_one_host() {
            let name = GroupName::new(name)?;
            let socket = |(node, _)| (node, Address::Unix(root.socket_path(&name, node)));
            return Ok(Self { addresses: nodes.map(socket).collect(), key });
        }
        let mut addresses = BTreeMap::new();
        for (node, address) in nodes.filter_map(|(node, address)| Some((node, address?))) {
            if !address.is_local() && key.is_none() && !allow_clear {
                return Err(ControlEndpointsError::KeyNeeded(address));
            }
            addresses.insert(node, Address::Tcp(address));
        }
        Ok(Self { addresses, key })
    }
}
