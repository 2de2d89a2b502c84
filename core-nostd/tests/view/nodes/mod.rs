//! Nodes whose membership changes: real rings, real messages, the memory of two views, and resent
//! messages that the trim dropped. Members either share one memory or have copies that posts
//! update.

mod asked;
mod changed_slots;
mod checked_columns;
mod long_upcalls;
mod members;
mod posts;
#[cfg(feature = "durable")]
mod promises;
mod timing;
mod weak_order;

use std::collections::{BTreeMap, BTreeSet};

use tramontane_core::fabric::{Event, LossCause};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Progress, UndeliveredMessage};
use tramontane_core::smc::Outbox;
use tramontane_core::view::{Halt, NextView, Status};

use members::{Laid, NodeMember, open, open_laid};

const SUBGROUP: SubgroupId = SubgroupId(0);

/// Nodes that move from view to view, and record their deliveries.
struct NodesRun {
    ids: Vec<NodeId>,
    members: Vec<NodeMember>,
    view: u64,
    shared: bool,
    seed: u64,
    now: u64,
    /// For each node: its deliveries in all views, and the number of messages that it has sent.
    delivered: BTreeMap<u32, Vec<Vec<u8>>>,
    sent: BTreeMap<u32, u8>,
    stopped: BTreeSet<u32>,
    resent: u32,
    /// Number of rings whose first undelivered message was sent in the view that ended.
    dropped_after_they_were_sent: u32,
}

impl NodesRun {
    fn new(count: u32, shared: bool, seed: u64) -> Self {
        let ids: Vec<NodeId> = (1..=count).map(NodeId).collect();
        let members = open(1, &ids, shared, seed);
        Self {
            ids,
            members,
            view: 1,
            shared,
            seed,
            now: 0,
            delivered: BTreeMap::new(),
            sent: BTreeMap::new(),
            stopped: BTreeSet::new(),
            resent: 0,
            dropped_after_they_were_sent: 0,
        }
    }

    /// Opens a group with an additional unordered subgroup.
    fn with_unordered(count: u32, shared: bool, seed: u64) -> Self {
        let mut run = Self::new(count, shared, seed);
        let laid = Laid { unordered: 1, ..Laid::default() };
        run.members = open_laid(1, &run.ids, shared, seed, laid);
        run
    }

    fn send(&mut self, rank: usize) {
        let node = self.ids[rank].0;
        let outbox: Outbox<'static> =
            self.members[rank].node.node().outbox(SUBGROUP).expect("a sender");
        let count = self.sent.entry(node).or_default();
        let message = [node as u8, *count];
        if let Ok(mut reservation) = outbox.reserve(message.len()) {
            reservation.payload().copy_from_slice(&message);
            reservation.commit();
            *count += 1;
        }
    }

    fn step(&mut self, rank: usize) -> Status {
        self.step_and_tell(rank).1
    }

