//! Where the doors of a group's processes are, and what it takes to be let in.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tramontane_control::{Address, KeyError, SharedKey};
use tramontane_core::ids::NodeId;

use super::description::Description;
use crate::carrier::Carrier;
use crate::rdma::{self, ClearNotAllowed};
use crate::shared_memory::{self, GroupName, Root};

/// Why nobody's door can be gone to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoorsError {
    /// The group's name is none of a folder, over shared memory.
    #[error(transparent)]
    Name(#[from] shared_memory::Error),
    /// The key cannot be had.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// RDMA, and a key.
    #[error(transparent)]
    Clear(#[from] ClearNotAllowed),
    /// An address that others can reach, and no key.
    #[error(
        "{0} can be reached from outside, and there is no key; give key_file, or set allow_clear = true"
    )]
    KeyNeeded(SocketAddr),
}

/// All doors of a group.
#[derive(Clone, Debug)]
pub struct Doors {
    pub(super) addresses: BTreeMap<NodeId, Address>,
    pub(super) key: Option<SharedKey>,
}

impl Doors {
    /// Those of a description. `root` is where groups live, over shared memory.
    ///
    /// # Errors
    /// [`DoorsError`]: an address or a key is missing, or cannot be used.
    pub fn of(description: &Description, root: &Root) -> Result<Self, DoorsError> {
        if description.fabric == Carrier::Verbs {
            rdma::check_clear(description.key_file.is_some(), description.allow_clear)?;
        }
        let key = description.key_file.as_deref().map(SharedKey::from_file).transpose()?;
        let addresses = match description.fabric {
            Carrier::SharedMemory => {
                let name = GroupName::new(&description.name)?;
                let door = |id| Address::Unix(root.socket_path(&name, id));
                description
                    .nodes
                    .iter()
                    .map(|node| NodeId(node.id))
                    .map(|id| (id, door(id)))
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
                    return Err(DoorsError::KeyNeeded(exposed));
                }
                listed.map(|(id, address)| (id, Address::Tcp(address))).collect()
            }
        };
        Ok(Self { addresses, key })
    }
}
