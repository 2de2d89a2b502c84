//! The engine of a client: its core and its views, over any fabric.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_control::Identity;
use tramontane_core::ids::{NodeId, Time};
use tramontane_core::tram::{
    Answered, Answers, ClientLinks, ClientOptions, Destinations, LinkId, MessageId, ReplicaId,
    SendError, Shape, Stage,
};
use tramontane_verbs::RdmaViews;

use super::calls::{Calls, Meeting, Met, why_refused};
use super::engine::IDLE_TIME;
use super::lent::{ClientCell, open_client};
use super::links::{Agreed, Links};
use super::lives::Lives;
use super::places::Places;
use super::seat::Taken;
use super::start::StartingProcess;
use super::start_error::StartError;
use crate::fabric::peers::PeerFabric;
use crate::fabric::{AnyBell, AnyFabric};
use crate::poll::nanoseconds;
use crate::requests::Requests;
use crate::shared_memory::SharedMemory;
use crate::tcp::Tcp;

/// The interval between checks that peers are still running.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Number of steps between two readings of the clock.
const STEPS_PER_READING: u32 = 64;

/// The size of a client's region in bytes: the minimum, because a client has no log.
const REGION_BYTES: usize = 64;

/// The reason why a client cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The groups have closed the client's place, because it was disconnected for longer than its
    /// lease.
    #[error(
        "the groups have freed this client's place, because it was disconnected for too long; \
         connect again"
    )]
    Closed,
    /// Another client has taken this client's place.
    #[error("{0} reports that a different client has taken this client's place; connect again")]
    Outdated(String),
    /// A replica has a different key, program or configuration.
    #[error("replica {replica}: {why}")]
    Refused {
        /// The name of the replica.
        replica: String,
        /// The reason given by the replica.
        why: String,
    },
    /// There is no memory for a view with a replica.
    #[error("{0}")]
    NoMemory(String),
    /// The client has left.
    #[error("this client has left; connect again")]
    Left,
    /// The client is broken.
    #[error("an internal error stopped the client: {0}")]
    Broken(tramontane_core::tram::Halt),
}

/// A delivery of a message by one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The replica.
    pub replica: ReplicaId,
    /// The answer of the replica's application.
    pub answer: u8,
    /// Whether the replica currently leads its group.
    pub leads: bool,
}

/// The engine of a client, which is stepped by its owner.
pub(super) struct ClientEngine<F: PeerFabric> {
    cell: ClientCell,
    links: Links<F>,
    fabric: F,
    places: Places,
    calls: Arc<Calls<Meeting>>,
    meetings: Receiver<Meeting>,
    origin: Instant,
    now: Time,
    steps_left: u32,
    next_check: Time,
}

impl<F: PeerFabric> ClientEngine<F> {
    /// Begins to call all replicas.
    fn open(
        place: &StartingProcess,
        identity: Identity,
        taken: &Taken,
        mut fabric: F,
    ) -> Result<Self, StartError> {
        let places = place.places.clone();
        let overlay = places.overlay();
        let count = ClientLinks::of(overlay).len();
        let links = Links::new(&mut fabric, identity.node, count, REGION_BYTES)
            .map_err(|error| StartError::NoMemory(error.to_string()))?;
        let options = ClientOptions { number: taken.number, incarnation: taken.life.incarnation };
        let cell = open_client(overlay, options, fabric.capabilities())?;
        let (requests, meetings) = Requests::new(fabric.any_bell());
        let calls = Arc::new(Calls {
            identity,
            incarnation: taken.life.incarnation,
            disk: None,
            endpoints: place.endpoints.clone(),
            lives: Arc::new(Lives::new(place.lease)),
            requests,
            is_over: Arc::new(AtomicBool::new(false)),
            rejected: Mutex::default(),
        });
        for replica in places.replicas() {
            calls.call(places.node(replica));
        }
        Ok(Self {
            cell,
            links,
            fabric,
            places,
            calls,
            meetings,
            origin: Instant::now(),
            now: Time::ZERO,
            steps_left: 0,
            next_check: Time::ZERO,
        })
    }

    fn link_of(&self, node: NodeId) -> Option<LinkId> {
        let replica = self.places.replica(node)?;
        ClientLinks::of(self.places.overlay()).find(replica)
    }

    #[cold]
    fn begin_with_reading(&mut self) -> Result<(), ClientError> {
        self.steps_left = STEPS_PER_READING;
        self.now = Time(nanoseconds(self.origin.elapsed()));
        while let Ok(meeting) = self.meetings.try_recv() {
            self.take_meeting(meeting)?;
        }
        if self.now >= self.next_check {
            self.next_check = self.now.after(nanoseconds(CHECK_INTERVAL));
            self.fabric.check_peers();
            self.links.retire(&mut self.fabric);
            self.part_from(|stage, engine, link| match stage {
                Stage::Waiting => engine.links.is_overdue(link),
                // A replica that waited in vain for this client, which may not have been stepped
                // for a while, has given up the view, but keeps the connection.
                Stage::Ready => engine.has_ended(link),
                Stage::Absent | Stage::Lost => false,
            });
        }
        Ok(())
    }

