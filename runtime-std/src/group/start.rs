//! How a process becomes a member: with all initial nodes in the first view, or let into a group
//! that runs (VIE-12).
//!
//! A node looks for a member first. If one runs, it joins. If none does, and it is an initial node,
//! it meets the others (`meeting`), until all are there or a member is found running after all. So
//! nodes may be started in any order, and a node that comes back needs no other command than one
//! that comes first. Nodes that meet form the group if none of them was ever a member of it, or if
//! all of them are told to (`forming`).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_control::{Address, Identity, Listener, Session, SharedKey, incarnation};
use tramontane_core::ids::{NodeId, SubgroupId};

use super::changing::{ChangingParts, Engine};
use super::clients::ClientOrders;
use super::control_endpoints::ControlEndpoints;
use super::control_service::MemberAccess;
use super::description::{Description, Membership};
use super::digest::digest_of_terms;
use super::durable::{DataFolder, LogNotice, Logs, VIEW_FOLDER};
use super::entering::{Entered, Reception};
use super::fabric::GroupFabric;
use super::forming::Forming;
use super::joining::LetIn;
use super::large::{Large, LargeSendQueue, LargeSendQueueReader};
use super::membership_record::{Record, StateFolder, noted_logs};
use super::noting::NotedFolder;
use super::participant::Participant;
use super::parts::Parts;
use super::replica::Replica;
use super::restart;
use super::running::{Handle, Running, Stepped};
use super::send_state::SendState;
use super::start_options::{StartError, StartOptions};
use super::statistics::Statistics;
use super::subgroup_sending::SubgroupSending;
use super::view::View;
use crate::carrier::Carrier;
use crate::fabric::{AnyBell, BlockStore};
use crate::member::Settings;
use crate::poll::Ending;
use crate::shared_memory::{GroupName, Residence};
use tramontane_core::fabric::{HostBlocks as _, HostFabric as _};

/// Becomes a member of a group, and runs as one: a thread of its own drives it.
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
    start_boxed(description, options, Box::new(replica))
}

/// One for all applications: each program would compile the whole member again, once for each type
/// of its own.
fn start_boxed(
    description: Description,
    options: StartOptions<'_>,
    replica: Box<dyn Replica>,
) -> Result<Running, StartError> {
    Ok(start_stepped(description, options, replica)?.spawn()?)
}

/// Becomes a member of a group, which the caller [steps](Running::step) in a loop of its own. Where
/// membership changes, the others remove a member that is not stepped for the group's failure
/// timeout.
///
/// # Errors
/// As [`start`].
pub fn start_stepped<R: Replica>(
    description: Description,
    options: StartOptions<'_>,
    replica: R,
) -> Result<Stepped<R>, StartError> {
    let until = Instant::now() + options.time_limit;
    let cancel = options.cancel;
    let settings = options.settings;
    let (place, fabric) = Place::take(&description, options)?;
    match description.membership {
        Membership::Fixed => {
            place.become_fixed(description, fabric, replica, settings, until, cancel)
        }
        Membership::Changing => {
            place.become_member(description, fabric, replica, settings, until, cancel)
        }
    }
}

/// How long a node meets others before it asks again whether one of them restarts.
const FORMING_TURN: Duration = Duration::from_secs(2);

/// How a process finds its group.
pub(super) enum Found {
    /// A member runs, which lets it in.
    Running,
    /// The group begins with its first view, on these sessions.
    First(Vec<(NodeId, Session)>),
    /// The group goes on from its logs in this view, on these sessions.
    Again(View, Vec<(NodeId, Session)>),
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
    /// Mixed with the digest by which nodes meet.
    pub(super) terms: u64,
    pub(super) rates: Vec<(u32, NonZeroU64)>,
    /// What it remembers, if it has a folder for that.
    pub(super) state: Option<StateFolder>,
    /// Its logs.
    pub(super) data: DataFolder,
}

impl Place {
    /// Takes it, and what will carry the writes: what this machine lacks is told before others wait
    /// for it.
    pub(super) fn take(
        description: &Description,
        options: StartOptions<'_>,
    ) -> Result<(Self, GroupFabric), StartError> {
        let own = NodeId(options.node);
        if !description.has_node(own) {
            let known = description.nodes.iter().map(|node| node.id).collect();
            return Err(StartError::UnknownNode { node: options.node, known });
        }
        let ControlEndpoints { addresses, key } = ControlEndpoints::of(description, &options.root)?;
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
        let (terms, rates) = (digest_of_terms(options.terms), options.rates);
        let place = Self {
            own,
            identity,
            addresses,
            key,
            listener,
            residence,
            forming,
            terms,
            rates,
            state,
            data,
        };
        Ok((place, fabric))
    }

