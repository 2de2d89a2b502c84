//! A member whose application takes almost the failure timeout for each upcall, repeatedly: it is
//! not suspected, and suspects no other (VIE-2). The clock advances only with upcalls and turns;
//! while one member is in an upcall, the others continue.

use super::members::{NodeMember, open_with};
use tramontane_core::ids::{NodeId, SubgroupId, Time};
use tramontane_core::multicast::{Application, Batch, Switches};
use tramontane_core::node::Options;
use tramontane_core::view::Status;

const SUBGROUPS: u16 = 3;

/// The timeout that `open_with` sets.
const FAILURE_TIMEOUT: u64 = 20_000;

/// Duration of every upcall of the slow member.
const UPCALL: u64 = FAILURE_TIMEOUT - 100;

/// Duration of a turn of all others.
const TURN: u64 = 100;

type SenderMessages = [Vec<u8>; SUBGROUPS as usize];

/// The quick members, and the time.
struct QuickMembers<'w> {
    others: Vec<&'w mut NodeMember>,
    delivered: Vec<SenderMessages>,
    now: u64,
    sending: bool,
    sent: u8,
}

impl QuickMembers<'_> {
    fn turn(&mut self) {
        self.now += TURN;
        for index in 0..self.others.len() {
            if self.sending {
                self.send(index);
            }
            self.step(index);
        }
    }

    /// Sends in each subgroup from one of the quick members, if there is room.
    fn send(&mut self, index: usize) {
        for subgroup in (0..SUBGROUPS).map(SubgroupId) {
            let outbox = self.others[index].node.node().outbox(subgroup).expect("it sends");
            let Ok(mut slot) = outbox.reserve(1) else { continue };
            slot.payload()[0] = self.sent;
            slot.commit();
            self.sent = self.sent.wrapping_add(1);
        }
    }

    fn step(&mut self, index: usize) {
        let NodeMember { node, fabric, .. } = &mut *self.others[index];
        let mut take = |batch: &mut Batch<'_>| take(&mut self.delivered[index], batch);
        let stepped = node.step(Time(self.now), fabric, &mut take, |_| true);
        let (_, status) = stepped.expect("it steps");
        assert!(!matches!(status, Status::Halted(_)), "at {}: {status:?}", self.now);
    }
}

fn take(delivered: &mut SenderMessages, batch: &mut Batch<'_>) {
    let subgroup = batch.subgroup().index();
    delivered[subgroup].extend(batch.map(|message| message.payload[0]));
}

/// The application of the slow member.
struct Slow<'s, 'w> {
    world: &'s mut QuickMembers<'w>,
    delivered: &'s mut SenderMessages,
    upcalls: &'s mut u32,
    /// Number of calls that asked for the time.
    asked: u32,
}

impl Application for Slow<'_, '_> {
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        take(self.delivered, batch);
        *self.upcalls += 1;
        let until = self.world.now + UPCALL;
        while self.world.now < until {
            self.world.turn();
        }
    }

    fn now(&mut self, _: Time) -> Time {
        self.asked += 1;
        Time(self.world.now)
    }
}

/// Steps the slow member at the current time. Reading a clock takes time, so the application is
/// asked once per upcall, and not at all in a step without upcalls.
fn step_slowly(
    slow: &mut NodeMember,
    world: &mut QuickMembers<'_>,
    told: (&mut SenderMessages, &mut u32),
) -> Status {
    let NodeMember { node, fabric, .. } = slow;
    let now = Time(world.now);
    let before = *told.1;
    let mut application = Slow { world, delivered: told.0, upcalls: told.1, asked: 0 };
    let (_, status) = node.step(now, fabric, &mut application, |_| true).expect("it steps");
    assert_eq!(application.asked, *application.upcalls - before, "{status:?}");
    status
}

fn members(count: u32, batching: bool) -> Vec<NodeMember> {
    let ids: Vec<NodeId> = (1..=count).map(NodeId).collect();
    let off = if batching { Switches::empty() } else { Switches::DELIVERY_BATCHING };
    let options = Options { switches: Switches::all().difference(off), ..Options::default() };
    let mut members = open_with(1, &ids, false, 1, (usize::from(SUBGROUPS), options));
    members.iter_mut().for_each(|member| member.fabric.full_percent = 0);
    members
}

#[test]
fn repeated_long_upcalls_do_not_remove_member() {
    for batching in [true, false] {
        for slow_rank in 0..3 {
            let mut members = members(3, batching);
            let mut slow = members.remove(slow_rank);
            let others: Vec<&mut NodeMember> = members.iter_mut().collect();
            let delivered = vec![SenderMessages::default(); 2];
            let mut world = QuickMembers { others, delivered, now: 0, sending: true, sent: 0 };
            let (mut here, mut upcalls) = (SenderMessages::default(), 0);
            while upcalls < 60 {
                world.turn();
                let status = step_slowly(&mut slow, &mut world, (&mut here, &mut upcalls));
                assert_eq!(status, Status::Steady, "after {upcalls} upcalls, batches: {batching}");
                let others = world.others.iter().map(|member| member.node.status());
                assert!(others.into_iter().all(|status| status == Status::Steady), "{upcalls}");
            }
            assert!(world.now > 59 * UPCALL);
            for (subgroup, here) in here.iter().enumerate() {
                assert!(!here.is_empty());
                let other = &world.delivered[0][subgroup];
                assert!(other.starts_with(here) || here.starts_with(other), "one order");
            }
        }
    }
}