    fn take_meeting(&mut self, meeting: Meeting) -> Result<(), ClientError> {
        let name = |node| {
            let replica = self.places.replica(node);
            replica.map_or_else(|| node.to_string(), |replica| self.places.name(replica))
        };
        match meeting {
            Meeting::Met(met) => self.meet(met),
            Meeting::Outdated(node) => Err(ClientError::Outdated(name(node))),
            // A client never learns of this, because it calls again by itself.
            Meeting::GivenUp(..) | Meeting::DiskOlder(_) => Ok(()),
            Meeting::Refused(node, error) => Err(ClientError::Refused {
                replica: name(node),
                why: why_refused(&error, self.calls.identity.digest),
            }),
        }
    }

    /// Opens the view agreed on with a replica.
    fn meet(&mut self, met: Met) -> Result<(), ClientError> {
        let Met { node, life, view, session, .. } = met;
        let (Some(link), Some(replica)) = (self.link_of(node), self.places.replica(node)) else {
            return Ok(());
        };
        self.give_up(link);
        if let Err(error) = self.fabric.replace(node, session) {
            tracing::warn!(%node, %error, "a connection is not used");
        }
        let overlay = self.places.overlay();
        let shape = Shape::of(overlay, replica.group);
        let replies = shape.reply_row_bytes(overlay.limits().client_window);
        let agreed = Agreed {
            node,
            life: life.life,
            incarnation: life.incarnation,
            view,
            row_bytes: (shape.client_row_bytes(), replies),
            digest: self.calls.identity.digest,
        };
        let attachment = self
            .links
            .open(&mut self.fabric, link, &agreed)
            .map_err(|error| ClientError::NoMemory(error.to_string()))?;
        let Self { cell, links, now, .. } = self;
        cell.with_dependent_mut(|_, client| client.attach(*now, link, attachment, links))
            .map_err(ClientError::Broken)
    }

    /// Gives up a link's view, if it has one. Returns the node at the other end.
    fn give_up(&mut self, link: LinkId) -> Option<NodeId> {
        self.cell.with_dependent_mut(|_, client| client.detach(link));
        self.links.close(&mut self.fabric, link).map(|(_, node, _)| node)
    }

    /// Returns whether the replica at the other end of a link has given up the link's view.
    fn has_ended(&self, link: LinkId) -> bool {
        self.links.place(link).is_some_and(|(view, peer)| self.fabric.has_ended(view, peer))
    }

    /// Gives up the views of replicas, and calls them again.
    fn part_from(&mut self, is_lost: impl Fn(Stage, &Self, LinkId) -> bool) {
        let count = ClientLinks::of(self.places.overlay()).len();
        for link in (0..count).filter_map(|link| u16::try_from(link).ok()).map(LinkId) {
            let stage = self.cell.with_dependent(|_, client| client.stage(link));
            if is_lost(stage, self, link)
                && let Some(node) = self.give_up(link)
            {
                self.calls.call(node);
            }
        }
    }
}

