//! How a process becomes a member: with all initial nodes in the first view, or let into a group that runs (VIE-12).
//!
//! A node looks for a member first. If somebody runs, it joins. If nobody does, and it is an initial node, it meets the
//! others (`meeting`), until all are there or somebody is found running after all. So nodes may be started in any order,
//! and a node that comes back needs no other command than one that comes first. Those who meet form the group if none of
//! them was ever a member of it, or if all of them are told to (`forming`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_mesh::{Address, Identity, Listener, MeshError, SharedKey, VisitError, incarnation};

use super::account::Account;
use super::admission::Admission;
use super::description::Description;
use super::door::Hall;
use super::doors::{Doors, DoorsError};
use super::engine::{Engine, Parts};
use super::fabric::{GroupFabric, NoFabric};
use super::forming::{Forming, NotFormed};
use super::joining::{self, AttemptError, LetIn};
use super::large::{Handing, Large, LargeGate};
use super::membership::Membership;
use super::outgoing::{Gate, Outgoing};
use super::outside::{Calls, Outside};
use super::past::{Record, StateError, StateFolder};
use super::replica::Replica;
use super::request::Requests;
use super::running::Running;
use super::view::View;
use crate::host::HostFabric as _;
use crate::joined::BlockStore;
use crate::local::Carrier;
use crate::member::{Settings, Stopped};
use crate::poll::Poller;
use crate::rdma::DeviceOptions;
use crate::shared_memory::{self, GroupName, Residence, Root};

/// How long it may take to become a member, where nothing else is said.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Where and how a process becomes a member.
#[derive(Debug)]
pub struct StartOptions<'s> {
    /// Which node of the description this is.
    pub node: u32,
    /// Where groups of this user live, over shared memory.
    pub root: Root,
    /// A socket that listens at the own address already, if there is one; over TCP and RDMA.
    pub listener: Option<Listener>,
    /// Which device, over RDMA.
    pub device: DeviceOptions,
    /// How long it may take to become a member.
    pub time_limit: Duration,
    /// Ends the wait when it becomes true.
    pub cancel: &'s AtomicBool,
    /// How the member behaves.
    pub settings: Settings,
    /// Whether it may form the group, and where it remembers that it did.
    pub forming: Forming,
}

impl StartOptions<'static> {
    /// As most programs want it: groups live where those of this user do, any device will do, and it may take a minute to
    /// become a member.
    #[must_use]
    pub fn new(node: u32) -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self {
            node,
            root: Root::from_env(),
            listener: None,
            device: DeviceOptions::default(),
            time_limit: TIME_LIMIT,
            cancel: &NEVER,
            settings: Settings::default(),
            forming: Forming::default(),
        }
    }
}

