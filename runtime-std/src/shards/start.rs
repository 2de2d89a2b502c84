//! Makes a process a replica, which forms its group together with the others or returns to it with
//! a snapshot.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tramontane_control::{Address, ControlServer, Identity, Listener, incarnation};
use tramontane_core::ids::NodeId;
use tramontane_core::tram::{ReplicaId, ReplicaLinks, ReplicaOptions, Shape};
use tramontane_verbs::Site;

use super::application::ShardApplication;
use super::calls::Calls;
use super::description::{Description, Replicas};
use super::durable::{Journal, ReplicaFolder};
use super::engine::Engine;
use super::entering::Entering;
use super::founding::{Founding, FoundingPart};
use super::founding_stage::FoundingStage;
use super::lent::open_replica;
use super::links::Links;
use super::lives::Lives;
use super::parts::Parts;
use super::places::Places;
use super::service::Service;
use super::shown_disks::DiskAtStart;
use super::snapshot::SnapshotSources;
use super::start_error::StartError;
use super::status::ReplicaStatus;
use crate::carrier::Carrier;
use crate::fabric::peers::PeerFabric;
use crate::fabric::{choice, each};
use crate::group::{ControlEndpoints, ControlEndpointsError};
use crate::member::Stopped;
use crate::poll::{Ending, Poller, nanoseconds};
use crate::rdma::NoFabric;
use crate::requests::Requests;
use crate::shared_memory::{Residence, Root};

/// The number of descriptors that a replica needs in addition to those of its views: for calls to
/// its control server, its files, and its standard streams.
const OTHER_DESCRIPTORS: u64 = 200;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Options for starting a replica.
#[derive(Debug)]
#[non_exhaustive]
pub struct StartOptions<'c> {
    /// Time limit for waiting for the other replicas.
    pub time_limit: Duration,
    /// Flag that ends the wait when it becomes true.
    pub cancel: &'c AtomicBool,
    /// The socket on which peers connect over TCP, if one is already open.
    pub listener: Option<Listener>,
    /// Called every few seconds with the names of the replicas that this one waits for.
    pub told: Option<fn(&[String])>,
    /// For a durable overlay: the folder in which this replica saves its log, in a folder of its
    /// own with the replica's name.
    pub data: Option<PathBuf>,
    /// The size in bytes of what a replica appends to its log on the disk between two snapshots of
    /// its application. The log has at most about twice this size.
    pub data_keep_bytes: u64,
}

/// The default of `data_keep_bytes`.
const DATA_KEEP_BYTES: u64 = 64 << 20;

impl Default for StartOptions<'_> {
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(30),
            cancel: &NEVER,
            listener: None,
            told: None,
            data: None,
            data_keep_bytes: DATA_KEEP_BYTES,
        }
    }
}

/// A running replica, driven by its own thread. Dropping the handle closes the replica.
pub struct Running {
    // Dropped first, because the control server must outlive it.
    poller: Poller,
    service: Arc<Service>,
    is_over: Arc<AtomicBool>,
    _server: ControlServer,
}

/// Makes this process a replica of an overlay, and runs it. Returns once the replica's group has
/// formed, or has admitted the replica again.
///
/// # Errors
/// Returns [`StartError`]. In that case nothing is left behind.
pub fn start<A: ShardApplication + 'static>(
    description: &Description,
    replica: ReplicaId,
    options: StartOptions<'_>,
    application: A,
) -> Result<Running, StartError> {
    let place = StartingProcess::of(description)?;
    place.places.check(replica)?;
    let node = place.places.node(replica);
    let identity = place.identity(node)?;
    // One instance for all applications, so that a program does not compile everything again for
    // each of its application types.
    let application: Box<dyn ShardApplication> = Box::new(application);
    let starting = Starting { place, description, own: replica, identity, application };
    let residence = starting.place.residence(description.fabric, &identity, &options)?;
    let address = starting.place.endpoints.addresses.get(&node);
    let device = open_device(description, || address.and_then(Address::resolved_ip))?;
    let fabric = choice::open(node, residence.as_ref(), device)?;
    each!(fabric, fabric => starting.run(fabric, options))
}

/// Opens the device that the fabric of an overlay needs, which must support regions.
pub(super) fn open_device(
    description: &Description,
    meeting: impl FnOnce() -> Option<IpAddr>,
) -> Result<Option<Site>, NoFabric> {
    let failure_timeout = Duration::from_millis(description.failure_timeout_ms);
    let Description { fabric, ref rdma, .. } = *description;
    let site = choice::open_device(fabric, rdma, failure_timeout, meeting)?;
    site.as_ref().map_or(Ok(()), Site::check_regions)?;
    Ok(site)
}

/// The resources of a process before it is a replica or client.
pub(super) struct StartingProcess {
    pub(super) places: Places,
    pub(super) endpoints: ControlEndpoints,
    pub(super) root: Root,
    pub(super) name: String,
    pub(super) digest: u64,
    pub(super) lease: Duration,
}