    /// Steps a member, and returns its progress and status.
    fn step_and_tell(&mut self, rank: usize) -> (Progress, Status) {
        self.now += 100;
        let node = self.ids[rank].0;
        let delivered = self.delivered.entry(node).or_default();
        let NodeMember { node, fabric, calls, .. } = &mut self.members[rank];
        let mut application =
            |batch: &mut Batch<'_>| delivered.extend(batch.map(|message| message.payload.to_vec()));
        let prepare = |_: NextView<'_>| {
            *calls += 1;
            *calls > 3
        };
        let stepped = node.step(Time(self.now), fabric, &mut application, prepare);
        let (progress, status) = stepped.expect("it steps");
        if matches!(status, Status::Decided | Status::Installed) {
            assert!(*calls > 3, "it goes on without memory");
        }
        (progress, status)
    }

    /// Steps the live members, which sometimes send, until all of them have finished their view.
    fn run_to_the_end_of_the_view(&mut self, sending: bool) {
        for turn in 0..4_000_u32 {
            let mut going = false;
            for rank in 0..self.members.len() {
                if self.stopped.contains(&self.ids[rank].0) {
                    continue;
                }
                if sending && self.members[rank].fabric.chance(30) && turn < 60 {
                    self.send(rank);
                }
                // After a final status, the last columns are still to be posted.
                let done = self.step(rank).is_final() && self.members[rank].node.is_all_posted();
                going |= !done;
            }
            if !going {
                return;
            }
        }
        let statuses: Vec<Status> =
            self.members.iter().map(|member| member.node.status()).collect();
        panic!("the view does not end: {statuses:?}");
    }

    fn run(&mut self, turns: u32, sending: bool) {
        for _ in 0..turns {
            for rank in 0..self.members.len() {
                if self.stopped.contains(&self.ids[rank].0) {
                    continue;
                }
                if sending && self.members[rank].fabric.chance(30) {
                    self.send(rank);
                }
                assert!(!self.step(rank).is_final(), "nothing has to change");
            }
        }
    }

    /// Opens the view on which the survivors agreed, and resends the dropped messages.
    fn go_on(&mut self) {
        let mut agreed: Option<Vec<NodeId>> = None;
        for member in &mut self.members {
            if member.node.status() == Status::Installed {
                let next = member.node.next_view().expect("installed").members.to_vec();
                assert!(agreed.is_none() || agreed.as_ref() == Some(&next), "one next view");
                agreed = Some(next);
            }
        }
        let next = agreed.expect("somebody goes on");
        self.view += 1;
        let members = open(self.view, &next, self.shared, self.seed);
        for (id, member) in next.iter().zip(&members) {
            let Some(rank) = self.ids.iter().position(|old| old == id) else { continue };
            let into = member.node.node().outbox(SUBGROUP).expect("a sender");
            let node = self.members[rank].node.node();
            let from = node.outbox(SUBGROUP).expect("a sender");
            let mut remains = node.undelivered(SUBGROUP).expect("a sender");
            let first = remains.position();
            self.dropped_after_they_were_sent += u32::from(remains.was_sent());
            if remains.get(&from).is_some() {
                let other = remains.get(&into);
                assert_eq!(
                    other,
                    Some(UndeliveredMessage::Building),
                    "of a view that goes on nothing is lent"
                );
            }
            assert!(
                remains.carry(&from, &into).expect("the ring is as large"),
                "nothing is being built"
            );
            self.resent += u32::try_from(remains.position().0 - first.0).expect("a window");
        }
        self.members = members;
        self.ids = next;
    }

    /// Asserts that the current members delivered the same messages, including all of their own,
    /// once and in order.
    fn judge(&self, since_the_start: &[u32]) {
        let first = &self.delivered[&since_the_start[0]];
        for node in since_the_start {
            assert_eq!(&self.delivered[node], first, "one order at {node}");
            let own: Vec<u8> =
                first.iter().filter(|m| u32::from(m[0]) == *node).map(|m| m[1]).collect();
            let all: Vec<u8> = (0..self.sent[node]).collect();
            assert_eq!(own, all, "of {node}: each once, in order, none lost");
        }
        for (node, delivered) in &self.delivered {
            // The deliveries of a member that is out of the group are a prefix of the others'.
            // Those of a member that joined later are a suffix, which follows the state that it
            // received.
            let part = first.starts_with(delivered) || first.ends_with(delivered);
            assert!(part, "{node} delivered what the others did not");
        }
    }
}

#[test]
fn survivors_lose_no_message_after_death_under_load() {
    let (mut resent, mut sent) = (0, 0);
    for shared in [true, false] {
        for seed in 0..60 {
            let mut run = NodesRun::new(4, shared, seed * 7919 + 1);
            run.run(5 + seed as u32 % 17, true);
            let victim = seed as usize % 4;
            run.stopped.insert(run.ids[victim].0);
            // The death is detected by a report, or by silence.
            if seed % 3 == 0 {
                for member in &mut run.members {
                    member.node.peer_lost(Rank(victim as u16));
                }
            }
            run.run_to_the_end_of_the_view(true);
            run.go_on();
            assert_eq!(run.ids.len(), 3);
            run.run(40, true);
            run.run(60, false);
            let ids: Vec<u32> = run.ids.iter().map(|id| id.0).collect();
            run.judge(&ids);
            resent += run.resent;
            sent += run.dropped_after_they_were_sent;
        }
    }
    assert!(resent > 20, "only {resent} messages were in flight");
    assert!(sent > 0 && sent < resent, "the trim drops some, and others were never sent: {sent}");
}

/// DEL-3: an unordered subgroup has no position at which a view ends. Its messages are delivered
/// while the view lasts, and a change does not wait for them.
#[test]
fn unordered_subgroup_has_no_trim_or_delay() {
    const UNORDERED: SubgroupId = SubgroupId(1);
    for seed in 0..20 {
        let shared = seed % 2 == 0;
        let mut run = NodesRun::with_unordered(4, shared, seed * 613 + 1);
        let send = |run: &mut NodesRun, rank: usize, message: u8| {
            let outbox = run.members[rank].node.node().outbox(UNORDERED).expect("a sender");
            let mut slot = outbox.reserve(1).expect("a slot is free");
            slot.payload()[0] = message;
            slot.commit();
        };
        for rank in 0..4 {
            send(&mut run, rank, 100 + rank as u8);
        }
        run.run(30, true);
        for delivered in run.delivered.values() {
            let mut unordered: Vec<u8> =
                delivered.iter().filter(|one| one.len() == 1).map(|one| one[0]).collect();
            unordered.sort_unstable();
            assert_eq!(unordered, [100, 101, 102, 103], "seed {seed}");
        }
        let victim = seed as usize % 4;
        run.stopped.insert(run.ids[victim].0);
        // A message that can no longer be delivered everywhere.
        send(&mut run, (victim + 1) % 4, 7);
        run.run_to_the_end_of_the_view(true);
        for (rank, member) in run.members.iter().enumerate().filter(|(rank, _)| *rank != victim) {
            assert_eq!(member.node.status(), Status::Installed, "seed {seed}: {rank}");
            assert!(member.node.trim(SUBGROUP).is_some());
            assert_eq!(member.node.trim(UNORDERED), None);
        }
    }
}

