//! A partition: it finds its partner, begins a session, runs, and begins again when one of the two
//! has restarted. All of this happens in one step that never waits.

use crate::fabric::PortFabric;
use crate::frame::{self, FrameKind, Header, Session};
use crate::group::{FIRST_VIEW, Members, WhichPartition};
use crate::hello::{Hello, PartnerState, Watch};
use crate::member::Member;
use crate::memory::PartitionStorage;
use crate::orders::{Orders, SNAPSHOT_BYTES};
use crate::ports::{HealthReport, MESSAGE_BYTES, Ports, Why};
use tramontane_core::health::{HealthEvent, HealthKind};
use tramontane_core::ids::{Time, ViewId};
use tramontane_core::memory::Row;

/// Maximum number of frames taken in one step; the remaining frames wait for the next step.
const FRAMES_PER_STEP: u32 = 64;

/// Time without a new beat after which a partner is reported as silent.
const SILENT_NS: u64 = 500_000_000;

/// The phase of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The partition is in no view and waits for its partner.
    Fresh,
    /// The partition is in a view, with these members.
    InView(ViewId, Members),
    /// The partition has stopped and must be restarted.
    Stopped(Why),
}

/// The phase, with the data that belongs to it.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one, and no heap")]
enum RunningPhase<'s> {
    Fresh,
    InView(Member<'s>),
    Stopped(Why),
}

/// One incarnation of a partition.
#[derive(Debug)]
pub struct Partition<'s> {
    own: WhichPartition,
    incarnation: u32,
    storage: &'s PartitionStorage,
    rows: &'s [Row<'s>; 3],
    fabric: PortFabric<'s>,
    running: RunningPhase<'s>,
    watch: Watch,
    beat: u32,
    orders: Orders,
    /// Number of local messages sent, over all incarnations. `to_send` is the number to be sent.
    sent: u64,
    to_send: u64,
    /// Frame that arrived before its session began in this partition.
    early: Option<([u8; MESSAGE_BYTES], usize)>,
    snapshot: ArrivingState,
    /// Incarnation of the partner and last view whose frames belong to a session that is over.
    left: Option<(u32, ViewId)>,
    /// Whether the group has been asked in this view to admit the partner, or it has been reported
    /// that the partner stopped.
    has_asked: bool,
}

/// A state that arrives in parts.
#[derive(Debug)]
struct ArrivingState {
    session: Option<Session>,
    bytes: [u8; SNAPSHOT_BYTES],
    have: usize,
    frames: u32,
}

impl ArrivingState {
    const NONE: Self = Self { session: None, bytes: [0; SNAPSHOT_BYTES], have: 0, frames: 0 };

    /// Takes a part, and returns true once the state is whole. Returns `None` if something was lost
    /// before the part.
    fn take(&mut self, header: &Header, part: &[u8]) -> Option<bool> {
        if header.sequence == 0 {
            *self = Self { session: Some(header.session), ..Self::NONE };
        }
        if self.session != Some(header.session) {
            return Some(false);
        }
        let place = usize::try_from(header.offset).ok()?;
        let is_next = header.sequence == self.frames && place == self.have;
        if !is_next || usize::from(header.total) != SNAPSHOT_BYTES {
            return None;
        }
        let end = self.have.checked_add(part.len())?;
        for (to, from) in self.bytes.get_mut(self.have..end)?.iter_mut().zip(part) {
            *to = *from;
        }
        (self.have, self.frames) = (end, self.frames.wrapping_add(1));
        Some(end == SNAPSHOT_BYTES)
    }
}

