//! What is stepped: a member in its present view, and its way from one view to the next.
//!
//! # The way into the next view
//! 1. The core asks for the next view's memory; it is made after that step, and the core is told so with a later one.
//! 2. The core installs: joiners are told, the node of the new view is opened, what remained is carried over, the
//!    application is told. From now on that node is stepped.
//! 3. The old view is stepped for its last posts, until every peer was told; then its memory goes (VIE-11).
//!
//! # Invariants
//! - At most two views are open: the next one's memory is not made before the last one's is gone.
//! - Nothing is allocated on the path of a message, unless a joiner is supplied.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tramontane_core::fabric::{Fabric as _, LossCause};
use tramontane_core::ids::{NodeId, Rank, Time};
use tramontane_core::multicast::{Application, Batch};
use tramontane_core::node::Progress;
use tramontane_core::view::{Halt, NextView, Status};

use super::account::Account;
use super::admission::Admission;
use super::clock::Clock;
use super::fabric::GroupFabric;
use super::joiners::Joiners;
use super::large::Large;
use super::leaving::Leaving;
use super::losses::{Losses, Routed};
use super::membership::{Membership, nanoseconds};
use super::open_view::OpenView;
use super::outgoing::{Outgoing, Unsent};
use super::outside::Outside;
use super::past::Record;
use super::prepared::{Prepared, open, prepare};
use super::replica::{Message, Messages, Replica, ViewChanged};
use super::request::Request;
use super::view::View;
use crate::host::{HostFabric as _, sleep_unless_busy};
use crate::joined::JoinedBell;
use crate::member::{Idle, Stopped};
use crate::poll::{Driven, Look};

/// Steps between two looks at the clock: reading it costs as much as an idle step.
const STEPS_PER_CLOCK: u32 = 64;

/// The longest sleep while something is awaited that rings no bell.
const CARE_PAUSE: Duration = Duration::from_micros(200);

/// What a member brings along when it starts.
pub(super) struct Parts<R> {
    pub(super) membership: Arc<Membership>,
    pub(super) fabric: GroupFabric,
    pub(super) outgoing: Vec<Outgoing>,
    pub(super) large: Large,
    pub(super) requests: Receiver<Request>,
    pub(super) outside: Arc<Outside>,
    pub(super) replica: R,
    pub(super) account: Account,
    pub(super) record: Record,
    /// Where messages go that this member ends without.
    pub(super) unsent: Arc<Mutex<Vec<Unsent>>>,
    pub(super) idle_time: Option<Duration>,
}

/// A member of a group whose membership changes.
pub(super) struct Engine<R> {
    // Dropped first: they read the memory that the fabric keeps.
    pub(super) present: OpenView,
    ended: Option<OpenView>,
    /// Until when peers are told of its end, at most.
    ended_until: Time,
    prepared: Option<Prepared>,
    /// Who was lost in the next view, before it began.
    losses: Losses,
    pub(super) view: Arc<View>,
    /// How those come in that the present view lets in, and who they are.
    pub(super) admission: Arc<Admission>,
    pub(super) newcomers: Vec<NodeId>,
    /// What the core asked to be prepared, and is not there.
    wanted: Option<Vec<NodeId>>,
    pub(super) joiners: Joiners,
    pub(super) leaving: Leaving,
    /// The last step of the node found nothing to do.
    was_idle: bool,
    /// Something is awaited beside messages: a change, a peer's memory, a reservation of an earlier view.
    has_cares: bool,
    pub(super) parts: Parts<R>,
    idle_time: Duration,
    pub(super) clock: Clock,
    until_clock: u32,
    next_check: Time,
}

impl<R: Replica> Engine<R> {
    /// Opens the first view of this member.
    pub(super) fn open(admission: Admission, mut parts: Parts<R>) -> Result<Self, Stopped> {
        let prepared = prepare(&mut parts, admission.view.clone())?;
        let (present, view) = open(&parts, prepared)?;
        let idle_time = parts.idle_time.unwrap_or_else(|| parts.fabric.fabric.idle_time());
        let mut engine = Self {
            present,
            ended: None,
            ended_until: Time::ZERO,
            prepared: None,
            losses: Losses::default(),
            view,
            admission: Arc::new(admission),
            // Whoever came with this node is supplied by those that were there before.
            newcomers: Vec::new(),
            wanted: None,
            joiners: Joiners::default(),
            leaving: Leaving::default(),
            was_idle: true,
            has_cares: true,
            parts,
            idle_time,
            clock: Clock::new(),
            until_clock: 0,
            next_check: Time::ZERO,
        };
        let members = engine.view.members.clone();
        engine.begin(&members, &[])?;
        Ok(engine)
    }