impl StartingProcess {
    /// Creates the resources from a description.
    pub(super) fn of(description: &Description) -> Result<Self, StartError> {
        let places = Places::new(description, description.overlay()?);
        let root = match &description.shm_dir {
            Some(folder) => Root::under(folder),
            None => Root::from_env(),
        };
        let endpoints = endpoints(description, &places, &root)?;
        Ok(Self {
            places,
            endpoints,
            root,
            name: description.name.clone(),
            digest: description.digest(),
            lease: Duration::from_millis(description.client_lease_ms),
        })
    }

    /// Returns the identity of a new process of a node.
    pub(super) fn identity(&self, node: NodeId) -> io::Result<Identity> {
        Ok(self.identity_of(node, incarnation()?))
    }

    /// Returns the identity of a given process of a node.
    pub(super) const fn identity_of(&self, node: NodeId, life: u64) -> Identity {
        Identity { node, incarnation: life, digest: self.digest }
    }

    /// Returns the local address on the route to the replicas, if the replicas have addresses.
    pub(super) fn own_address(&self) -> Option<IpAddr> {
        let remote = |address: &Address| match address {
            Address::Tcp(remote) => own_address_towards(*remote.resolve().ok()?.first()?).ok(),
            Address::Unix(_) => None,
        };
        self.endpoints.addresses.values().find_map(remote)
    }

    /// Claims the directory of a node in the folder where the processes meet.
    pub(super) fn residence(
        &self,
        carrier: Carrier,
        identity: &Identity,
        options: &StartOptions<'_>,
    ) -> Result<Option<Arc<Residence>>, StartError> {
        let StartOptions { time_limit, cancel, .. } = options;
        let (root, name) = (&self.root, &self.name);
        Ok(choice::claim_residence(carrier, root, name, identity, *time_limit, cancel)?)
    }
}

/// Returns the local address from which the system would send to another address. Nothing is sent.
fn own_address_towards(remote: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(remote)?;
    Ok(socket.local_addr()?.ip())
}

/// Returns the control servers of an overlay's replicas.
fn endpoints(
    description: &Description,
    places: &Places,
    root: &Root,
) -> Result<ControlEndpoints, ControlEndpointsError> {
    let nodes = places.replicas().map(|replica| places.node(replica));
    let addresses = description.groups.iter().flat_map(|group| match &group.replicas {
        Replicas::Addresses(addresses) => addresses.as_slice(),
        Replicas::Count(_) => &[],
    });
    let addresses = addresses.cloned().map(Some).chain(std::iter::repeat(None));
    let Description { fabric, ref name, ref key_file, allow_clear, .. } = *description;
    let nodes = nodes.zip(addresses);
    ControlEndpoints::listed(fabric, (root, name.as_str()), nodes, key_file.as_deref(), allow_clear)
}

/// A process that is about to become a replica.
struct Starting<'d> {
    place: StartingProcess,
    description: &'d Description,
    own: ReplicaId,
    identity: Identity,
    application: Box<dyn ShardApplication>,
}

/// Checks that this process may open the files that a replica needs for its views.
fn check_descriptors(description: &Description, links: usize) -> Result<(), StartError> {
    let views = u64::try_from(links).unwrap_or(u64::MAX);
    let of_views = views.saturating_mul(description.fabric.descriptors_per_view());
    let needed = of_views.saturating_add(OTHER_DESCRIPTORS);
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let clients = description.clients_max;
    if needed > limit {
        return Err(StartError::Descriptors { clients, needed, limit });
    }
    Ok(())
}

fn excess(needed: usize, accepted: usize) -> u32 {
    u32::try_from(needed - accepted).unwrap_or(u32::MAX)
}

