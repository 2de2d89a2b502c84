//! A member of a group whose membership can change: its steps in the current view, and the change
//! from one view to the next.
//!
//! | file | subject |
//! |---|---|
//! | `next_view` | the change to the next view |
//! | `upcalls` | the application's upcalls |
//! | `requests` | requests of other threads |
//!
//! # The change to the next view
//! 1. The core requests the next view's memory. The memory is allocated after that step, and a
//!    later step informs the core.
//! 2. The core installs the view: joining nodes are informed, the node of the new view is opened,
//!    undelivered messages are carried over, and the application is informed. From then on, the new
//!    node is stepped.
//! 3. The old view is stepped until its last posts have reached every peer. Then its memory is
//!    released (VIE-11).
//!
//! # Invariants
//! - At most two views are open, because the memory for the next view is allocated only after that
//!   of the previous view has been released.
//! - Nothing is allocated on the path of a message, except while a joining node is being supplied.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::fabric::{Fabric as _, HostFabric as _};
use tramontane_core::fabric::{LossCause, Routed};
use tramontane_core::ids::{NodeId, Rank, Time};
use tramontane_core::node::Progress;
use tramontane_core::view::{Halt, NextView, Status};

mod leave;
mod next_view;
mod requests;
mod slow;
mod upcalls;

use self::upcalls::Upcalls;
use super::early_losses::EarlyLosses;
use super::leaving::Leaving;
use super::lost_peers::LostPeers;
use super::open_view::OpenView;
use super::parts::{Parts, Step};
use super::prepared::{Prepared, open, prepare};
use super::promising::{Preparing, Promising};
use crate::fabric::AnyFabric;
use crate::group::control::peer_connector::PeerConnector;
use crate::group::delivery::application::Application;
use crate::group::description::view::View;
use crate::group::durable::Logs;
use crate::group::join::admission::Admission;
use crate::group::large::Large;
use crate::group::send::subgroup_sending::SubgroupSending;
use crate::group::state::membership_record::MembershipRecord;
use crate::group::status::group_status::MemberState;
use crate::group::status::slow_members::{Slow, SlowMembers};
use crate::group::status::statistics::{Seen, Statistics};
use crate::group::supply::joiners::Joiners;
use crate::member::Stopped;
use crate::poll::{Clock, Ending, Steps, guarded};

/// The longest sleep while waiting for something that rings no bell.
const CARE_PAUSE: Duration = Duration::from_micros(200);

/// The state that only a member of a group with changing membership has.
pub(crate) struct ChangingParts {
    pub(crate) large: Large,
    pub(crate) connector: Arc<PeerConnector>,
    pub(crate) record: MembershipRecord,
}

/// A member of a group whose membership can change.
pub(crate) struct Engine<A: Application> {
    // Dropped first, because it reads memory that the fabric keeps.
    pub(crate) present: OpenView,
    pub(crate) ended: Option<OpenView>,
    /// The time limit for stepping the old view for its peers.
    ended_until: Time,
    prepared: Option<Prepared>,
    /// Members of the next view that were lost before the view began.
    lost_peers: LostPeers,
    pub(crate) view: Arc<View>,
    /// The joining nodes that the current view admits, and what they need.
    pub(crate) admission: Arc<Admission>,
    pub(crate) newcomers: Vec<NodeId>,
    /// The members of the view that the core has asked to prepare, if it has not been prepared yet.
    wanted: Option<Vec<NodeId>>,
    /// The promises that this member makes before the current view ends.
    promising: Promising,
    pub(crate) joiners: Joiners,
    pub(crate) early_losses: EarlyLosses,
    pub(crate) leaving: Leaving,
    pub(crate) slow_members: SlowMembers,
    /// Members that currently hold others back.
    pub(crate) slow: Vec<Slow>,
    /// Whether the last step of the node found no work.
    was_idle: bool,
    /// Whether something other than messages is awaited: a view change, a peer's memory, or the end
    /// of a reservation from an earlier view.
    has_cares: bool,
    pub(crate) parts: Parts<A>,
    pub(crate) large: Large,
    pub(crate) connector: Arc<PeerConnector>,
    record: MembershipRecord,
    pub(crate) clock: Clock,
    has_ended: bool,
    has_left: bool,
}