impl<F: PeerFabric> ClientEngine<F> {
    pub(super) fn multicast(
        &mut self,
        destinations: Destinations,
        payload: &[u8],
        answers: Answers,
    ) -> Result<MessageId, SendError> {
        let multicast = |client: &mut tramontane_core::tram::Client<'_>| {
            client.multicast(destinations, payload, answers)
        };
        self.cell.with_dependent_mut(|_, client| multicast(client))
    }

    /// Steps the client. Returns whether anything was done.
    pub(super) fn step(&mut self) -> Result<bool, ClientError> {
        if self.steps_left == 0 {
            self.begin_with_reading()?;
        }
        self.steps_left -= 1;
        let Self { cell, links, fabric, now, .. } = self;
        let (progress, is_closed) = cell
            .with_dependent_mut(|_, client| (client.step(*now, fabric, links), client.is_closed()));
        let progress = progress.map_err(ClientError::Broken)?;
        if progress.lost > 0 {
            self.part_from(|stage, _, _| stage == Stage::Lost);
        }
        if is_closed {
            return Err(ClientError::Closed);
        }
        let is_idle = progress.is_idle();
        if is_idle {
            // A client that waits may be stepped rarely, and must still notice lost replicas.
            self.steps_left = 0;
        }
        Ok(!is_idle)
    }

    pub(super) fn has_answers(&self) -> bool {
        self.cell.with_dependent(|_, client| client.has_answers())
    }

    pub(super) fn poll(&mut self) -> Option<Answered> {
        self.cell.with_dependent_mut(|_, client| client.poll())
    }

    pub(super) fn deliveries(&self, answered: &Answered) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        self.cell.with_dependent(|_, client| {
            client.replies(answered, &self.links, |replica, answer, leads| {
                deliveries.push(Delivery { replica, answer, leads });
            });
        });
        deliveries
    }

    pub(super) fn answer(
        &self,
        answered: &Answered,
        replica: ReplicaId,
        into: &mut [u8],
    ) -> Option<u64> {
        let links = &self.links;
        self.cell.with_dependent(|_, client| client.answer(answered, replica, links, into))
    }

    /// Returns the bell that wakes this client.
    pub(super) fn bell(&self) -> AnyBell {
        self.fabric.any_bell()
    }

    pub(super) fn under_way(&self) -> u64 {
        self.cell.with_dependent(|_, client| client.under_way())
    }

    /// Returns the missing replicas of groups that lack a quorum.
    pub(super) fn missing(&self, groups: Destinations) -> Vec<ReplicaId> {
        let overlay = self.places.overlay();
        let links = ClientLinks::of(overlay);
        let is_here = |replica: &ReplicaId| {
            let link = links.find(*replica);
            link.is_some_and(|link| {
                self.cell.with_dependent(|_, client| client.stage(link)) == Stage::Ready
            })
        };
        let mut missing = Vec::new();
        for group in groups.iter() {
            let (here, away): (Vec<_>, Vec<_>) = self.places.replicas_of(group).partition(is_here);
            if here.len() < usize::from(overlay.quorum(group)) {
                missing.extend(away);
            }
        }
        missing
    }

    /// Returns the groups in which fewer than a quorum of the replicas are connected.
    pub(super) fn without_majority(&self) -> Destinations {
        let missing = self.missing(self.places.overlay().all());
        missing.iter().fold(Destinations::default(), |groups, of| groups.with(of.group))
    }

    pub(super) fn idle_time(&self) -> Duration {
        IDLE_TIME
    }

    /// Sleeps until something arrives or the bell rings, for at most `timeout`. Does not sleep if
    /// there is work for which the bell may have rung before.
    pub(super) fn sleep(
        &mut self,
        timeout: Duration,
        has_work: impl Fn() -> bool,
    ) -> Result<(), ClientError> {
        self.steps_left = 0;
        let mut stepped = Ok(true);
        if self.fabric.arm() {
            // This step finds everything that has arrived so far; later arrivals ring.
            stepped = self.step();
            if stepped == Ok(false) && !self.has_answers() && !has_work() {
                self.fabric.sleep(timeout);
            }
            self.steps_left = 0;
        }
        self.fabric.disarm();
        stepped.map(|_| ())
    }

    pub(super) fn say_leaving(&mut self) {
        self.cell.with_dependent_mut(|_, client| client.leave());
    }

    pub(super) fn has_left(&self) -> Result<bool, ClientError> {
        let left = self.cell.with_dependent(|_, client| client.has_left(&self.links));
        left.map_err(ClientError::Broken)
    }

    /// Announces to the replicas that this process is leaving.
    pub(super) fn part(&mut self) {
        self.calls.is_over.store(true, Ordering::Relaxed);
        self.fabric.leave();
    }
}

/// The engine over any fabric, compiled separately for each.
#[allow(clippy::large_enum_variant, reason = "one per client, never moved")]
pub(super) enum AnyEngine {
    SharedMemory(ClientEngine<SharedMemory>),
    Tcp(ClientEngine<Tcp>),
    Verbs(ClientEngine<RdmaViews<Tcp>>),
}

/// Forwards a call to the engine in use.
macro_rules! each_engine {
    ($any:expr, $engine:ident => $call:expr) => {
        match $any {
            $crate::shards::client_engine::AnyEngine::SharedMemory($engine) => $call,
            $crate::shards::client_engine::AnyEngine::Tcp($engine) => $call,
            $crate::shards::client_engine::AnyEngine::Verbs($engine) => $call,
        }
    };
}
pub(super) use each_engine;

impl AnyEngine {
    /// Opens the engine of a client that has a place, over its fabric.
    pub(super) fn open(
        place: &StartingProcess,
        identity: Identity,
        taken: &Taken,
        fabric: AnyFabric,
    ) -> Result<Self, StartError> {
        Ok(match fabric {
            AnyFabric::SharedMemory(fabric) => {
                Self::SharedMemory(ClientEngine::open(place, identity, taken, fabric)?)
            }
            AnyFabric::Tcp(fabric) => {
                Self::Tcp(ClientEngine::open(place, identity, taken, fabric)?)
            }
            AnyFabric::Verbs(fabric) => {
                Self::Verbs(ClientEngine::open(place, identity, taken, fabric)?)
            }
        })
    }
}

impl<F: PeerFabric> Drop for ClientEngine<F> {
    fn drop(&mut self) {
        self.calls.is_over.store(true, Ordering::Relaxed);
    }
}