    /// Finds the group running, restarts it, or forms it.
    ///
    /// A node that has noted that the group was being formed cannot know whether it was: another
    /// one may have become a member, and restarts. So it asks the others and meets those that form
    /// the group, in turn.
    pub(super) fn find_group(
        &mut self,
        description: &Description,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Found, StartError> {
        loop {
            let may_restart = self.may_restart(description);
            let is_note = self.state.as_ref().is_some_and(StateFolder::is_note);
            if may_restart
                && (!is_note || self.somebody_restarts())
                && let Some(met) = self.restart(description, until, cancel)?
            {
                return Ok(met);
            }
            let turn = Instant::now() + FORMING_TURN;
            let turn = if may_restart { until.min(turn) } else { until };
            let met = self.meet_unless_running(description, turn, cancel);
            let is_only_over = turn < until && Instant::now() >= turn;
            match met {
                Ok(Some(sessions)) => return Ok(Found::First(sessions)),
                // To those that meet, a node that restarts or joins looks as if it ran.
                Ok(None) => {
                    let probed = self.probe();
                    // The join says what is wrong with another process, and that the time is up.
                    let is_told = probed.has_members
                        || probed.other_configuration.is_some()
                        || probed.refused.is_some();
                    let is_over = cancel.load(Ordering::Relaxed) || Instant::now() >= until;
                    if probed.is_running || is_told && !self.may_restart(description) || is_over {
                        return Ok(Found::Running);
                    }
                    std::thread::sleep(restart::LOOK_PAUSE);
                }
                Err(error) if !is_only_over => return Err(error),
                // Not all came in this turn.
                Err(_) => {}
            }
        }
    }

    fn become_member<R: Replica>(
        mut self,
        description: Description,
        mut fabric: GroupFabric,
        replica: R,
        settings: Settings,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Stepped<R>, StartError> {
        let bell = fabric.fabric.local_bell();
        let (client_orders, mut replica) = ClientOrders::before(&description, self.own, replica)?;
        let entered = self.enter(&description, &mut fabric, &bell, &mut replica, until, cancel)?;
        let Entered { admission, reception, let_in } = entered;
        let Reception { service, server, requests, receiver, connector } = reception;
        let has_logs = !self.data.logs.is_empty();
        let folder = self.state.map(|folder| NotedFolder::new(folder, has_logs)).transpose()?;
        let record = Record {
            folder,
            group: description.name.clone(),
            digest: self.identity.digest,
            node: self.own,
            incarnation: self.identity.incarnation,
        };
        let ending = Arc::default();
        let store = fabric.fabric.block_store();
        let Senders { send_states, sending, large_queues } =
            Senders::new(&description, self.own, &store, &ending, &bell);
        let DataFolder { logs, notices: log_notices, keep_bytes, .. } = self.data;
        let logs = Logs::start(logs, &description, &bell, keep_bytes)?;
        let large = Large::new(&description, store, large_queues.into_iter());
        let participant =
            Arc::new(Participant { description, own: self.own, options: settings.options, ending });
        let unsent = Arc::new(Mutex::new(Vec::new()));
        let parts = Parts {
            participant: Arc::clone(&participant),
            fabric,
            sending,
            requests: receiver,
            replica,
            logs,
            statistics: Statistics::new(service.board.clone()),
            unsent: Arc::clone(&unsent),
            idle_time: settings.idle_time,
            overdue: None,
        };
        let changing = ChangingParts { large, connector: Arc::clone(&connector), record };
        let shared_logs = parts.logs.shared_logs();
        let engine = Engine::open(admission, parts, changing)?;
        let clients = client_orders.serve(
            &participant,
            &send_states,
            &bell,
            service.board.clone(),
            shared_logs.clone(),
        )?;
        // Visitors are answered from now on.
        let _ = service.inside.set(MemberAccess {
            requests: requests.clone(),
            connector: Some(connector),
            logs: shared_logs.clone(),
            clients: clients.clone(),
        });
        let_in.into_iter().for_each(LetIn::tell_up);
        let handle = Handle {
            participant,
            send_states,
            requests,
            board: service.board,
            unsent,
            log_notices,
            clients,
            logs: shared_logs,
            _server: server,
        };
        Ok(Running::changing(handle, engine))
    }
}

/// What there is of each subgroup in which this node sends: for senders, for the engine, and for
/// large messages.
pub(super) struct Senders {
    pub(super) send_states: Vec<Arc<SendState>>,
    pub(super) sending: Vec<SubgroupSending>,
    pub(super) large_queues: Vec<(SubgroupId, LargeSendQueueReader)>,
}

impl Senders {
    pub(super) fn new(
        description: &Description,
        own: NodeId,
        store: &BlockStore,
        ending: &Arc<Ending>,
        bell: &AnyBell,
    ) -> Self {
        let (mut send_states, mut sending, mut large_queues) = (Vec::new(), Vec::new(), Vec::new());
        let subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
        for (id, subgroup) in subgroups.filter(|(_, of)| of.senders().contains(&own.get())) {
            let large = description.large(id);
            let large = large
                .map(|large| LargeSendQueue::new(large.bytes_max, large.window, store.clone()));
            let (large, reader) = large.unzip();
            let state = SendState::new(id, subgroup, large, ending, bell);
            sending.push(SubgroupSending::new(Arc::clone(&state), subgroup.unordered));
            large_queues.extend(reader.map(|reader| (id, reader)));
            send_states.push(state);
        }
        Self { send_states, sending, large_queues }
    }
}