impl<A: Application> Engine<A> {
    /// Opens the first view of this member.
    pub(crate) fn open(
        admission: Admission,
        mut parts: Parts<A>,
        changing: ChangingParts,
    ) -> Result<Self, Stopped> {
        let ChangingParts { large, connector, record } = changing;
        let prepared = prepare(&mut parts, admission.view.clone(), Vec::new())?;
        let (present, view) = open(&parts, prepared)?;
        let mut engine = Self {
            present,
            ended: None,
            ended_until: Time::ZERO,
            prepared: None,
            lost_peers: LostPeers::default(),
            view,
            admission: Arc::new(admission),
            // Nodes that joined together with this one are supplied by earlier members.
            newcomers: Vec::new(),
            wanted: None,
            promising: Promising::default(),
            joiners: Joiners::default(),
            early_losses: EarlyLosses::default(),
            leaving: Leaving::default(),
            slow_members: SlowMembers::default(),
            slow: Vec::new(),
            was_idle: true,
            has_cares: true,
            parts,
            large,
            connector,
            record,
            clock: Clock::new(),
            has_ended: false,
            has_left: false,
        };
        let members = engine.view.members.clone();
        engine.begin(&members, &[])?;
        Ok(engine)
    }

    /// Returns the application.
    pub(crate) fn application(&mut self) -> &mut A {
        self.parts.application.get_mut()
    }

    /// Returns this member's statistics.
    pub(crate) const fn statistics(&self) -> &Statistics {
        &self.parts.statistics
    }

    /// Waits for a slow joining node, for less than a failure timeout.
    #[cold]
    fn hold_back(&mut self) {
        if self.joiners.hold_back(self.parts.participant.failure_timeout() / 8) {
            self.clock.read_at_next_step();
        }
    }

    fn step_large(&mut self) -> Result<bool, Stopped> {
        let Self { present, parts, large, .. } = self;
        Ok(large.step(present, &mut parts.fabric)?)
    }

    /// Releases delivered large messages, unless the application keeps their buffers.
    fn release_large(&mut self) -> Result<(), Stopped> {
        let Self { present, parts, large, .. } = self;
        let application = &mut parts.application;
        let exchange =
            |subgroup, buffer, bytes| application.exchange_large(subgroup, buffer, bytes);
        if large.has_none() {
            return Ok(());
        }
        guarded(|| {
            large.release(present, exchange);
            Ok(())
        })
    }

    /// Updates the delivered counts of receipts.
    fn note_delivered(&mut self) {
        let Self { parts, present, .. } = self;
        parts.note_delivered(|subgroup| present.read(|node| node.node().own_delivered(subgroup)));
    }

    /// Reports to the group which messages have become durable at this member. Called before a
    /// step. Returns false if the logs have no room for the deliveries of a step; this member then
    /// only sends heartbeats.
    #[cold]
    fn may_deliver(&mut self) -> Result<bool, Stopped> {
        let Self { present, parts, clock, .. } = self;
        parts.logs.tell(present)?;
        let have_room = parts.logs.have_room();
        if !have_room {
            present.change(|node| node.show_life(clock.read(), &mut parts.fabric));
        }
        Ok(have_room)
    }

    /// Reports newly durable messages to receipts and to the application. Called after a step.
    #[cold]
    fn note_durable(&mut self) -> Result<(), Stopped> {
        let Self { present, parts, .. } = self;
        let Parts { logs, sending, application, .. } = parts;
        logs.check()?;
        guarded(|| {
            logs.see(present, |subgroup, durable| {
                let ours = sending.iter_mut().find(|sending| sending.subgroup() == subgroup);
                ours.into_iter().for_each(|sending| sending.durable(durable));
                application.durable_changed(subgroup, durable);
            });
            Ok(())
        })
    }