#[test]
fn long_upcalls_during_trim_do_not_remove_member() {
    for batching in [true, false] {
        for slow_rank in 0..3 {
            let mut members = members(4, batching);
            // The last member receives none of the following messages, so none becomes stable while
            // it is a member.
            let _dead = members.remove(3);
            let mut slow = members.remove(slow_rank);
            let others: Vec<&mut NodeMember> = members.iter_mut().collect();
            let delivered = vec![SenderMessages::default(); 2];
            let mut world = QuickMembers { others, delivered, now: 0, sending: true, sent: 0 };
            let (mut here, mut upcalls) = (SenderMessages::default(), 0);
            let mut status = Status::Steady;
            while !status.is_final() {
                world.turn();
                status = step_slowly(&mut slow, &mut world, (&mut here, &mut upcalls));
                assert!(world.now < 200 * FAILURE_TIMEOUT, "the view does not end: {status:?}");
            }
            assert_eq!(status, Status::Installed, "after {upcalls} upcalls, batches: {batching}");
            assert!(upcalls >= u32::from(SUBGROUPS), "{upcalls}");
            for (member, delivered) in world.others.iter_mut().zip(&world.delivered) {
                let next = member.node.next_view().expect("installed").members.to_vec();
                assert_eq!(next, [NodeId(1), NodeId(2), NodeId(3)], "batches: {batching}");
                assert_eq!(*delivered, here, "all of the trim");
            }
        }
    }
}

/// A wedged member delivers the stable messages of all its subgroups in one step. Without a
/// heartbeat between those upcalls, the others would suspect it and continue without it.
#[test]
fn long_upcalls_at_view_end_keep_member() {
    for batching in [true, false] {
        let mut members = members(3, batching);
        let mut slow = members.remove(2);
        let others: Vec<&mut NodeMember> = members.iter_mut().collect();
        let delivered = vec![SenderMessages::default(); 2];
        let mut world = QuickMembers { others, delivered, now: 0, sending: false, sent: 0 };
        let (mut here, mut upcalls) = (SenderMessages::default(), 0);
        for _ in 0..10 {
            world.turn();
            step_slowly(&mut slow, &mut world, (&mut here, &mut upcalls));
        }
        // The slow member receives a message from member 0, then member 1 does, and then member 0
        // begins a change: the step that wedges the slow member delivers the stable messages.
        world.send(0);
        world.step(0);
        let status = step_slowly(&mut slow, &mut world, (&mut here, &mut upcalls));
        assert_eq!((status, upcalls), (Status::Steady, 0));
        world.step(1);
        world.others[0].node.request_join(NodeId(9)).expect("a stranger");
        world.now += 1_000;
        world.step(0);
        let status = step_slowly(&mut slow, &mut world, (&mut here, &mut upcalls));
        assert_eq!((status, upcalls), (Status::Wedged, u32::from(SUBGROUPS)));
        while !slow.node.status().is_final() {
            world.turn();
            step_slowly(&mut slow, &mut world, (&mut here, &mut upcalls));
            assert!(world.now < 200 * FAILURE_TIMEOUT, "the view does not end");
        }
        let next = slow.node.next_view().expect("it is not missed").members.to_vec();
        assert_eq!(next, [1, 2, 3, 9].map(NodeId), "batches: {batching}");
    }
}

#[test]
fn heartbeats_between_long_calls_prevent_suspicion() {
    for shows_life in [true, false] {
        let mut members = members(3, true);
        let mut slow = members.remove(2);
        let others: Vec<&mut NodeMember> = members.iter_mut().collect();
        let delivered = vec![SenderMessages::default(); 2];
        let mut world = QuickMembers { others, delivered, now: 0, sending: false, sent: 0 };
        let (mut here, mut upcalls) = (SenderMessages::default(), 0);
        for _ in 0..10 {
            world.turn();
            step_slowly(&mut slow, &mut world, (&mut here, &mut upcalls));
        }
        let until = world.now + 5 * FAILURE_TIMEOUT;
        while world.now < until {
            world.turn();
            if shows_life {
                let NodeMember { node, fabric, .. } = &mut slow;
                assert!(node.show_life(Time(world.now), fabric).heartbeats <= 2, "one a peer");
            }
        }
        let mut others = world.others.iter().map(|member| member.node.status());
        assert_eq!(others.all(|status| status == Status::Steady), shows_life);
    }
}

/// VIE-2: for an application without a clock, no time passes during a step.
#[test]
fn application_clock_defaults_to_step_time() {
    let mut application = |_: &mut Batch<'_>| {};
    assert_eq!(application.now(Time(7)), Time(7));
}