/// Why a process did not become a member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The description has no such node.
    #[error(
        "node {node} is not in the group file, which has {known:?}; take one of these, or add it at all members"
    )]
    UnknownNode {
        /// The node.
        node: u32,
        /// Those that it has.
        known: Vec<u32>,
    },
    /// The others' doors cannot be gone to.
    #[error(transparent)]
    Doors(#[from] DoorsError),
    /// No place in shared memory.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// Nothing to carry the writes.
    #[error(transparent)]
    Fabric(#[from] NoFabric),
    /// The own address is taken, or none.
    #[error("cannot listen at {address}: {source}; is node {node} running already?")]
    Listen {
        /// Where.
        address: Address,
        /// This node.
        node: u32,
        /// What the system says.
        source: std::io::Error,
    },
    /// The initial nodes did not come together.
    #[error(transparent)]
    Meet(#[from] MeshError),
    /// The group runs, and did not let this node in.
    #[error("the group did not let node {node} in: {why}; see 'tramontane status', and try again")]
    NotLetIn {
        /// This node.
        node: u32,
        /// The last reason.
        why: String,
    },
    /// Nobody runs, and this is no initial node.
    #[error(
        "no member of group \"{group}\" is running, and node {node} is not among its initial nodes; start those first"
    )]
    NobodyRuns {
        /// The group.
        group: String,
        /// This node.
        node: u32,
    },
    /// A node goes by another description.
    #[error(
        "node {node} has another configuration{}; give all nodes the same group file",
        if fields.is_empty() { String::new() } else { format!(": another {fields}") }
    )]
    OtherConfiguration {
        /// The node.
        node: u32,
        /// The fields that differ, as far as that can be told.
        fields: String,
    },
    /// The initial nodes came together, and may not form the group.
    #[error(transparent)]
    NotFormed(#[from] NotFormed),
    /// What this node remembers cannot be had.
    #[error(transparent)]
    State(#[from] StateError),
    /// A process of the group goes by another key or program, and no other one runs.
    #[error("node {node}: {why}")]
    SentAway {
        /// The node.
        node: u32,
        /// What it said.
        why: VisitError,
    },
    /// The wait was ended.
    #[error("interrupted while joining")]
    Cancelled,
    /// The member ended before it was one.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The system refused something.
    #[error("cannot start: {0}; see what the system says, and try again")]
    Io(#[from] std::io::Error),
}

/// Becomes a member of a group, and runs as one.
///
/// Returns once this process is in a view: [`Replica::view_changed`] was called.
///
/// # Errors
/// [`StartError`]; nothing is left behind then, but a folder for its state.
pub fn start<R: Replica + 'static>(
    description: Description,
    options: StartOptions<'_>,
    replica: R,
) -> Result<Running, StartError> {
    let until = Instant::now() + options.time_limit;
    let cancel = options.cancel;
    let settings = options.settings;
    let (place, fabric) = Place::take(&description, options)?;
    place.become_member(description, fabric, replica, settings, until, cancel)
}

/// What a process has before it is a member.
pub(super) struct Place {
    pub(super) own: NodeId,
    pub(super) identity: Identity,
    pub(super) addresses: BTreeMap<NodeId, Address>,
    pub(super) key: Option<SharedKey>,
    pub(super) listener: Listener,
    /// Over shared memory.
    pub(super) residence: Option<Arc<Residence>>,
    pub(super) forming: Forming,
    /// What it remembers, if it has a folder for that.
    pub(super) state: Option<StateFolder>,
}

impl Place {
    /// Takes it, and what will carry the writes: what this machine lacks is told before others wait for it.
    fn take(
        description: &Description,
        options: StartOptions<'_>,
    ) -> Result<(Self, GroupFabric), StartError> {
        let own = NodeId(options.node);
        if !description.has_node(own) {
            let known = description.nodes.iter().map(|node| node.id).collect();
            return Err(StartError::UnknownNode { node: options.node, known });
        }
        let Doors { addresses, key } = Doors::of(description, &options.root)?;
        let digest = description.digest();
        let identity = Identity { node: own, incarnation: incarnation()?, digest };
        let mut residence = None;
        if description.fabric == Carrier::SharedMemory {
            let name = GroupName::new(&description.name)?;
            let StartOptions { root, time_limit, cancel, .. } = &options;
            let claimed = Residence::claim(
                root,
                &name,
                own,
                digest,
                identity.incarnation,
                *time_limit,
                cancel,
            )?;
            residence = Some(Arc::new(claimed));
        }
        let address = addresses.get(&own).cloned().unwrap_or(Address::Unix(PathBuf::new()));
        let fabric =
            GroupFabric::alone(description, own, &address, &options.device, residence.clone())?;
        let listener = match options.listener {
            Some(listener) => listener,
            None => Listener::bind(&address).map_err(|source| StartError::Listen {
                address,
                node: options.node,
                source,
            })?,
        };
        let forming = options.forming;
        let listed = description.nodes.iter().find(|node| node.id == own.get());
        let folder = forming.state.as_deref().or(listed.and_then(|node| node.state.as_deref()));
        let state =
            folder.map(|folder| StateFolder::open(folder, &description.name, own)).transpose()?;
        Ok((Self { own, identity, addresses, key, listener, residence, forming, state }, fabric))
    }

    fn become_member<R: Replica + 'static>(
        self,
        description: Description,
        mut fabric: GroupFabric,
        mut replica: R,
        settings: Settings,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Running, StartError> {
        let met = self.meet_unless_running(&description, until, cancel)?;
        let hall = Hall::default();
        let nodes = description.nodes.iter().map(|node| NodeId(node.id));
        let door = hall.open(self.listener.try_clone()?, self.identity, nodes, self.key.clone())?;
        let (requests, receiver) = Requests::new(fabric.fabric.local_bell());
        let outside = Arc::new(Outside {
            identity: self.identity,
            addresses: self.addresses,
            key: self.key,
            requests: requests.clone(),
            calls: Calls::default(),
        });
        let record = Record {
            folder: self.state,
            group: description.name.clone(),
            digest: self.identity.digest,
            node: self.own,
            incarnation: self.identity.incarnation,
        };
        let mut let_in = None;
        let admission = match met {
            Some(talks) => {
                for (node, talk) in talks {
                    fabric.connect(node, talk);
                }
                Admission::first(View::first(&description))
            }
            None => {
                let joined =
                    joining::join(&description, self.own, &outside, &mut replica, until, cancel);
                let joined = joined.map_err(|error| not_let_in(&self.identity, error))?;
                let admission = joined.admission.clone();
                let_in = Some(joined);
                admission
            }
        };
        let ending = Arc::default();
        let store = fabric.fabric.block_store();
        let (mut gates, mut outgoing, mut handings) = (Vec::new(), Vec::new(), Vec::new());
        for Sending { gate, is_unordered, handing } in
            sendings(&description, self.own, &store, &ending)
        {
            outgoing.push(Outgoing::new(Arc::clone(&gate), is_unordered));
            handings.extend(handing.map(|handing| (gate.subgroup(), handing)));
            gates.push(gate);
        }
        let large = Large::new(&description, store, handings.into_iter());
        let membership =
            Arc::new(Membership { description, own: self.own, options: settings.options, ending });
        let unsent = Arc::new(Mutex::new(Vec::new()));
        let parts = Parts {
            membership: Arc::clone(&membership),
            fabric,
            outgoing,
            large,
            requests: receiver,
            outside: Arc::clone(&outside),
            replica,
            account: Account::new(hall.board.clone()),
            record,
            unsent: Arc::clone(&unsent),
            idle_time: settings.idle_time,
        };
        let engine = Engine::open(admission, parts)?;
        // Whoever comes from now on is answered.
        let _ = hall.inside.set(Arc::clone(&outside));
        let poller = Poller::start(engine, &membership.ending)?;
        let_in.into_iter().for_each(LetIn::tell_up);
        Ok(Running { poller, membership, gates, requests, board: hall.board, unsent, _door: door })
    }
}

fn not_let_in(own: &Identity, error: AttemptError) -> StartError {
    match error {
        AttemptError::SentAway { node, why: VisitError::OtherConfiguration { digest } } => {
            StartError::other_configuration(node, own.digest, digest)
        }
        AttemptError::Visit(VisitError::Cancelled) => StartError::Cancelled,
        AttemptError::SentAway { node, why } => StartError::SentAway { node: node.get(), why },
        error => StartError::NotLetIn { node: own.node.get(), why: error.to_string() },
    }
}

/// What there is of a subgroup in which this node sends.
struct Sending {
    gate: Arc<Gate>,
    is_unordered: bool,
    handing: Option<Handing>,
}

/// One for each subgroup in which this node sends.
fn sendings(
    description: &Description,
    own: NodeId,
    store: &BlockStore,
    ending: &Arc<crate::poll::Ending>,
) -> Vec<Sending> {
    let subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
    let ours = subgroups.filter(|(_, subgroup)| subgroup.senders().contains(&own.get()));
    ours.map(|(id, subgroup)| {
        let large = description.large(id);
        let large = large.map(|large| LargeGate::new(large.bytes_max, large.window, store.clone()));
        let (gate, handing) = large.unzip();
        let gate = Gate::new(id, subgroup.message_max, gate, ending);
        Sending { gate, is_unordered: subgroup.unordered, handing }
    })
    .collect()
}
