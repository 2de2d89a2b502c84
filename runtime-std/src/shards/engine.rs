//! The engine of a replica, which combines its core, its views, and its application.
//!
//! # Invariants
//! - A snapshot contains the core's counts and the application's state at the same moment, between
//!   two steps.
//! - A lost view is given up before another view is opened for the same peer.
//! - A replica ends if its application has restored a different state than its core.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tramontane_core::ids::{ClientNumber, NodeId, Time, ViewId};
use tramontane_core::tram::{LinkId, LinkRole, Progress, ReplicaLinks, Stage, Timestamp};

use super::application::{ShardApplication, Upcalls};
use super::calls::{Meeting, Met, why_refused};
use super::durable::Journal;
use super::links::{Agreed, Links, row_bytes};
use super::parts::{Parts, ReplicaCounters};
use super::request::Request;
use super::service::Service;
use super::shown_disks::ShownDisks;
use super::snapshot::{Snapshot, TakenSnapshot};
use crate::fabric::peers::PeerFabric;
use crate::member::Stopped;
use crate::poll::{Clock, Done, Ending, Steps, nanoseconds};

/// The time without work after which a process of an overlay sleeps. Until then it yields, because
/// sleeping and waking cost several microseconds on both sides, and the next batch often arrives
/// sooner.
pub(super) const IDLE_TIME: Duration = Duration::from_micros(20);

/// The interval between two updates of the replica's status.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

/// The pause before the next request for a snapshot if no replica had one.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(20);

/// The time without a quorum of voters after which a group counts as lost for good.
const LOST_AFTER: Duration = Duration::from_secs(2);

/// The time within which the other founders of a group ask whether it has formed.
const LEARNING_TIME: Duration = Duration::from_secs(2);

/// A replica that is stepped.
pub(super) struct Engine<F: PeerFabric, A> {
    parts: Parts<F, A>,
    clock: Clock,
    is_fetching: bool,
    lost_since: Option<Time>,
    led: Option<Timestamp>,
    shown: ShownDisks,
    counts: ReplicaCounters,
    shown_at: Option<Time>,
    has_left: bool,
}

impl Done for Progress {
    /// Heartbeats without other work do not justify another step right away, so they do not count.
    fn is_idle(&self) -> bool {
        let Self { events, proposed, processed, passed_on, granted, campaigns, .. } = *self;
        [events, proposed, processed, passed_on, granted, campaigns] == [0; 6]
    }
}

impl<F: PeerFabric, A: ShardApplication> Engine<F, A> {
    /// Begins to call the nodes that this replica calls.
    pub(super) fn new(mut parts: Parts<F, A>) -> Self {
        let shown = parts.journal.as_mut().map(Journal::take_shown).unwrap_or_default();
        let engine = Self {
            parts,
            clock: Clock::new(),
            is_fetching: false,
            lost_since: None,
            led: None,
            shown,
            counts: ReplicaCounters::default(),
            shown_at: None,
            has_left: false,
        };
        let Service { own, places, .. } = &*engine.parts.service;
        let links = ReplicaLinks::of(places.overlay(), own.group);
        for other in places.replicas() {
            let is_linked = links.find_replica(places.overlay(), own.group, other).is_some();
            if is_linked && engine.is_caller_of(places.node(other)) {
                engine.parts.calls.call(places.node(other));
            }
        }
        engine
    }

    /// Returns whether this replica calls a node. Of two replicas, the one with the higher node id
    /// calls the other.
    fn is_caller_of(&self, node: NodeId) -> bool {
        let places = &self.parts.service.places;
        places.replica(node).is_some() && node < self.parts.calls.identity.node
    }

    /// Returns whether a node is a replica of this replica's group.
    fn is_of_group(&self, node: NodeId) -> bool {
        let Service { own, places, .. } = &*self.parts.service;
        places.replica(node).is_some_and(|of| of.group == own.group)
    }