impl Starting<'_> {
    fn run<F: PeerFabric>(
        self,
        mut fabric: F,
        options: StartOptions<'_>,
    ) -> Result<Running, StartError> {
        let until = Instant::now() + options.time_limit;
        let Self { place, description, own, identity, mut application } = self;
        let StartingProcess { places, endpoints, lease, .. } = place;
        // The resources are taken before others wait for this process, so that anything that this
        // machine lacks is reported at once.
        let (data, keep_bytes) = (options.data.as_deref(), options.data_keep_bytes);
        let folder = ReplicaFolder::open(description, &places, own, data, keep_bytes)?;
        let overlay = places.overlay().clone();
        let shape = Shape::of(&overlay, own.group);
        let (needed, accepted) = (shape.list_bytes(), fabric.region_list_bytes_max());
        if needed > accepted {
            let most = description.message_max.saturating_sub(excess(needed, accepted));
            return Err(StartError::MessagesTooLong { most });
        }
        let links = ReplicaLinks::of(&overlay, own.group).len();
        check_descriptors(description, links)?;
        let mut links = Links::new(&mut fabric, identity.node, links, shape.log_bytes())
            .map_err(|error| StartError::NoMemory(error.to_string()))?;
        let listener = match options.listener {
            Some(listener) => listener,
            None => listen(&endpoints, &places, own)?,
        };
        let mut journal = folder
            .map(|folder| {
                Journal::start(folder, fabric.any_bell(), &shape, description.log_entries)
            })
            .transpose()?;
        let lives = Arc::new(match &journal {
            Some(journal) => Lives::on_disk(lease, journal.known_lives(&places, own), &places),
            None => Lives::new(lease),
        });
        let service = Arc::new(Service::new(own, places.clone(), Arc::clone(&lives)));
        if let Some(journal) = &journal {
            service.set_formation(journal.formation().clone());
        }
        let served = Arc::clone(&service);
        let serve = move |client| served.receive(client);
        let nodes = places.nodes();
        let server = ControlServer::open(listener, identity, nodes, endpoints.key.clone(), serve)?;
        let founding = Founding {
            own,
            identity,
            endpoints: &endpoints,
            places: &places,
            service: &service,
            until,
            cancel: options.cancel,
            told: options.told,
            at_least: journal.as_ref().map_or(0, Journal::next_incarnation),
        };
        let content = journal.as_mut().and_then(Journal::take_content);
        let FoundingPart { incarnation, is_founder } = match &content {
            Some(_) => founding.continue_from_disk(),
            None => founding.run(journal.as_ref())?,
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let source = SnapshotSources {
            own,
            identity,
            endpoints: endpoints.clone(),
            places: places.clone(),
            is_over: Arc::clone(&is_over),
        };
        let replica_options = replica_options(description, incarnation, is_founder);
        let mut cell = open_replica(&overlay, own, replica_options, fabric.capabilities())?;
        let entering = Entering {
            cell: &mut cell,
            memory: &links,
            application: &mut application,
            journal: journal.as_mut(),
            incarnation,
            formation: service.formation(),
        };
        match (content, is_founder) {
            (Some(content), _) => entering.continue_from(content, description.log_entries)?,
            (None, true) => entering.found()?,
            (None, false) => entering.take_over(&source, until, options.cancel)?,
        }
        if let Some(journal) = &journal
            && service.formation().stage != FoundingStage::Begun
        {
            founding.begin(journal)?;
        }
        let (requests, receiver) = Requests::new(fabric.any_bell());
        let calls = Arc::new(Calls {
            identity,
            incarnation: u32::from(incarnation),
            disk: journal.as_ref().map(|journal| DiskAtStart {
                since: u32::from(journal.disk_since(incarnation)),
                saved: cell.with_dependent(|_, replica| replica.least_saved()).cells(),
            }),
            endpoints,
            lives,
            requests,
            is_over: Arc::clone(&is_over),
            rejected: Mutex::default(),
        });
        let ending = Arc::new(Ending::default());
        links.retire(&mut fabric);
        let engine = Engine::new(Parts {
            cell,
            links,
            fabric,
            application,
            journal,
            incarnation,
            calls: Arc::clone(&calls),
            service: Arc::clone(&service),
            requests: receiver,
            source: Arc::new(source),
            ending: Arc::clone(&ending),
            heartbeat: Duration::from_millis(description.heartbeat_ms),
        });
        let poller = Poller::start(engine, &ending)?;
        // From here on, the control server answers calls of peers.
        let _ = service.inside.set(calls);
        Ok(Running { poller, service, is_over, _server: server })
    }
}

fn replica_options(
    description: &Description,
    incarnation: u16,
    is_founder: bool,
) -> ReplicaOptions {
    let ns = |ms: u64| nanoseconds(Duration::from_millis(ms));
    ReplicaOptions {
        heartbeat_ns: ns(description.heartbeat_ms),
        suspect_ns: ns(description.failure_timeout_ms),
        campaign_ns: ns(description.failure_timeout_ms),
        lease_ns: ns(description.client_lease_ms),
        incarnation,
        is_founder,
        batching: description.batching,
        passes_on_early: description.pass_on_early,
        is_durable: description.durable,
        ..ReplicaOptions::default()
    }
}

fn listen(
    endpoints: &ControlEndpoints,
    places: &Places,
    own: ReplicaId,
) -> Result<Listener, StartError> {
    let address = endpoints.addresses.get(&places.node(own)).cloned();
    let address = address.unwrap_or(Address::Unix(std::path::PathBuf::new()));
    Listener::bind(&address).map_err(|source| StartError::Listen {
        address,
        replica: places.name(own),
        source,
    })
}

impl Running {
    /// Returns the replica's status.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        self.service.board.status().unwrap_or_default()
    }

    /// Returns the reason why the replica ended, or `None` if it is running.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.poller.stopped()
    }

    /// Ends the replica. Returns the reason why it ended, which is [`Stopped::Closed`] if this call
    /// ended it.
    pub fn close(self) -> Stopped {
        self.is_over.store(true, Ordering::Relaxed);
        self.poller.close()
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Running").field("status", &self.status()).finish_non_exhaustive()
    }
}
