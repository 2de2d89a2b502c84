//! The part of a start before a process is a member: it looks for a running member, meets the other
//! initial nodes, and reports why it waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_control::{
    Address, MeetingHandler, Mesh, MeshError, MeshOptions, Refusal, Session, SessionError,
};
use tramontane_core::ids::NodeId;

use super::forming::{NotFormed, Remembers, RestartWaiting, Statement, Waiting, judge, reason};
use super::lookout::Lookout;
use super::place::StartingMember;
use super::start_options::StartError;
use crate::group::control::control_service::ControlService;
use crate::group::control::probe::{LOOK, Probed, probe};
use crate::group::description::digest::differing;
use crate::group::description::subgroups::logged_subgroups;
use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::group::status::operator;
use crate::session_messages::{receive_message, send_message};

/// The interval between probes while the initial nodes meet.
const LOOK_PAUSE: Duration = Duration::from_millis(300);

/// The interval between reports of why the node waits, and the delay before the first report.
const TELL_PAUSE: Duration = Duration::from_secs(4);

/// The time for which a node must find a different configuration before it gives up. A node that is
/// still meeting others connects to this node within that time, so that both report the difference.
pub(crate) const OTHER_CONFIGURATION: Duration = Duration::from_secs(1);

/// Time limit for another node to write its note.
const NOTE_PATIENCE: Duration = Duration::from_secs(30);

/// The maximum length of an encoded [`Noted`].
const NOTE_BYTES_MAX: u64 = 16;

/// Confirms that the sender's note, saying that the group is being formed, is on disk.
#[derive(Debug, Serialize, Deserialize)]
struct Noted;

/// The result of a meeting.
enum Met {
    /// All initial nodes form the group, over these sessions.
    All(Vec<(NodeId, Session)>),
    /// A member is running.
    Running,
    /// The nodes met, but may not form the group.
    NotFormed(NotFormed),
    /// A node that was present has disappeared again, or is restarting the group.
    Again(MeshError),
}

