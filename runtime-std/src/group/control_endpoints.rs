//! The control servers of a group's processes: their addresses, and their key.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tramontane_control::{Address, KeyError, SharedKey};
use tramontane_core::ids::NodeId;

use super::description::Description;
use crate::carrier::Carrier;
use crate::rdma::{self, ClearNotAllowed};
use crate::shared_memory::{self, GroupName, Root};

/// Why the control servers of a group cannot be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlEndpointsError {
    /// Over shared memory, the group's name cannot name a folder.
    #[error(transparent)]
    Name(#[from] shared_memory::Error),
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The group has a key, and RDMA cannot encrypt.
    #[error(transparent)]
    Clear(#[from] ClearNotAllowed),
    /// An address can be reached from other hosts, and there is no key.
    #[error(
        "{0} can be reached from outside, and there is no key; give key_file, or set allow_clear = true"
    )]
    KeyNeeded(SocketAddr),
}

/// All control servers of a group.
#[derive(Clone, Debug)]
pub struct ControlEndpoints {
    pub(super) addresses: BTreeMap<NodeId, Address>,
    pub(super) key: Option<SharedKey>,
}

impl ControlEndpoints {
    /// Those of a description. `root` is where groups live, over shared memory.
    ///
    /// # Errors
    /// [`ControlEndpointsError`]: an address or a key is missing, or cannot be used.
    pub fn of(description: &Description, root: &Root) -> Result<Self, ControlEndpointsError> {
        if description.fabric == Carrier::Verbs {
            rdma::check_clear(description.key_file.is_some(), description.allow_clear)?;
        }
        let key = description.key_file.as_deref().map(SharedKey::from_file).transpose()?;
        let addresses = match description.fabric {
            Carrier::SharedMemory => {
                let name = GroupName::new(&description.name)?;
                let server = |id| Address::Unix(root.socket_path(&name, id));
                description
                    .nodes
                    .iter()
                    .map(|node| NodeId(node.id))
                    .map(|id| (id, server(id)))
                    .collect()
            }
            Carrier::Tcp | Carrier::Verbs => {
                let listed = description
                    .nodes
                    .iter()
                    .filter_map(|node| Some((NodeId(node.id), node.address?)));
                let exposed = listed.clone().find(|(_, address)| !address.ip().is_loopback());
                if let Some((_, exposed)) =
                    exposed.filter(|_| key.is_none() && !description.allow_clear)
                {
                    return Err(ControlEndpointsError::KeyNeeded(exposed));
                }
                listed.map(|(id, address)| (id, Address::Tcp(address))).collect()
            }
        };
        Ok(Self { addresses, key })
    }
}