    /// Steps once. True if something was done: heartbeats are no work.
    fn step_once(&mut self) -> Result<bool, Stopped> {
        if self.until_clock == 0 {
            self.look_at_clock()?;
        }
        self.until_clock -= 1;
        let is_large_busy = self.parts.large.is_due(self.was_idle) && self.step_large()?;
        let Self { present, view, prepared, losses, wanted, joiners, parts, clock, .. } = self;
        let Parts { fabric, large, replica, membership, .. } = parts;
        let now = clock.now();
        let mut routed = Routed { fabric: &mut fabric.fabric, view: view.id, losses };
        let mut upcalls = Upcalls { view, large, joiners, replica, clock };
        let prepare = |next: NextView<'_>| {
            // A leaver has no memory in the view without it.
            let is_there = !next.members.contains(&membership.own)
                || prepared.as_ref().is_some_and(|prepared| prepared.view.members == next.members);
            if !is_there {
                *wanted = Some(next.members.to_vec());
            }
            is_there
        };
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            present.step(now, &mut routed, &mut upcalls, prepare)
        }));
        let (progress, status) = match stepped {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => return Err(membership.ending.stop(Stopped::Broken(error))),
            Err(payload) => {
                return Err(membership.ending.stop(Stopped::panicked(payload.as_ref())));
            }
        };
        if self.clock.now() != now {
            // An upcall took a while: what is asked of this member, and an end, must not wait for many more.
            self.until_clock = 0;
        }
        if progress.delivered > 0 {
            if let Some(failure) = self.parts.large.failure() {
                return Err(self.end(failure.into()));
            }
            self.note_delivered();
        }
        if is_large_busy || progress.delivered > 0 || progress.freed > 0 {
            self.parts.large.release(&mut self.present);
        }
        self.parts.account.add(&progress);
        if self.has_cares || status != Status::Steady || progress.lost.is_some() {
            self.care(status, &progress)?;
        }
        if progress.delivered > 0 && status == Status::Steady && !self.joiners.is_empty() {
            self.hold_back();
        }
        self.was_idle = progress.is_idle();
        Ok(is_large_busy || !self.was_idle)
    }

    /// Waits for a joiner that is behind, so long that nobody misses this member.
    #[cold]
    fn hold_back(&mut self) {
        if self.joiners.hold_back(self.parts.membership.failure_timeout() / 8) {
            self.until_clock = 0;
        }
    }

    fn step_large(&mut self) -> Result<bool, Stopped> {
        let Self { present, parts, .. } = self;
        let stepped = parts.large.step(present, &mut parts.fabric.fabric);
        stepped.map_err(|failure| self.end(failure.into()))
    }

    /// Senders are told how much was delivered.
    fn note_delivered(&self) {
        for outgoing in &self.parts.outgoing {
            if let Some(position) = self.present.own_delivered(outgoing.subgroup()) {
                outgoing.delivered(position.0);
            }
        }
    }

    /// Everything beside messages.
    #[cold]
    fn care(&mut self, status: Status, progress: &Progress) -> Result<(), Stopped> {
        if let Some((rank, cause)) = progress.lost {
            let node = self.view.members.get(rank.index()).copied();
            tracing::info!(view = %self.view.id, ?node, %cause, "a member is lost");
        }
        if status != Status::Steady {
            self.parts.large.stop(&mut self.parts.fabric.fabric);
        }
        self.let_go()?;
        if let Some(members) = self.wanted.take()
            && self.ended.is_none()
        {
            self.prepare_next(&members)?;
        }
        match status {
            Status::Installed => self.install()?,
            Status::Left => self.go()?,
            Status::Halted(why) => return Err(self.end(self.halted(why))),
            Status::Steady | Status::Wedged | Status::Decided => {}
        }
        for outgoing in &mut self.parts.outgoing {
            outgoing.carry();
        }
        self.has_cares = self.ended.is_some()
            || self.present.status() != Status::Steady
            || self.parts.outgoing.iter().any(Outgoing::is_carrying)
            || !self.is_connected();
        Ok(())
    }

    /// Whether all peers' memory can be written to.
    fn is_connected(&self) -> bool {
        let own = self.present.own();
        let mut peers = (0..).map(Rank).take(self.view.members.len()).filter(|rank| *rank != own);
        peers.all(|rank| self.parts.fabric.fabric.ready(self.view.id, rank))
    }

    /// Lets the last view's memory go, once all peers were told of its end.
    fn let_go(&mut self) -> Result<(), Stopped> {
        let Some(ended) = &mut self.ended else { return Ok(()) };
        let fabric = &mut self.parts.fabric.fabric;
        let mut nothing = |_: &mut Batch<'_>| {};
        if let Err(error) = ended.step(self.clock.now(), fabric, &mut nothing, |_| false) {
            return Err(self.parts.membership.ending.stop(Stopped::Broken(error)));
        }
        // Who was told nothing for so long is suspected in the new view, if it is there at all.
        let is_over = self.clock.now() >= self.ended_until;
        if (ended.is_told() || is_over) && fabric.retire(ended.view().id) {
            let gone = ended.view().members.iter().filter(|node| !self.view.members.contains(node));
            gone.for_each(|node| self.parts.fabric.part_from(*node));
            self.ended = None;
        }
        Ok(())
    }

    fn prepare_next(&mut self, members: &[NodeId]) -> Result<(), Stopped> {
        let next = self.view.next(&self.parts.membership.description, members);
        if let Some(other) = self.prepared.take() {
            // A successor's list took the place of the one that was asked for before.
            self.parts.fabric.fabric.retire(other.view.id);
            self.losses.forget(other.view.id);
        }
        self.prepared = Some(prepare(&mut self.parts, next)?);
        Ok(())
    }

    /// Goes on in the next view.
    fn install(&mut self) -> Result<(), Stopped> {
        let Some(members) = self.present.next_members() else { return Ok(()) };
        let is_prepared =
            self.prepared.as_ref().is_some_and(|prepared| prepared.view.members == members);
        if !is_prepared {
            if self.ended.is_some() {
                return Ok(());
            }
            self.prepare_next(&members)?;
        }
        let Some(prepared) = self.prepared.take() else { return Ok(()) };
        self.note_delivered();
        for outgoing in &mut self.parts.outgoing {
            outgoing.end(self.present.remains(outgoing.subgroup()));
        }
        self.parts.large.end(&mut self.parts.fabric.fabric);
        let (next, view) = open(&self.parts, prepared)?;
        let description = &self.parts.membership.description;
        self.admission =
            Arc::new(Admission::after(&mut self.present, View::clone(&view), description));
        self.joiners.view_ends(&self.present, &self.admission);
        self.ended = Some(std::mem::replace(&mut self.present, next));
        let options = self.parts.membership.view_options();
        self.ended_until = self.clock.now().after(options.failure_timeout_ns.saturating_mul(2));
        let before = std::mem::replace(&mut self.view, view);
        let joined: Vec<NodeId> = self
            .view
            .members
            .iter()
            .copied()
            .filter(|node| !before.members.contains(node))
            .collect();
        let gone: Vec<NodeId> = before
            .members
            .iter()
            .copied()
            .filter(|node| !self.view.members.contains(node))
            .collect();
        self.newcomers.clone_from(&joined);
        self.begin(&joined, &gone)
    }

    /// A view begins: its rings are handed out, connections are made, the application is told.
    fn begin(&mut self, joined: &[NodeId], gone: &[NodeId]) -> Result<(), Stopped> {
        self.has_cares = true;
        // Before anything is done in the view.
        let recorded = self.parts.record.begins(&self.view);
        recorded.map_err(|why| self.parts.membership.ending.stop(why))?;
        for (rank, cause) in self.losses.take(self.view.id) {
            tracing::info!(view = %self.view.id, %rank, %cause, "a member was lost before its view began");
            match cause {
                LossCause::Denied => self.present.denied_by(rank),
                _ => self.present.peer_lost(rank),
            }
        }
        self.parts.account.installed();
        for outgoing in &mut self.parts.outgoing {
            outgoing.begin(self.present.shared());
        }
        self.begin_large()?;
        self.parts.outside.forget(gone);
        let below = self.view.members.iter().take(self.present.own().index());
        // Those that were members before this view have called already, or were called.
        for node in
            below.filter(|node| joined.contains(node) && !self.parts.fabric.is_connected(**node))
        {
            self.parts.outside.connect(*node, self.view.id);
        }
        self.parts.outside.meets(self.view.id, joined);
        self.joiners.view_begins(&self.parts.membership.description, &mut self.present);
        self.leaving.view_begins();
        self.leave_when_free()?;
        tracing::info!(view = %self.view.id, members = ?self.view.members, ?joined, ?gone, "a view begins");
        let Self { parts, view, .. } = self;
        let change = ViewChanged { view, own: parts.membership.own, joined, gone };
        let told = catch_unwind(AssertUnwindSafe(|| parts.replica.view_changed(&change)));
        told.map_err(|payload| parts.membership.ending.stop(Stopped::panicked(payload.as_ref())))?;
        // It may have taken a while.
        self.until_clock = 0;
        self.hang_status();
        Ok(())
    }

    fn begin_large(&mut self) -> Result<(), Stopped> {
        let Self { present, parts, .. } = self;
        let Parts { large, membership, fabric, outgoing, .. } = parts;
        let ring_first =
            |subgroup| outgoing.iter().find(|one| one.subgroup() == subgroup)?.ring_first();
        let begun = large.begin(present, &membership.description, &fabric.fabric, ring_first);
        begun.map_err(|failure| self.end(failure.into()))
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

    /// This member's part is over: what it could not send goes back (VIE-7).
    pub(super) fn end(&mut self, why: Stopped) -> Stopped {
        tracing::info!(view = %self.view.id, %why, "this member ends");
        self.note_delivered();
        let Parts { outgoing, large, unsent, .. } = &mut self.parts;
        let mut unsent = unsent.lock().unwrap_or_else(PoisonError::into_inner);
        for outgoing in outgoing {
            let subgroup = outgoing.subgroup();
            outgoing.end(self.present.remains(subgroup));
            outgoing.give_back(why == Stopped::Left, &mut unsent, |ordinal| {
                large.take(subgroup, ordinal)
            });
        }
        drop(unsent);
        self.parts.outside.end();
        self.parts.record.ends(&why);
        let why = self.parts.membership.ending.stop(why);
        self.hang_status();
        why
    }

    #[cold]
    fn look_at_clock(&mut self) -> Result<(), Stopped> {
        if let Some(stopped) = self.parts.membership.ending.stopped() {
            return Err(self.end(stopped));
        }
        self.until_clock = STEPS_PER_CLOCK;
        let now = self.clock.read();
        if now >= self.next_check {
            self.parts.fabric.fabric.check_peers();
            self.next_check = now.after(nanoseconds(self.parts.membership.heartbeat()));
            self.hang_status();
        }
        while let Ok(request) = self.parts.requests.try_recv() {
            self.has_cares = true;
            self.carry_out(request)?;
        }
        self.leave_when_free()
    }

    fn hang_status(&mut self) {
        let Self { present, view, joiners, parts, leaving, .. } = self;
        let joining = joiners.nodes().map(NodeId::get).collect();
        parts.account.hang(&parts.membership, present, view, joining, leaving.is_leaving());
    }
}