impl StartingMember {
    /// Meets all other initial nodes. Returns `None` if a running member is found that this node
    /// can join.
    pub(crate) fn meet_unless_running(
        &mut self,
        description: &Description,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<(NodeId, Session)>>, StartError> {
        let is_initial = description.initial.contains(&self.own.get());
        // No running member that would admit this node can exist.
        let is_hopeless =
            description.nodes.iter().all(|node| description.initial.contains(&node.id));
        let telling = Telling::new(self.forming.told);
        let (mut not_formed, mut gone) = (None, None);
        // Answers operators until the nodes meet; the meeting then does this.
        let server = || {
            let nodes = description.nodes.iter().map(|node| NodeId(node.id));
            ControlService::default().open(
                self.listener.try_clone()?,
                self.identity,
                nodes,
                self.key.clone(),
            )
        };
        let _server = if is_initial { None } else { Some(server()?) };
        loop {
            let probed =
                if self.forming.first_view_only { Probed::default() } else { self.probe() };
            if probed.is_running {
                return Ok(None);
            }
            if is_initial {
                match self.meet(description, &telling, until, cancel) {
                    Ok(Met::All(mut sessions)) => {
                        if self.note_forming(description, &mut sessions)? {
                            return Ok(Some(sessions));
                        }
                    }
                    Ok(Met::Running) => return Ok(None),
                    Ok(Met::NotFormed(why)) if is_hopeless => return Err(why.into()),
                    Ok(Met::NotFormed(why)) => not_formed = Some(why),
                    Ok(Met::Again(why)) => gone = Some(why),
                    Err(StartError::Meet(MeshError::Missing { .. }))
                        if not_formed.is_some() || probed.refused.is_some() => {}
                    Err(error) => return Err(error),
                }
            } else if let Some(error) = self.other_configuration(&probed) {
                return Err(error);
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(StartError::Cancelled);
            }
            if Instant::now() >= until {
                // A process with a different key may be a running member.
                if let Some((node, why)) = probed.refused {
                    return Err(StartError::Refused { node: node.get(), why });
                }
                if let Some(why) = not_formed {
                    return Err(why.into());
                }
                if let Some(why) = gone {
                    return Err(why.into());
                }
                let group = description.name.clone();
                return Err(StartError::NobodyRuns { group, node: self.own.get() });
            }
            let waits = || Waiting::Member {
                initial: description.initial.clone(),
                but: not_formed.clone(),
            };
            telling.tell(|| probed.stranger().unwrap_or_else(waits));
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// Records, in a logged group, that the group is being formed, and waits until all nodes have
    /// recorded it (see `membership_record`). Returns false if one of the nodes has been lost.
    fn note_forming(
        &mut self,
        description: &Description,
        sessions: &mut [(NodeId, Session)],
    ) -> Result<bool, StartError> {
        let is_logged = logged_subgroups(description).next().is_some();
        let Some(state) = self.state.as_mut().filter(|_| is_logged) else { return Ok(true) };
        // The record of an earlier group, which is now being formed anew, must not be overwritten.
        if state.last_membership().is_none() {
            state.note_forming(description, self.own)?;
        }
        let mut tell = || -> Result<(), SessionError> {
            for (_, session) in &mut *sessions {
                send_message(session, &Noted, NOTE_PATIENCE)?;
            }
            for (_, session) in &mut *sessions {
                let Noted = receive_message(session, NOTE_BYTES_MAX, NOTE_PATIENCE)?;
            }
            Ok(())
        };
        let told = tell();
        if let Err(error) = &told {
            tracing::info!(%error, "a node left before the group was formed");
        }
        Ok(told.is_ok())
    }

    /// Meets all other nodes of a group with fixed membership.
    pub(crate) fn meet_fixed(
        &self,
        description: &Description,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Vec<(NodeId, Session)>, StartError> {
        let telling = Telling::new(self.forming.told);
        let digest = self.identity.digest;
        let handler = MeetingProgress::new(digest, &telling, MeetsTo::Form { but: None });
        let statement =
            Statement { remembers: Remembers::Fresh, new_group: true, living: Vec::new() };
        let met = self.meet_all(description, &statement, &handler, until, cancel);
        match met {
            Ok(Met::All(sessions)) => Ok(sessions),
            Ok(Met::NotFormed(why)) => Err(why.into()),
            Ok(Met::Running) | Err(MeshError::Running { .. }) => {
                Err(StartError::FixedRuns { node: self.own.get() })
            }
            Ok(Met::Again(why)) => Err(why.into()),
            Err(MeshError::Cancelled) => Err(StartError::Cancelled),
            Err(MeshError::WrongDigest { peer, digest }) => {
                let own = description.forming_digest() ^ self.terms;
                Err(StartError::other_configuration(peer, own, digest))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn probe(&self) -> Probed {
        self.probe_within(LOOK)
    }

    pub(crate) fn probe_within(&self, limit: Duration) -> Probed {
        probe(&self.identity, &self.addresses, self.key.as_ref(), limit)
    }

    /// Returns the nodes that may be running members: those that have not arrived at the meeting.
    fn unmet(&self, description: &Description, handler: &MeetingProgress<'_>) -> Vec<NodeId> {
        let missing = handler.missing();
        let may_run =
            |node: &&NodeId| missing.contains(node) || !description.initial.contains(&node.get());
        self.addresses.keys().filter(may_run).copied().collect()
    }

    fn probe_some(&self, nodes: &[NodeId]) -> Probed {
        let address = |node: &NodeId| Some((*node, self.addresses.get(node)?.clone()));
        let addresses = nodes.iter().filter_map(address).collect();
        probe(&self.identity, &addresses, self.key.as_ref(), LOOK)
    }

    pub(crate) fn other_configuration(&self, probed: &Probed) -> Option<StartError> {
        let (node, digest) = probed.other_configuration?;
        Some(StartError::other_configuration(node, self.identity.digest, digest))
    }

    /// Returns this node's statement for the meeting.
    fn statement(&self, description: &Description) -> Result<Statement, StartError> {
        let remembers = match (&self.state, &self.residence) {
            (Some(state), _) => Remembers::of(state.last_membership(), self.data.records()),
            // Locks show which members are running.
            (None, Some(_)) => Remembers::Fresh,
            (None, None) => Remembers::Nothing,
        };
        let mut living = Vec::new();
        if let Some(residence) = &self.residence {
            let others =
                description.nodes.iter().filter(|node| !description.initial.contains(&node.id));
            for node in others {
                if residence.is_member(NodeId(node.id))? {
                    living.push(node.id);
                }
            }
        }
        Ok(Statement { remembers, new_group: self.forming.new_group, living })
    }

    /// Meets the other initial nodes, while also looking for a running member.
    fn meet(
        &self,
        description: &Description,
        telling: &Telling,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Met, StartError> {
        let statement = self.statement(description)?;
        let but = (!statement.new_group).then(|| reason(self.own, &statement)).flatten();
        let handler = MeetingProgress::new(self.identity.digest, telling, MeetsTo::Form { but });
        let others = description.initial.iter().map(|node| NodeId(*node));
        handler.waits_for(&others.filter(|node| *node != self.own).collect::<Vec<_>>());
        let (is_found, is_met, stop) =
            (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        let other = Mutex::new(None);
        let met = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_met.load(Ordering::Relaxed) {
                    std::thread::sleep(LOOK_PAUSE / 10);
                    if cancel.load(Ordering::Relaxed) {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
            let look_around = || {
                let (mut lookout, mut other_since) = (Lookout::default(), None);
                let mut took = Duration::ZERO;
                while !is_met.load(Ordering::Relaxed) {
                    // If a look takes long, the processors are needed for the meeting.
                    std::thread::sleep(LOOK_PAUSE.max(2 * took));
                    if is_met.load(Ordering::Relaxed) {
                        break;
                    }
                    let started = Instant::now();
                    let probed = self.probe_some(&lookout.next(&self.unmet(description, &handler)));
                    took = started.elapsed();
                    lookout.heard(&probed);
                    let error = self.other_configuration(&probed);
                    handler.sees(probed.stranger().or(probed.others()));
                    if error.is_none() {
                        other_since = None;
                    } else if other_since.get_or_insert_with(Instant::now).elapsed()
                        >= OTHER_CONFIGURATION
                    {
                        *other.lock().unwrap_or_else(PoisonError::into_inner) = error;
                        stop.store(true, Ordering::Relaxed);
                    }
                    if probed.is_running {
                        is_found.store(true, Ordering::Relaxed);
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            };
            if !self.forming.first_view_only {
                scope.spawn(look_around);
            }
            let met = self.meet_all(description, &statement, &handler, until, &stop);
            is_met.store(true, Ordering::Relaxed);
            met
        });
        if is_found.load(Ordering::Relaxed) && !matches!(met, Ok(Met::All(_))) {
            return Ok(Met::Running);
        }
        let other = other.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (met, other) {
            (Ok(met), _) => Ok(met),
            (Err(error @ MeshError::Running { .. }), _) if self.forming.first_view_only => {
                Err(error.into())
            }
            (Err(MeshError::Running { .. }), _) => Ok(Met::Running),
            // A member of a different view is restarting the group. This node can join later.
            (
                Err(
                    why @ (MeshError::PeerGone { .. }
                    | MeshError::Silent { .. }
                    | MeshError::WrongView { .. }),
                ),
                _,
            ) => Ok(Met::Again(why)),
            (Err(MeshError::Cancelled), Some(error)) => Err(error),
            (Err(MeshError::Cancelled), None) => Err(StartError::Cancelled),
            (Err(MeshError::WrongDigest { peer, digest }), _) => {
                let own = description.forming_digest() ^ self.terms;
                Err(StartError::other_configuration(peer, own, digest))
            }
            (Err(error @ MeshError::Missing { .. }), _) => Err(match handler.restarting() {
                Some(node) => StartError::NothingOfGroup { node },
                None => error.into(),
            }),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Returns the addresses of a view's members, by rank.
    pub(crate) fn addresses_in(&self, view: &View) -> Vec<Address> {
        view.members.iter().filter_map(|node| self.addresses.get(node).cloned()).collect()
    }

    /// Returns the options with which the members of a view meet.
    pub(crate) fn mesh_options<'m>(
        &self,
        description: &Description,
        view: &'m View,
        addresses: &'m [Address],
        until: Instant,
        cancel: &'m AtomicBool,
    ) -> MeshOptions<'m> {
        MeshOptions {
            own: view.rank_of(self.own).unwrap_or_default(),
            members: &view.members,
            addresses,
            listener: self.listener.try_clone().ok(),
            incarnation: Some(self.identity.incarnation),
            view: view.id,
            digest: description.forming_digest() ^ self.terms,
            key: self.key.clone(),
            // Checked before.
            allow_clear: true,
            time_limit: until.saturating_duration_since(Instant::now()),
            cancel,
        }
    }

    /// Meets all nodes, and reaches the common verdict on whether the group is formed.
    fn meet_all(
        &self,
        description: &Description,
        statement: &Statement,
        handler: &MeetingProgress<'_>,
        until: Instant,
        stop: &AtomicBool,
    ) -> Result<Met, MeshError> {
        let view = View::first(description);
        let addresses = self.addresses_in(&view);
        let options = self.mesh_options(description, &view, &addresses, until, stop);
        let mut mesh = Mesh::join_with(options, handler)?;
        handler.waits_for(&[]);
        let bytes = postcard::to_stdvec(statement).unwrap_or_default();
        let heard = mesh.exchange(|_| bytes.clone())?;
        let mut said = Vec::with_capacity(view.members.len());
        for (node, bytes) in view.members.iter().zip(heard) {
            let statement = if *node == self.own {
                statement.clone()
            } else {
                postcard::from_bytes(&bytes).map_err(|_| MeshError::Malformed { peer: *node })?
            };
            said.push((*node, statement));
        }
        if let Err(why) = judge(&said) {
            return Ok(Met::NotFormed(why));
        }
        let sessions = view.members.iter().copied().zip(mesh.into_sessions());
        Ok(Met::All(sessions.filter_map(|(node, session)| Some((node, session?))).collect()))
    }
}

impl StartError {
    /// Builds the error for a node with a different digest.
    pub(crate) fn other_configuration(node: NodeId, own: u64, other: u64) -> Self {
        Self::OtherConfiguration { node: node.get(), fields: differing(own, other) }
    }
}

/// Reports every few seconds why the node waits.
pub(crate) struct Telling {
    told: Option<fn(&Waiting)>,
    next: Mutex<Instant>,
}

impl Telling {
    pub(crate) fn new(told: Option<fn(&Waiting)>) -> Self {
        Self { told, next: Mutex::new(Instant::now() + TELL_PAUSE) }
    }

    pub(crate) fn tell(&self, waiting: impl FnOnce() -> Waiting) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() >= *next {
            *next = Instant::now() + TELL_PAUSE;
            self.tell_now(&waiting());
        }
    }

    fn tell_now(&self, waiting: &Waiting) {
        if let Some(told) = self.told {
            told(waiting);
        } else {
            tracing::info!(%waiting, "not a member yet");
        }
    }
}

/// The reason for a meeting.
pub(crate) enum MeetsTo {
    /// The initial nodes form the group, unless there is a reason against it.
    Form { but: Option<NotFormed> },
    /// The members of a decided view restart the group.
    Restart { view: u64 },
}

/// Receives the meeting's progress, and answers operators in the meantime.
pub(crate) struct MeetingProgress<'p> {
    digest: u64,
    telling: &'p Telling,
    meets_to: MeetsTo,
    missing: Mutex<Vec<NodeId>>,
    /// A reason to wait that is more important than missing nodes.
    seen: Mutex<Option<Waiting>>,
}

impl<'p> MeetingProgress<'p> {
    pub(crate) fn new(digest: u64, telling: &'p Telling, meets_to: MeetsTo) -> Self {
        Self { digest, telling, meets_to, missing: Mutex::default(), seen: Mutex::default() }
    }

    fn sees(&self, seen: Option<Waiting>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    fn seen(&self) -> Option<Waiting> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn restarting(&self) -> Option<u32> {
        match self.seen() {
            Some(Waiting::Others { node }) => Some(node),
            _ => None,
        }
    }

    fn waiting(&self) -> Waiting {
        if let Some(seen) = self.seen() {
            return seen;
        }
        let missing = self.missing().iter().map(|node| node.get()).collect();
        match &self.meets_to {
            MeetsTo::Form { but } => Waiting::Forming { missing, but: but.clone() },
            MeetsTo::Restart { view } => {
                let why = "its members are meeting".into();
                Waiting::Restart(RestartWaiting { view: *view, missing, why })
            }
        }
    }

    fn missing(&self) -> MutexGuard<'_, Vec<NodeId>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MeetingHandler for MeetingProgress<'_> {
    fn clients_digest(&self) -> u64 {
        self.digest
    }

    fn waits_for(&self, missing: &[NodeId]) {
        missing.clone_into(&mut self.missing());
        self.telling.tell(|| self.waiting());
    }

    fn met_stranger(&self, peer: NodeId, address: &Address, refusal: Refusal) {
        let answer = format!("{address} is not a matching member of this group: {refusal}");
        self.telling.tell_now(&Waiting::Stranger { node: peer.get(), answer });
    }

    fn takes_operators(&self) -> bool {
        true
    }

    fn receive(&self, mut session: Session) {
        if let Err(error) = operator::answer_forming(&mut session, &self.waiting()) {
            tracing::debug!(%error, "an operator disconnected");
        }
    }
}