    fn take_request(&mut self, request: Request) -> Result<(), Stopped> {
        match request {
            Request::Meeting(Meeting::Met(met)) => self.meet(met),
            Request::Meeting(Meeting::Outdated(node)) => {
                self.let_founders_learn();
                Err(Stopped::Outdated(self.name_of(node)))
            }
            Request::Meeting(Meeting::DiskOlder(node)) => match self.is_of_group(node) {
                true => Err(Stopped::DiskOlder(self.name_of(node))),
                false => Ok(()),
            },
            Request::Meeting(Meeting::GivenUp(node, view)) => {
                self.part_from_lost(|_, links, link| links.view(link) == Some(view));
                tracing::debug!(%node, %view, "a peer wants to be called again");
                Ok(())
            }
            Request::Meeting(Meeting::Refused(node, error)) => {
                let why = why_refused(&error, self.parts.calls.identity.digest);
                Err(Stopped::Refused(self.name_of(node), why))
            }
            Request::Snapshot(order) => {
                // The replica that asked may have disconnected.
                let _ = order.try_send(self.take_snapshot());
                Ok(())
            }
            Request::Restore(snapshot) => {
                self.is_fetching = false;
                snapshot.map_or(Ok(()), |snapshot| self.restore(&snapshot))
            }
        }
    }

    /// Lets the other replicas of a group that has just formed learn this from the control server
    /// before the replica stops. Otherwise they would wait for it. The replica takes no step
    /// meanwhile, because its state does not count.
    fn let_founders_learn(&self) {
        if self.parts.incarnation == 1 {
            std::thread::sleep(LEARNING_TIME);
        }
    }

    fn name_of(&self, node: NodeId) -> String {
        let places = &self.parts.service.places;
        places.replica(node).map_or_else(|| node.to_string(), |replica| places.name(replica))
    }

    /// Opens the view agreed on with a peer.
    fn meet(&mut self, met: Met) -> Result<(), Stopped> {
        let Met { node, life, view, disk, session } = met;
        let Some(link) = self.link_of(node) else { return Ok(()) };
        let now = self.clock.read();
        self.give_up(now, link);
        if self.is_of_group(node)
            && disk.is_some_and(|disk| !self.shown.may_follow(node, life.life, &disk))
        {
            tracing::warn!(%node, "a replica continues from an older copy of its disk: rejected");
            self.parts.calls.reject_disk(node, life.life);
            // The node's next process may have a sound disk, or none.
            if self.is_caller_of(node) {
                self.parts.calls.call(node);
            }
            return Ok(());
        }
        let Parts { cell, links, fabric, calls, service, .. } = &mut self.parts;
        if let Err(error) = fabric.replace(node, session) {
            tracing::warn!(%node, %error, "a connection is not used");
        }
        let places = &service.places;
        let overlay = places.overlay();
        let agreed = Agreed {
            node,
            life: life.life,
            incarnation: life.incarnation,
            view,
            row_bytes: row_bytes(overlay, service.own.group, link),
            digest: calls.identity.digest,
        };
        let attachment = match links.open(fabric, link, &agreed) {
            Ok(attachment) => attachment,
            // The client will call again.
            Err(error) if places.client(node).is_some() => {
                tracing::warn!(%node, %error, "a client is not connected");
                return Ok(());
            }
            Err(error) => return Err(Stopped::NoMemory(error.to_string())),
        };
        cell.with_dependent_mut(|_, replica| replica.attach(now, link, attachment, links))
            .map_err(Stopped::Shard)
    }

    fn link_of(&self, node: NodeId) -> Option<LinkId> {
        let Service { own, places, .. } = &*self.parts.service;
        let links = ReplicaLinks::of(places.overlay(), own.group);
        match (places.replica(node), places.client(node)) {
            (Some(other), _) => links.find_replica(places.overlay(), own.group, other),
            (None, Some(ClientNumber(number))) => {
                links.find(LinkRole::Client(ClientNumber(number)))
            }
            (None, None) => None,
        }
    }

    /// Gives up a link's view, if it has one. Returns the view, and the node at the other end.
    fn give_up(&mut self, now: Time, link: LinkId) -> Option<(ViewId, NodeId)> {
        let Parts { cell, links, fabric, service, .. } = &mut self.parts;
        let shown = cell.with_dependent_mut(|_, replica| {
            replica.detach(now, link);
            replica.shown_by(link, links)
        });
        let (view, node, life) = links.close(fabric, link)?;
        service.lives.goes(node, life);
        if let Ok(shown) = shown {
            self.shown.note(node, life, shown);
        }
        Some((view, node))
    }

    /// Saves what the other replicas of the group have shown of their disks.
    fn keep_shown(&mut self) -> Result<(), Stopped> {
        let Parts { cell, links, journal, .. } = &mut self.parts;
        let Some(journal) = journal else { return Ok(()) };
        cell.with_dependent(|_, replica| {
            let count = u16::try_from(replica.links().len()).unwrap_or(u16::MAX);
            for link in (0..count).map(LinkId).filter(|link| replica.stage(*link) == Stage::Ready) {
                if let (Some((node, life)), Ok(shown)) =
                    (links.process(link), replica.shown_by(link, links))
                {
                    self.shown.note(node, life, shown);
                }
            }
        });
        journal.save_shown(&self.shown.take_unsaved())
    }

