//! How a process becomes a member: with all initial nodes in the first view, or let into a group that runs (VIE-12).
//!
//! A node looks for a member first. If somebody runs, it joins. If nobody does, and it is an initial node, it meets the
//! others, until all are there or somebody is found running after all. So nodes may be started in any order, and a node
//! that comes back needs no other command than one that comes first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_mesh::{
    Address, Identity, Listener, Mesh, MeshError, MeshOptions, SharedKey, Talk, VisitError, incarnation,
};

use super::account::Account;
use super::admission::Admission;
use super::description::Description;
use super::door::Hall;
use super::doors::{Doors, DoorsError};
use super::engine::{Engine, Parts};
use super::fabric::{GroupFabric, NoFabric};
use super::joining::{self, AttemptError, LetIn};
use super::large::{Handing, Large, LargeGate};
use super::looking::{Looked, look};
use super::membership::Membership;
use super::outgoing::{Gate, Outgoing};
use super::outside::Outside;
use super::replica::Replica;
use super::request::Requests;
use super::running::Running;
use super::view::{FIRST_VIEW, View};
use crate::host::HostFabric as _;
use crate::joined::BlockStore;
use crate::local::Carrier;
use crate::member::{Settings, Stopped};
use crate::poll::Poller;
use crate::rdma::DeviceOptions;
use crate::shared_memory::{self, GroupName, Residence, Root};

/// Between two looks while the initial nodes meet.
const LOOK_PAUSE: Duration = Duration::from_millis(300);

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
    /// A process of the group goes by another key, description or program, and no other one runs.
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
/// [`StartError`]; nothing is left behind then.
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
struct Place {
    own: NodeId,
    identity: Identity,
    addresses: BTreeMap<NodeId, Address>,
    key: Option<SharedKey>,
    listener: Listener,
}

impl Place {
    /// Takes it, and what will carry the writes: what this machine lacks is told before others wait for it.
    fn take(description: &Description, options: StartOptions<'_>) -> Result<(Self, GroupFabric), StartError> {
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
            let claimed =
                Residence::claim(root, &name, own, digest, identity.incarnation, *time_limit, cancel)?;
            residence = Some(Arc::new(claimed));
        }
        let address = addresses.get(&own).cloned().unwrap_or(Address::Unix(PathBuf::new()));
        let fabric = GroupFabric::alone(description, own, &address, &options.device, residence)?;
        let listener = match options.listener {
            Some(listener) => listener,
            None => Listener::bind(&address).map_err(|source| StartError::Listen {
                address,
                node: options.node,
                source,
            })?,
        };
        Ok((Self { own, identity, addresses, key, listener }, fabric))
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
        let door = hall.open(self.listener.try_clone()?, self.identity, self.key.clone())?;
        let (requests, receiver) = Requests::new(fabric.fabric.local_bell());
        let outside = Arc::new(Outside {
            identity: self.identity,
            addresses: self.addresses,
            key: self.key,
            requests: requests.clone(),
            is_over: AtomicBool::new(false),
        });
        let mut let_in = None;
        let admission = match met {
            Some(talks) => {
                for (node, talk) in talks {
                    fabric.connect(node, talk);
                }
                Admission::first(View::first(&description))
            }
            None => {
                let joined = joining::join(&description, self.own, &outside, &mut replica, until, cancel);
                let joined = joined.map_err(|error| not_let_in(self.own, error))?;
                let admission = joined.admission.clone();
                let_in = Some(joined);
                admission
            }
        };
        let ending = Arc::default();
        let store = fabric.fabric.block_store();
        let (mut gates, mut outgoing, mut handings) = (Vec::new(), Vec::new(), Vec::new());
        for Sending { gate, is_unordered, handing } in sendings(&description, self.own, &store, &ending) {
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
            unsent: Arc::clone(&unsent),
            idle_time: settings.idle_time,
        };
        let engine = Engine::open(admission, parts)?;
        // Whoever comes from now on is answered.
        let _ = hall.requests.set(requests.clone());
        let poller = Poller::start(engine, &membership.ending)?;
        let_in.into_iter().for_each(LetIn::tell_up);
        Ok(Running { poller, membership, gates, requests, board: hall.board, unsent, _door: door })
    }

    /// Meets all other initial nodes; nothing once somebody is found running, which this node can then join.
    fn meet_unless_running(
        &self,
        description: &Description,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<(NodeId, Talk)>>, StartError> {
        let is_initial = description.initial.contains(&self.own.get());
        loop {
            let looked = self.look();
            if looked.is_running {
                return Ok(None);
            }
            if is_initial {
                return self.meet(description, until, cancel);
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(StartError::Cancelled);
            }
            if Instant::now() >= until {
                // Not before: whoever still meets others sends everybody away.
                if let Some((node, why)) = looked.sent_away {
                    return Err(StartError::SentAway { node: node.get(), why });
                }
                let group = description.name.clone();
                return Err(StartError::NobodyRuns { group, node: self.own.get() });
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    fn look(&self) -> Looked {
        look(&self.identity, &self.addresses, self.key.as_ref())
    }

    /// Meets the other initial nodes, and goes on looking for a running one meanwhile.
    fn meet(
        &self,
        description: &Description,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<(NodeId, Talk)>>, StartError> {
        let view = View::first(description);
        let own = view.rank_of(self.own).unwrap_or_default();
        let addresses: Vec<Address> =
            view.members.iter().filter_map(|node| self.addresses.get(node).cloned()).collect();
        let (is_found, is_met, stop) =
            (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        let met = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_met.load(Ordering::Relaxed) {
                    std::thread::sleep(LOOK_PAUSE / 10);
                    if cancel.load(Ordering::Relaxed) {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
            scope.spawn(|| {
                while !is_met.load(Ordering::Relaxed) {
                    std::thread::sleep(LOOK_PAUSE);
                    if !is_met.load(Ordering::Relaxed) && self.look().is_running {
                        is_found.store(true, Ordering::Relaxed);
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
            let met = Mesh::join(MeshOptions {
                own,
                members: &view.members,
                addresses: &addresses,
                listener: self.listener.try_clone().ok(),
                incarnation: Some(self.identity.incarnation),
                view: FIRST_VIEW,
                digest: description.forming_digest(),
                key: self.key.clone(),
                // Looked at before.
                allow_clear: true,
                time_limit: until.saturating_duration_since(Instant::now()),
                cancel: &stop,
            });
            is_met.store(true, Ordering::Relaxed);
            met.map(Mesh::into_talks)
        });
        match met {
            Ok(talks) => {
                let talks = view.members.iter().copied().zip(talks);
                Ok(Some(talks.filter_map(|(node, talk)| Some((node, talk?))).collect()))
            }
            Err(MeshError::Running { .. }) => Ok(None),
            Err(MeshError::Cancelled) if is_found.load(Ordering::Relaxed) => Ok(None),
            Err(MeshError::Cancelled) => Err(StartError::Cancelled),
            Err(error) => Err(error.into()),
        }
    }
}

fn not_let_in(own: NodeId, error: AttemptError) -> StartError {
    match error {
        AttemptError::Visit(VisitError::Cancelled) => StartError::Cancelled,
        AttemptError::SentAway { node, why } => StartError::SentAway { node: node.get(), why },
        error => StartError::NotLetIn { node: own.get(), why: error.to_string() },
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