    /// Handles everything other than messages.
    #[cold]
    fn care(&mut self, status: Status, progress: &Progress) -> Result<(), Stopped> {
        if let Some((rank, cause)) = progress.lost {
            let node = self.view.members.get(rank.index()).copied();
            tracing::info!(view = %self.view.id, ?node, %cause, "a member is lost");
            if let (LossCause::Exited | LossCause::Left, Some(node)) = (cause, node) {
                self.early_losses.process_ended(node);
            }
        }
        if status != Status::Steady {
            self.large.stop(&mut self.parts.fabric);
        }
        self.let_go()?;
        if let Some(members) = self.wanted.take()
            && self.ended.is_none()
        {
            self.prepare_next(&members)?;
        }
        self.keep_promise()?;
        match status {
            Status::Installed => self.install()?,
            Status::Left => self.go()?,
            Status::Halted(why) => return Err(self.halted(why)),
            Status::Steady | Status::Wedged | Status::Decided => {}
        }
        for sending in &mut self.parts.sending {
            sending.carry();
        }
        self.has_cares = self.ended.is_some()
            || self.present.read(|node| node.status()) != Status::Steady
            || self.parts.sending.iter().any(SubgroupSending::is_carrying)
            || !self.is_connected();
        Ok(())
    }

    /// Returns whether all peers' memory can be written to.
    fn is_connected(&self) -> bool {
        let own = self.present.own();
        let mut peers = (0..).map(Rank).take(self.view.members.len()).filter(|rank| *rank != own);
        peers.all(|rank| self.parts.fabric.ready(self.view.id, rank))
    }

    fn halted(&self, why: Halt) -> Stopped {
        let by = match why {
            Halt::SuspectedBy(rank) | Halt::ChangedBy(rank) => {
                self.view.members.get(rank.index()).copied()
            }
            Halt::NoMajority => None,
        };
        Stopped::Halted { why, by }
    }
}

impl<A: Application> Steps for Engine<A> {
    type Fabric = AnyFabric;
    type Done = Step;

    #[inline]
    fn fabric(&mut self) -> &mut AnyFabric {
        &mut self.parts.fabric
    }

    #[inline]
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn ending(&self) -> &Ending {
        &self.parts.participant.ending
    }