    /// Gives up the views of lost peers, and calls again those that this replica calls. The other
    /// peers are asked to call, because they may not have noticed a loss.
    fn part_from_lost(&mut self, is_lost: impl Fn(Stage, &Links<F>, LinkId) -> bool) {
        let now = self.clock.now();
        let count = self.parts.cell.with_dependent(|_, replica| replica.links().len());
        for link in (0..count).filter_map(|link| u16::try_from(link).ok()).map(LinkId) {
            let stage = self.parts.cell.with_dependent(|_, replica| replica.stage(link));
            if !is_lost(stage, &self.parts.links, link) {
                continue;
            }
            let Some((view, node)) = self.give_up(now, link) else { continue };
            if self.is_caller_of(node) {
                self.parts.calls.call(node);
            } else {
                self.parts.calls.ask_for_call(node, view);
            }
        }
    }

    /// Returns this replica's state, if the replica is a voter that has everything.
    fn take_snapshot(&mut self) -> Option<TakenSnapshot> {
        let Parts { cell, application, .. } = &mut self.parts;
        cell.with_dependent(|_, replica| {
            if !replica.is_voter() || replica.needs_snapshot() {
                return None;
            }
            let mut cells = vec![0; replica.snapshot_cells()];
            replica.snapshot(&mut cells)?;
            Some(TakenSnapshot { cells, state: application.snapshot() })
        })
    }

    /// Restores another replica's state, if the core wants it.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Stopped> {
        let Parts { cell, links, application, journal, .. } = &mut self.parts;
        if !cell.with_dependent(|_, replica| replica.wants_snapshot(&snapshot.cells)) {
            return Ok(());
        }
        application
            .restore(&mut snapshot.state.as_slice())
            .map_err(|error| Stopped::StateRefused(error.to_string()))?;
        cell.with_dependent_mut(|_, replica| {
            if !replica.restore(&snapshot.cells, links).map_err(Stopped::Shard)? {
                return Err(Stopped::StateRefused("it is not of this overlay".to_owned()));
            }
            match journal {
                Some(journal) => {
                    journal.save_with_snapshot(replica, links, snapshot)?;
                    journal.save_shown(&self.shown.take_all())
                }
                None => Ok(()),
            }
        })
    }

    /// Takes a snapshot for this replica's own disk if one is due, and discards what it replaces.
    fn keep_bounded(&mut self) -> Result<(), Stopped> {
        let wants = self.parts.journal.as_ref().is_some_and(Journal::wants_snapshot);
        let taken = wants.then(|| self.take_snapshot()).flatten();
        let Parts { cell, journal, .. } = &mut self.parts;
        let Some(journal) = journal else { return Ok(()) };
        if let Some(taken) = taken {
            let record = cell.with_dependent(|_, replica| replica.taken_record());
            journal.begin_snapshot(&record, taken)?;
            // Earlier records will be discarded.
            journal.save_shown(&self.shown.take_all())?;
        }
        journal.finish_snapshot()
    }

    /// Requests a snapshot in a separate thread.
    fn fetch(&mut self) {
        self.is_fetching = true;
        let (source, calls) = (Arc::clone(&self.parts.source), Arc::clone(&self.parts.calls));
        let spawned =
            std::thread::Builder::new().name("tramontane-snapshot".into()).spawn(move || {
                let snapshot = source.take();
                if snapshot.is_none() {
                    std::thread::sleep(SNAPSHOT_PAUSE);
                }
                calls.requests.ask(Request::Restore(snapshot));
            });
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread for a snapshot");
            self.is_fetching = false;
        }
    }

    /// Checks whether the group is lost because the replicas that have kept their memory do not
    /// form a quorum (TRM-5). This must hold for a while, because a replica may not know yet that
    /// it counts again.
    fn check_quorum(&mut self) -> Result<(), Stopped> {
        let Parts { cell, links, service, .. } = &self.parts;
        let counts_again = |rank, life| {
            let is_peer = |replica: &ReplicaLinks| replica.find(LinkRole::Peer(rank));
            cell.with_dependent(|_, replica| {
                let there = is_peer(replica.links()).and_then(|link| links.process(link));
                let is_it = rank == service.own.rank || there.is_some_and(|(_, of)| of == life);
                is_it && replica.is_voting_here(rank, links).unwrap_or(false)
            })
        };
        let returning = service.count_returning(counts_again);
        let own = usize::from(!cell.with_dependent(|_, replica| replica.is_voter()));
        let overlay = service.places.overlay();
        let group = service.own.group;
        let rest = usize::from(overlay.replicas(group)).saturating_sub(returning + own);
        if rest >= usize::from(overlay.quorum(group)) {
            self.lost_since = None;
            return Ok(());
        }
        let now = self.clock.now();
        let since = *self.lost_since.get_or_insert(now);
        if now.since(since) < nanoseconds(LOST_AFTER) {
            return Ok(());
        }
        Err(Stopped::GroupLost(service.places.group_name(group).to_owned()))
    }

    /// Notifies the application once this replica leads.
    fn tell_leading(&mut self) {
        let Parts { cell, application, .. } = &mut self.parts;
        let leads =
            cell.with_dependent(|_, replica| replica.is_leader().then(|| replica.promised()));
        if let Some(timestamp) = leads
            && self.led != leads
        {
            self.led = leads;
            application.leads(timestamp.cell());
        }
    }

    fn show(&mut self) {
        let now = self.clock.now();
        self.counts.rate(now);
        self.shown_at = Some(now);
        let status = self.parts.status(&self.counts, now);
        self.parts.service.board.show(status);
    }
}