/// Hands stable messages to the application, and to those who are supplied.
struct Upcalls<'e, R> {
    view: &'e View,
    large: &'e mut Large,
    joiners: &'e mut Joiners,
    replica: &'e mut R,
    clock: &'e mut Clock,
}

impl<R: Replica> Application for Upcalls<'_, R> {
    #[inline]
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        let Self { view, large, joiners, replica, .. } = self;
        // What is delivered here was handed over before: its bytes may not have been looked for yet.
        large.hear();
        let large = &**large;
        if large.is_mistold() {
            return;
        }
        if joiners.is_empty() {
            return replica.deliver(&mut Messages::live(batch, view, large, None));
        }
        let mut tap = |message: &Message<'_>| joiners.tap(message);
        let mut messages = Messages::live(batch, view, large, Some(&mut tap));
        replica.deliver(&mut messages);
        messages.finish();
    }

    #[inline]
    fn now(&mut self, _: Time) -> Time {
        self.clock.read_if_late()
    }
}

impl<R: Replica + 'static> Driven for Engine<R> {
    type Bell = JoinedBell;

    fn bell(&self) -> JoinedBell {
        self.parts.fabric.fabric.local_bell()
    }

    fn idle(&self) -> Idle {
        Idle::new(self.idle_time)
    }

    fn step(&mut self) -> Result<bool, Stopped> {
        self.step_once()
    }

    /// Never longer than a third of a heartbeat: that is how often the core looks at a view.
    fn sleep(&mut self, timeout: Duration) -> Result<bool, Stopped> {
        let most = if self.has_cares { CARE_PAUSE } else { self.parts.membership.heartbeat() / 3 };
        let look_and_step = |engine: &mut Self| {
            engine.until_clock = 0;
            engine.step_once()
        };
        let (rung, is_busy) = sleep_unless_busy(
            self,
            timeout.min(most),
            |engine| &mut engine.parts.fabric.fabric,
            look_and_step,
            |is_busy| !is_busy,
        )?;
        Ok(rung || is_busy)
    }

    fn look(&self) -> Look {
        let is_carried = !self.parts.outgoing.iter().any(Outgoing::is_carrying);
        let is_settled = is_carried
            && self.ended.is_none()
            && self.present.is_settled()
            && self.parts.large.is_settled();
        Look { is_settled, writes: self.parts.account.writes() }
    }

    fn leave(&mut self) {
        // Whoever is closed between two steps has not ended yet.
        self.end(Stopped::Closed);
        // Senders may keep this alive; whoever is supplied must not wait for it.
        self.joiners = Joiners::default();
        self.parts.outside.end();
        self.parts.fabric.fabric.leave();
    }
}