    #[inline]
    fn work(&mut self) -> Result<Step, Stopped> {
        let is_logged = !self.parts.logs.are_none();
        if is_logged && !self.may_deliver()? {
            return Ok(Step::default());
        }
        let moved_large = self.large.is_due(self.was_idle) && self.step_large()?;
        let Self {
            present,
            view,
            prepared,
            lost_peers,
            wanted,
            promising,
            joiners,
            parts,
            large,
            clock,
            ..
        } = self;
        let Parts { fabric, application, logs, participant, .. } = parts;
        let now = clock.now();
        let present_view = view.id;
        let poll = |fabric: &mut AnyFabric| {
            fabric.poll().inspect(|event| lost_peers.keep(present_view, event))
        };
        let mut routed = Routed { fabric: &mut *fabric, poll };
        let mut upcalls = Upcalls { view, large, joiners, logs, application, clock };
        let prepare = |next: NextView<'_>| {
            // A leaving member has no memory in the view that excludes it.
            let is_there = !next.members.contains(&participant.own)
                || prepared.as_ref().is_some_and(|prepared| prepared.list == next.members);
            if !is_there {
                *wanted = Some(next.members.to_vec());
            }
            is_there
        };
        let preparing = Preparing { prepare, promising };
        let stepped =
            present.change(|node| node.step_logged(now, &mut routed, &mut upcalls, preparing));
        let (progress, status) = stepped.map_err(Stopped::Broken)?;
        if self.clock.now() != now {
            // An upcall may have taken a while. Requests to this member, and its end, must not wait
            // for many more steps.
            self.clock.read_at_next_step();
        }
        if progress.delivered > 0 {
            if let Some(failure) = self.large.failure() {
                return Err(failure.into());
            }
            self.note_delivered();
        }
        if is_logged {
            self.note_durable()?;
        }
        if moved_large || progress.delivered > 0 || progress.freed > 0 {
            self.release_large()?;
        }
        self.parts.count(&progress);
        let is_asked = self.promising.wanted.is_some();
        if self.has_cares || status != Status::Steady || progress.lost.is_some() || is_asked {
            self.care(status, &progress)?;
        }
        if progress.delivered > 0 && status == Status::Steady && !self.joiners.is_empty() {
            self.hold_back();
        }
        self.was_idle = progress.is_idle();
        Ok(Step { progress, moved_large })
    }

    fn take_requests(&mut self) -> Result<(), Stopped> {
        while let Ok(request) = self.parts.requests.try_recv() {
            self.has_cares = true;
            self.carry_out(request)?;
        }
        if !self.parts.logs.are_none() {
            let Parts { logs, application, .. } = &mut self.parts;
            logs.keep_bounded(self.view.id, |subgroup| application.snapshot(subgroup))?;
        }
        self.parts.application.supply_follower();
        self.ask_to_pause();
        self.leave_when_free()
    }

    fn show_status(&mut self) {
        self.look_for_slow();
        if self.record.may_raise()
            && let Some(notes) = self.parts.logs.moved_notes()
        {
            self.record.raises(self.view.id, notes);
        }
        let Self { present, view, joiners, early_losses, parts, leaving, slow, clock, .. } = self;
        let state = match present.read(|node| node.status()) {
            Status::Halted(_) => MemberState::Halted,
            Status::Left => MemberState::Left,
            _ if leaving.is_leaving() => MemberState::Leaving,
            Status::Steady => MemberState::Steady,
            Status::Wedged | Status::Decided | Status::Installed => MemberState::Changing,
        };
        let ids = |nodes: Vec<NodeId>| nodes.into_iter().map(NodeId::get).collect();
        let suspected = ids(present.suspected());
        let frontiers =
            |subgroup| present.read(|node| node.node().frontiers(subgroup)).unwrap_or_default();
        let joining = ids(joiners.nodes().collect());
        let folder = parts.fabric.notice();
        let notices = folder.into_iter().chain(early_losses.notices(clock.now())).collect();
        let durable = |subgroup| parts.logs.status(subgroup);
        let (frontiers, durable) = (&frontiers, &durable);
        let seen = Seen { state, suspected, joining, notices, slow, frontiers, durable };
        parts.statistics.show(&parts.participant, view, &seen);
        parts.statistics.show_fabric(&parts.fabric);
    }

    fn check_interval(&self) -> Duration {
        self.parts.participant.heartbeat()
    }

    /// A third of a heartbeat interval, which is how often the core checks a view.
    fn sleep_max(&self) -> Duration {
        if self.has_cares { CARE_PAUSE } else { self.parts.participant.heartbeat() / 3 }
    }

    fn idle_time(&self) -> Duration {
        self.parts.idle_time()
    }

    fn is_settled(&self) -> bool {
        let is_carried = !self.parts.sending.iter().any(SubgroupSending::is_carrying);
        let is_durable = self.parts.logs.are_settled();
        let is_sent = is_carried
            && self.present.read(|node| node.node().is_settled())
            && self.large.is_settled();
        is_sent && is_durable && self.ended.is_none()
    }

    fn writes(&self) -> u64 {
        self.parts.statistics.writes()
    }

    /// Ends this member, and gives the messages that it could not send back to the caller (VIE-7).
    #[cold]
    fn end(&mut self, why: Stopped) -> Stopped {
        let why = self.parts.participant.ending.stop(why);
        if self.has_ended {
            return why;
        }
        self.has_ended = true;
        let _span = self.parts.participant.enter_end_span();
        tracing::info!(view = %self.view.id, %why, "this member ends");
        self.note_delivered();
        let Self { present, parts, large, .. } = self;
        let undelivered = |subgroup| present.read(|node| node.node().undelivered(subgroup));
        parts.give_back(&why, undelivered, |subgroup, ordinal| large.take(subgroup, ordinal));
        self.connector.end();
        let Self { parts, view, .. } = self;
        self.record.ends(&why, view.id, &parts.logs.notes());
        self.show_status();
        why
    }

    fn leave(&mut self) {
        // A member that is closed between two steps has not ended yet.
        self.end(Stopped::Closed);
        if !self.has_left {
            self.has_left = true;
            // Senders may keep this member in memory, but joining nodes must not wait for it.
            self.joiners = Joiners::default();
            // Makes delivered messages durable. Another process may then open the logs.
            self.parts.logs = Logs::default();
            self.parts.fabric.leave();
        }
    }
}

impl<A: Application> Drop for Engine<A> {
    fn drop(&mut self) {
        self.leave();
    }
}