impl<'s> Partition<'s> {
    /// Begins an incarnation. `incarnation` is a boot counter: it is not zero and never repeats.
    /// `rows` are those of the storage, which no other incarnation uses. The partition sends
    /// `to_send` messages, including those of its earlier incarnations.
    #[must_use]
    pub fn new(
        own: WhichPartition,
        incarnation: u32,
        storage: &'s PartitionStorage,
        rows: &'s [Row<'s>; 3],
        to_send: u64,
    ) -> Self {
        Self {
            own,
            incarnation,
            storage,
            rows,
            fabric: PortFabric::new(storage.rows_of(own)),
            running: RunningPhase::Fresh,
            watch: Watch::new(own.other(), SILENT_NS),
            beat: 0,
            orders: Orders::NONE,
            sent: 0,
            to_send,
            early: None,
            snapshot: ArrivingState::NONE,
            left: None,
            has_asked: false,
        }
    }

    /// Does one step: checks the partner, handles arrived frames, sends, delivers, and puts as many
    /// frames into the queue as it accepts.
    pub fn step(&mut self, now: Time, ports: &mut impl Ports) -> Phase {
        if let Err(why) = self.work(now, ports) {
            self.running = RunningPhase::Stopped(why);
            self.fabric.begin(None, 0);
            ports.report(HealthReport::Stopped(why));
        }
        self.beat = self.beat.wrapping_add(1);
        // A port failure is detected in the next step.
        let _ = ports.show(&self.hello().encode());
        self.phase()
    }

    /// Returns the partition's phase.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match &self.running {
            RunningPhase::Fresh => Phase::Fresh,
            RunningPhase::InView(member) => Phase::InView(member.view, member.members),
            RunningPhase::Stopped(why) => Phase::Stopped(*why),
        }
    }

    /// Returns the partition's replicated state.
    #[must_use]
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }

    fn hello(&self) -> Hello {
        let seen = self.watch.latest().map_or(0, |hello| hello.incarnation);
        let place = match &self.running {
            RunningPhase::Fresh => PartnerState::Fresh,
            RunningPhase::InView(member) => {
                PartnerState::InView(member.view, self.fabric.session().map(|session| session.to))
            }
            RunningPhase::Stopped(_) => PartnerState::Stopped,
        };
        Hello::new(self.incarnation, seen, self.beat, place)
    }

    fn work(&mut self, now: Time, ports: &mut impl Ports) -> Result<(), Why> {
        let shown = ports.look().map_err(|_| Why::Port)?;
        let shown = shown.and_then(|sample| Hello::decode(&sample));
        self.watch.see(shown, now, |report| ports.report(report));
        if matches!(self.running, RunningPhase::Stopped(_)) {
            return Ok(());
        }
        if let Some(hello) = self.watch.latest() {
            self.follow(hello, now, ports)?;
        }
        self.receive(ports)?;
        self.run(now, ports)?;
        self.fabric.staged.send(ports).map_err(|_| Why::Port)
    }

    /// Acts on the partner's hello.
    fn follow(&mut self, hello: Hello, now: Time, ports: &mut impl Ports) -> Result<(), Why> {
        match &mut self.running {
            RunningPhase::Fresh => {
                // Each partition has seen the other's incarnation, so neither can be in a session
                // with a different incarnation.
                let begins = match hello.place {
                    PartnerState::Fresh => hello.seen == self.incarnation,
                    PartnerState::InView(FIRST_VIEW, partner) => partner == Some(self.incarnation),
                    PartnerState::InView(..) | PartnerState::Stopped => false,
                };
                if begins {
                    let session =
                        Session { from: self.incarnation, to: hello.incarnation, view: FIRST_VIEW };
                    self.open(Members::Both(WhichPartition::A), FIRST_VIEW, Some(session), 0)?;
                } else if hello.place == PartnerState::Stopped && !self.has_asked {
                    self.has_asked = true;
                    let kind = HealthKind::StoppedBecauseOfThis;
                    ports.report(HealthReport::Health(self.watch.event(kind, now)));
                }
            }
            RunningPhase::InView(member) => {
                let Some(session) = self.fabric.session() else {
                    #[cfg(feature = "views")]
                    {
                        let is_alone = member.members == Members::Alone(self.own);
                        let asks =
                            hello.place == PartnerState::Fresh && hello.seen == self.incarnation;
                        if is_alone && asks && !self.has_asked {
                            self.has_asked = member.ask_for(self.own.other());
                        }
                    }
                    return Ok(());
                };
                if hello.incarnation != session.to || hello.place == PartnerState::Stopped {
                    // That incarnation of the partner is over: its memory is lost, or it has
                    // published that it has stopped.
                    #[cfg(not(feature = "views"))]
                    return Err(Why::Partner);
                    #[cfg(feature = "views")]
                    {
                        member.partner_is_gone(self.own);
                        self.fabric.begin(None, 0);
                        return Ok(());
                    }
                }
                let is_out = match hello.place {
                    PartnerState::InView(view, partner) => {
                        view > member.view && partner != Some(self.incarnation)
                    }
                    PartnerState::Fresh | PartnerState::Stopped => false,
                };
                if is_out {
                    // The partner has continued without this partition, with everything that was
                    // delivered here. This partition begins again from nothing.
                    self.left = Some((session.to, member.view));
                    self.begin_again();
                    let kind = HealthKind::StoppedBecauseOfThis;
                    ports.report(HealthReport::Health(self.watch.event(kind, now)));
                }
            }
            RunningPhase::Stopped(_) => {}
        }
        Ok(())
    }

    fn begin_again(&mut self) {
        self.running = RunningPhase::Fresh;
        self.fabric.begin(None, 0);
        (self.orders, self.sent) = (Orders::NONE, 0);
        (self.early, self.snapshot, self.has_asked) = (None, ArrivingState::NONE, false);
    }

    /// Opens a view. `received` frames of its session have already arrived.
    fn open(
        &mut self,
        members: Members,
        view: ViewId,
        session: Option<Session>,
        received: u32,
    ) -> Result<(), Why> {
        // The memory is that of the previous view.
        self.running = RunningPhase::Fresh;
        self.fabric.begin(session, received);
        self.has_asked = false;
        let member = Member::open(self.storage, self.rows, self.own, view, members);
        self.running = RunningPhase::InView(member.ok_or(Why::Node)?);
        Ok(())
    }

    /// Handles arrived frames.
    fn receive(&mut self, ports: &mut impl Ports) -> Result<(), Why> {
        // bound: FRAMES_PER_STEP
        for _ in 0..FRAMES_PER_STEP {
            let mut message = [0; MESSAGE_BYTES];
            let length = match self.early.take() {
                Some((early, length)) => {
                    message = early;
                    length
                }
                None => match ports.receive(&mut message).map_err(|_| Why::Port)? {
                    Some(length) => length,
                    None => break,
                },
            };
            // A message that is not a frame belongs to no session. If it replaces a frame, the next
            // frame reveals the loss.
            let Some((header, part)) = message.get(..length).and_then(frame::decode) else {
                continue;
            };
            if header.session.to != self.incarnation || self.is_left(header.session) {
                continue;
            }
            match (&self.running, header.kind) {
                (RunningPhase::InView(_), FrameKind::Write) => {
                    self.fabric.apply(&header, part).ok_or(Why::Queue)?;
                }
                // The partner has begun, and this partition begins once it sees the partner's
                // hello.
                (RunningPhase::Fresh, FrameKind::Write) if header.session.view == FIRST_VIEW => {
                    self.early = Some((message, length));
                    break;
                }
                (RunningPhase::Fresh, FrameKind::Snapshot) => {
                    let is_whole = self.snapshot.take(&header, part).ok_or(Why::Queue)?;
                    if is_whole {
                        self.take_part(header.session)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_left(&self, session: Session) -> bool {
        self.left.is_some_and(|(from, view)| session.from == from && session.view <= view)
    }

    /// Begins with the complete state, in the view that the partner has opened for both.
    fn take_part(&mut self, session: Session) -> Result<(), Why> {
        self.orders = Orders::restore(&self.snapshot.bytes);
        self.sent = self.orders.count_of(self.own);
        let frames = self.snapshot.frames;
        self.snapshot = ArrivingState::NONE;
        let members = Members::Both(self.own.other());
        self.open(members, session.view, Some(session.reversed()), frames)
    }

    /// Sends, steps the member, and moves to the next view when this one is over.
    fn run(&mut self, now: Time, ports: &mut impl Ports) -> Result<(), Why> {
        let own = self.own;
        let RunningPhase::InView(member) = &mut self.running else { return Ok(()) };
        // bound: a window
        while self.sent < self.to_send {
            let number = self.sent;
            let build = |payload: &mut [u8]| Orders::build(own, number, payload);
            if !member.send(Orders::length_of(own, number), build).ok_or(Why::Node)? {
                break;
            }
            self.sent = self.sent.saturating_add(1);
        }
        let stepped = member.step(now, &mut self.fabric, &mut self.orders).ok_or(Why::Node)?;
        if let Some(refused) = stepped.refused {
            ports.report(HealthReport::Health(HealthEvent::of_refusal(refused, now)));
        }
        if stepped.is_wrong {
            return Err(Why::Node);
        }
        #[cfg(feature = "views")]
        if stepped.is_over {
            self.next_view()?;
        }
        Ok(())
    }

    /// Continues in a view without the partner, or in a view with it again. In the latter case the
    /// state is first sent to the partner.
    #[cfg(feature = "views")]
    fn next_view(&mut self) -> Result<(), Why> {
        let RunningPhase::InView(member) =
            core::mem::replace(&mut self.running, RunningPhase::Fresh)
        else {
            return Err(Why::Node);
        };
        let (view, members, remains) = member.end().ok_or(Why::Node)?;
        let partner = self.watch.latest().filter(|_| members != Members::Alone(self.own));
        let session = partner.map(|partner| Session {
            from: self.incarnation,
            to: partner.incarnation,
            view,
        });
        self.open(members, view, session, 0)?;
        if let Some(session) = session {
            self.fabric.staged.snapshot(session, &self.orders.save()).ok_or(Why::Node)?;
        }
        let RunningPhase::InView(member) = &self.running else { return Err(Why::Node) };
        for message in &remains {
            let copy = |payload: &mut [u8]| {
                for (to, from) in payload.iter_mut().zip(message) {
                    *to = *from;
                }
            };
            if member.send(message.len(), copy) != Some(true) {
                return Err(Why::Node);
            }
        }
        Ok(())
    }
}

const _: () = assert!(SNAPSHOT_BYTES <= crate::staged::SNAPSHOT_MAX, "it is staged whole");