/// VIE-3: a view does not distinguish why a peer is lost.
#[test]
fn member_reported_lost_by_the_fabric_is_dropped() {
    for cause in [LossCause::Exited, LossCause::Left, LossCause::Unreachable] {
        let mut run = NodesRun::new(3, false, 11);
        run.run(5, true);
        run.stopped.insert(3);
        let lost = Event::PeerLost { view: ViewId(1), peer: Rank(2), cause };
        run.members[0].fabric.events.push_back(lost);
        // The peer is suspected at once, rather than after the timeout for silent members.
        let steps = (1..).find(|_| {
            run.step(0);
            run.members[0].node.suspects(Rank(2))
        });
        assert!(steps.is_some_and(|steps| steps <= 3), "{cause:?}: {steps:?}");
        run.run_to_the_end_of_the_view(true);
        run.go_on();
        assert_eq!(run.ids, [NodeId(1), NodeId(2)], "{cause:?}");
    }
}

/// VIE-3: several members lost in one step are not mistaken for members that shut this one out.
#[test]
fn two_members_lost_together_are_both_dropped() {
    let mut run = NodesRun::new(5, false, 13);
    run.run(5, true);
    let lost = [4, 3].map(|peer| Event::PeerLost {
        view: ViewId(1),
        peer: Rank(peer),
        cause: LossCause::Exited,
    });
    run.stopped.extend([4, 5]);
    run.members[0].fabric.events.extend(lost);
    let steps = (1..).find(|_| {
        run.step(0);
        run.members[0].node.suspects(Rank(3)) && run.members[0].node.suspects(Rank(4))
    });
    assert!(steps.is_some_and(|steps| steps <= 3), "{steps:?}");
    run.run_to_the_end_of_the_view(true);
    run.go_on();
    assert_eq!(run.ids, [NodeId(1), NodeId(2), NodeId(3)]);
}

/// The host makes a mistake: no member has that rank.
#[test]
fn report_about_a_nonexistent_member_ends_no_view() {
    let mut run = NodesRun::new(3, false, 5);
    run.run(5, true);
    run.members[0].node.peer_lost(Rank(3));
    run.members[0].node.denied_by(Rank(9));
    run.run(30, true);
    assert!((0..4).all(|rank| !run.members[0].node.suspects(Rank(rank))));
}

#[test]
fn isolated_member_does_not_suspect_others() {
    for sending in [true, false] {
        let mut run = NodesRun::new(4, false, 3);
        run.run(5, sending);
        run.members[0].fabric.denied_by.extend([1, 2]);
        let status = (0..400).map(|_| run.step(0)).find(|status| status.is_final());
        assert!(matches!(status, Some(Status::Halted(Halt::SuspectedBy(_)))), "{status:?}");
        assert!((0..4).all(|rank| !run.members[0].node.suspects(Rank(rank))));
    }
}

#[test]
fn member_disconnected_by_several_suspects_no_member() {
    let mut run = NodesRun::new(4, false, 3);
    run.run(5, false);
    // The first report does not name the first in rank order.
    let told = [2, 1].map(|peer| Event::PeerLost {
        view: ViewId(1),
        peer: Rank(peer),
        cause: LossCause::Denied,
    });
    run.members[0].fabric.events.extend(told);
    let status = (0..400).map(|_| run.step(0)).find(|status| status.is_final());
    assert!(matches!(status, Some(Status::Halted(Halt::SuspectedBy(_)))), "{status:?}");
    assert!((0..4).all(|rank| !run.members[0].node.suspects(Rank(rank))));
}

