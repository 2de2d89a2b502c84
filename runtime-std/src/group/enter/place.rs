//! Collection of the resources that a process needs before it is a member.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tramontane_control::{Address, Identity, Listener, Session, SharedKey, incarnation};
use tramontane_core::ids::NodeId;

use super::forming::Forming;
use super::start_options::{StartError, StartOptions};
use crate::fabric::AnyFabric;
use crate::fabric::choice::{claim_residence, open, open_device};
use crate::group::control::control_endpoints::ControlEndpoints;
use crate::group::description::digest::digest_of_terms;
use crate::group::description::terms::{Description, Membership};
use crate::group::description::view::View;
use crate::group::durable::data::{DataFolder, VIEW_FOLDER};
use crate::group::durable::log_notice::LogNotice;
use crate::group::state::folder::{StateFolder, noted_logs};
use crate::rdma::NoFabric;
use crate::shared_memory::Residence;

/// How a process finds its group.
pub(crate) enum Found {
    /// A member is running that can admit this process.
    Running,
    /// The group begins with its first view, over these sessions.
    First(Vec<(NodeId, Session)>),
    /// The group continues from its logs in this view, over these sessions.
    Again(View, Vec<(NodeId, Session)>),
}

/// The resources of a process before it is a member.
pub(crate) struct StartingMember {
    pub(crate) own: NodeId,
    pub(crate) identity: Identity,
    pub(crate) addresses: BTreeMap<NodeId, Address>,
    pub(crate) key: Option<SharedKey>,
    pub(crate) listener: Listener,
    /// Set if the group uses shared memory.
    pub(crate) residence: Option<Arc<Residence>>,
    pub(crate) forming: Forming,
    /// Terms that are combined with the digest by which nodes meet.
    pub(crate) terms: u64,
    /// The recorded membership, if the process has a folder for it.
    pub(crate) state: Option<StateFolder>,
    /// Its logs.
    pub(crate) data: DataFolder,
}

impl StartingMember {
    /// Claims the node's directory and opens its fabric first, so that anything this machine lacks
    /// is reported before other nodes wait for it.
    pub(crate) fn take(
        description: &Description,
        options: StartOptions<'_>,
    ) -> Result<(Self, AnyFabric), StartError> {
        let own = NodeId(options.node);
        if !description.has_node(own) {
            let known = description.nodes.iter().map(|node| node.id).collect();
            return Err(StartError::UnknownNode { node: options.node, known });
        }
        let ControlEndpoints { addresses, key } = ControlEndpoints::of(description, &options.root)?;
        let digest = description.digest();
        let identity = Identity { node: own, incarnation: incarnation()?, digest };
        let StartOptions { root, time_limit, cancel, .. } = &options;
        let (carrier, name) = (description.fabric, &description.name);
        let residence = claim_residence(carrier, root, name, &identity, *time_limit, cancel)?;
        let address = addresses.get(&own).cloned().unwrap_or(Address::Unix(PathBuf::new()));
        let device = options.device.clone().or(&description.rdma);
        let failure_timeout = Duration::from_millis(description.failure_timeout_ms);
        let device = open_device(carrier, &device, failure_timeout, || address.resolved_ip())?;
        let fabric = open(own, residence.as_ref(), device).map_err(NoFabric::from)?;
        let listener = match options.listener {
            Some(listener) => listener,
            None => Listener::bind(&address).map_err(|source| StartError::Listen {
                address,
                node: options.node,
                source,
            })?,
        };
        let (path, keep_bytes) = (options.data.as_deref(), options.data_keep_bytes);
        let mut forming = options.forming;
        let listed = description.nodes.iter().find(|node| node.id == own.get());
        if let Some(path) = path.filter(|_| listed.is_none_or(|node| node.state.is_none())) {
            forming.state.get_or_insert_with(|| path.join(VIEW_FOLDER));
        }
        let folder = forming.state.as_deref().or(listed.and_then(|node| node.state.as_deref()));
        let folder = folder.filter(|_| description.membership == Membership::Changing);
        let noted = folder.map(noted_logs).transpose()?.unwrap_or_default();
        let mut data = DataFolder::open(description, own, path, keep_bytes, noted)?;
        let state =
            folder.map(|folder| StateFolder::open(folder, &description.name, own)).transpose()?;
        if let Some(path) = state.as_ref().and_then(|state| state.repaired.clone()) {
            data.notices.push(LogNotice::StateRepaired { path });
        }
        let terms = digest_of_terms(options.terms);
        let place = Self {
            own,
            identity,
            addresses,
            key,
            listener,
            residence,
            forming,
            terms,
            state,
            data,
        };
        Ok((place, fabric))
    }
}