impl<F: PeerFabric, A: ShardApplication> Steps for Engine<F, A> {
    type Fabric = F;
    type Done = Progress;

    fn fabric(&mut self) -> &mut F {
        &mut self.parts.fabric
    }

    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn ending(&self) -> &Ending {
        &self.parts.ending
    }

    fn work(&mut self) -> Result<Progress, Stopped> {
        let now = self.clock.now();
        let Parts { cell, links, fabric, application, journal, .. } = &mut self.parts;
        let mut upcalls = Upcalls { application };
        let (progress, needs_snapshot) = cell.with_dependent_mut(|_, replica| {
            if let Some(journal) = journal {
                journal.report(replica)?;
            }
            let progress = replica.step(now, fabric, links, &mut upcalls);
            let progress = progress.map_err(Stopped::Shard)?;
            if let Some(journal) = journal {
                journal.save(replica, links)?;
            }
            Ok::<_, Stopped>((progress, replica.needs_snapshot()))
        })?;
        self.counts.count(&progress);
        self.tell_leading();
        if progress.delivered > 0 {
            self.clock.read_if_late();
        }
        if progress.lost > 0 {
            self.part_from_lost(|stage, _, _| stage == Stage::Lost);
        }
        if needs_snapshot && !self.is_fetching {
            self.fetch();
        }
        Ok(progress)
    }

    fn take_requests(&mut self) -> Result<(), Stopped> {
        while let Ok(request) = self.parts.requests.try_recv() {
            self.take_request(request)?;
        }
        Ok(())
    }

    fn show_status(&mut self) {
        self.parts.links.retire(&mut self.parts.fabric);
        self.part_from_lost(|stage, links, link| stage == Stage::Waiting && links.is_overdue(link));
        if let Err(why) = self.check_quorum().and_then(|()| self.keep_bounded()) {
            self.end(why);
        }
        let now = self.clock.now();
        let is_due = self.shown_at.is_none_or(|at| now.since(at) >= nanoseconds(STATUS_INTERVAL));
        if is_due {
            if let Err(why) = self.keep_shown() {
                self.end(why);
            }
            self.show();
        }
    }

    /// This interval limits the time for which a killed leader goes unnoticed.
    fn check_interval(&self) -> Duration {
        self.parts.heartbeat.min(Duration::from_millis(5))
    }

    fn sleep_max(&self) -> Duration {
        self.check_interval()
    }

    fn idle_time(&self) -> Duration {
        IDLE_TIME
    }

    fn is_settled(&self) -> bool {
        self.parts.cell.with_dependent(|_, replica| {
            let log = replica.log_counts(&self.parts.links).unwrap_or_default();
            log.tail == log.delivered
        })
    }

    fn writes(&self) -> u64 {
        self.counts.writes
    }

    fn end(&mut self, why: Stopped) -> Stopped {
        let why = self.parts.ending.stop(why);
        self.show();
        self.leave();
        why
    }

    fn leave(&mut self) {
        if !std::mem::replace(&mut self.has_left, true) {
            self.parts.calls.is_over.store(true, Ordering::Relaxed);
            self.parts.fabric.leave();
        }
    }
}