#[test]
fn member_losing_most_others_removes_only_itself() {
    for shared in [true, false] {
        for seed in 0..20 {
            let mut run = NodesRun::new(5, shared, seed * 31 + 1);
            // A message, or a retried post, would detect one lost peer before the heartbeat detects
            // all of them.
            run.members[4].fabric.full_percent = 0;
            run.run(5, false);
            // One member cannot reach three of the others, and still reports that to the fourth.
            let lost = (0..4).filter(|rank| *rank != seed as u16 % 4);
            run.members[4].fabric.cut.extend(lost);
            run.run_to_the_end_of_the_view(false);
            assert_eq!(
                run.members[4].node.status(),
                Status::Halted(Halt::NoMajority),
                "seed {seed}"
            );
            run.go_on();
            let ids: Vec<u32> = run.ids.iter().map(|id| id.0).collect();
            assert_eq!(ids, [1, 2, 3, 4], "seed {seed}");
            run.run(30, true);
            run.run(60, false);
            run.judge(&ids);
        }
    }
}

#[test]
fn old_view_memory_is_freed_despite_absent_joiner() {
    for seed in 0..10 {
        let mut run = NodesRun::new(4, false, seed + 1);
        for member in &mut run.members {
            member.fabric.unready.insert(3);
        }
        run.stopped.insert(4);
        run.run(5, false);
        // One member receives the report from its fabric, and the others learn of the loss from
        // that member: the joiner was never written to, so no post fails.
        run.members[0].node.peer_lost(Rank(3));
        run.run_to_the_end_of_the_view(false);
        assert!(run.members[..3].iter().all(|member| member.node.is_all_posted()));
    }
}

#[test]
fn leaver_under_load_delivers_the_same_messages() {
    for shared in [true, false] {
        for seed in 0..30 {
            let mut run = NodesRun::new(3, shared, seed * 104_729 + 5);
            run.run(4 + seed as u32 % 9, true);
            let leaver = seed as usize % 3;
            run.members[leaver].node.leave();
            run.run_to_the_end_of_the_view(true);
            assert_eq!(run.members[leaver].node.status(), Status::Left);
            let gone = run.ids[leaver].0;
            let in_the_view = run.delivered.clone();
            assert!(
                in_the_view.values().all(|delivered| *delivered == in_the_view[&gone]),
                "VIE-8"
            );
            run.go_on();
            run.run(30, true);
            run.run(60, false);
            let ids: Vec<u32> = run.ids.iter().map(|id| id.0).collect();
            assert!(!ids.contains(&gone));
            run.judge(&ids);
        }
    }
}

#[test]
fn two_nodes_join_under_load_during_a_death() {
    for shared in [true, false] {
        for seed in 0..30 {
            let mut run = NodesRun::new(3, shared, seed * 15_485_863 + 3);
            run.run(4 + seed as u32 % 9, true);
            for (rank, node) in [(0, 8), (1, 9)] {
                run.members[rank].node.request_join(NodeId(node)).expect("a stranger");
            }
            // In some runs the group loses a member in the same change, or in the next one.
            if seed % 2 == 0 {
                run.stopped.insert(3);
            }
            run.run_to_the_end_of_the_view(true);
            run.go_on();
            assert!(run.ids.contains(&NodeId(8)) && run.ids.contains(&NodeId(9)), "{:?}", run.ids);
            if run.ids.contains(&NodeId(3)) && run.stopped.contains(&3) {
                run.run_to_the_end_of_the_view(true);
                run.go_on();
            }
            run.run(30, true);
            run.run(60, false);
            assert!(run.delivered[&8].len() > 5 && run.delivered[&8] == run.delivered[&9]);
            let stayed: Vec<u32> = run.ids.iter().map(|id| id.0).filter(|id| *id < 8).collect();
            run.judge(&stayed);
        }
    }
}

#[test]
fn removed_member_halts_when_it_wakes() {
    for seed in 0..20 {
        let mut run = NodesRun::new(3, true, seed + 77);
        run.run(10, true);
        run.stopped.insert(1);
        run.run_to_the_end_of_the_view(true);
        run.stopped.remove(&1);
        let status = (0..100).map(|_| run.step(0)).find(|status| status.is_final());
        assert!(matches!(status, Some(Status::Halted(Halt::SuspectedBy(_)))), "{status:?}");
        let after: Vec<Vec<u8>> = run.delivered[&1].clone();
        assert!(run.delivered[&2].starts_with(&after), "no more than the others delivered");
    }
}

#[test]
fn last_remaining_member_halts_without_delivering_more() {
    let mut run = NodesRun::new(3, true, 9);
    run.run(10, true);
    run.stopped.extend([1, 2]);
    run.run_to_the_end_of_the_view(true);
    assert_eq!(run.members[2].node.status(), Status::Halted(Halt::NoMajority));
    let before = run.delivered[&3].len();
    run.step(2);
    assert_eq!(run.delivered[&3].len(), before);
}
