//! Memory and state that do not match the layout, queries about a node, and events that a node must
//! distinguish.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::common::{Carries, OneMemory, fabric, send, settle, with_group, with_rows};
use tramontane_core::fabric::{Capabilities, ErrorKind, Event, LossCause, Token, Write};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, RingShape, Subgroup};
use tramontane_core::memory::{Line, NodeMemory, OutOfRow, Row, RowWriter};
use tramontane_core::multicast::{Batch, Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::{AloneError, Loan, Node, OpenError, Options, State, StepError};
use tramontane_core::smc::{HandOffCells, Outbox, ReadyFlag, ReserveError};

const FIRST: SubgroupId = SubgroupId(0);
const PAIR: [Rank; 2] = [Rank(0), Rank(1)];
const NODES: [NodeId; 2] = [NodeId(4), NodeId(5)];
const SUBGROUP: Subgroup<'static> = Subgroup {
    members: &PAIR,
    senders: &PAIR,
    window: 4,
    message_max: 16,
    delivery: Delivery::Ordered,
};

fn layout<'s>(subgroups: &'s [Subgroup<'static>]) -> Layout<'s> {
    Layout::new(Group { members: &NODES, subgroups }).expect("a good group")
}

fn lines(bytes: usize) -> Vec<Line> {
    (0..bytes / 64).map(|_| Line::new()).collect()
}

/// COR-2.1: each slice and each row must have the length that the layout gives.
#[test]
fn mismatched_slice_or_row_length_is_refused() {
    let subgroups = [SUBGROUP];
    let layout = layout(&subgroups);
    let sizes = layout.state_sizes(Rank(0));
    let bytes = layout.row_bytes(Rank(0));
    let [own, short, long] = [bytes, bytes - 64, bytes + 64].map(lines);
    let right = [sizes.subgroups, sizes.senders, sizes.members, sizes.links, 1, sizes.ready];
    let open = |sizes: [usize; 6], peer: &[Line], row: &[Line]| {
        let mut subgroups = vec![SubgroupState::default(); sizes[0]];
        let mut senders = vec![SenderState::VACANT; sizes[1]];
        let mut members = vec![MemberState::VACANT; sizes[2]];
        let mut links = vec![Link::VACANT; sizes[3]];
        let cells: Vec<_> = (0..sizes[4]).map(|_| HandOffCells::default()).collect();
        let ready: Vec<_> = (0..sizes[5]).map(|_| ReadyFlag::default()).collect();
        let state = State {
            subgroups: &mut subgroups,
            senders: &mut senders,
            members: &mut members,
            links: &mut links,
        };
        let rows = [Row::from_lines(&own), Row::from_lines(peer)];
        let row = RowWriter::from_lines(row);
        // SAFETY: only this node uses the memory, and the node is dropped at once.
        let memory = unsafe { NodeMemory::new(&rows, row, &cells, &ready) };
        let loan = Loan { memory, state };
        let limits = OneMemory.limits();
        Node::open(ViewId(1), &layout, Rank(0), loan, Options::default(), limits).err()
    };
    let peer = lines(bytes);
    assert_eq!(open(right, &peer, &own), None);
    for slice in 0..right.len() {
        for other in [right[slice] - 1, right[slice] + 1] {
            let mut sizes = right;
            sizes[slice] = other;
            assert_eq!(open(sizes, &peer, &own), Some(OpenError::WrongState), "{slice} {other}");
        }
    }
    for wrong in [&short, &long] {
        assert_eq!(open(right, wrong, &own), Some(OpenError::WrongRows), "the peer's");
        assert_eq!(open(right, &peer, wrong), Some(OpenError::WrongRows), "the own");
    }
    // An error about memory that does not fit becomes the caller's own error.
    assert_eq!(StepError::from(OutOfRow), StepError::OutOfRow);
    assert_eq!(OpenError::from(OutOfRow), OpenError::WrongRows);
    assert_eq!(AloneError::from(OutOfRow), AloneError::OutOfRow);
}

/// SMC-3.2: an outbox is created without its node, from the ring's shape and the hand-off of one
/// subgroup.
#[test]
fn outbox_requires_one_handoff_and_all_flags() {
    let subgroups = [SUBGROUP];
    let layout = layout(&subgroups);
    let shape = layout.ring(Rank(0), FIRST).expect("it sends");
    let own = lines(layout.row_bytes(Rank(0)));
    let make = |cells: usize, flags: usize, shape: RingShape| -> Result<_, OutOfRow> {
        let cells: Vec<_> = (0..cells).map(|_| HandOffCells::new()).collect();
        let ready: Vec<_> = (0..flags).map(|_| ReadyFlag::new()).collect();
        // SAFETY: nothing else uses the memory.
        let memory = unsafe { NodeMemory::new(&[], RowWriter::from_lines(&own), &cells, &ready) };
        let outbox = Outbox::new(memory, &shape)?;
        Ok(outbox.reserve(1).map(drop))
    };
    assert_eq!(make(1, 4, shape), Ok(Err(ReserveError::Full)), "no node has opened it");
    for (cells, flags) in [(0, 4), (2, 4), (1, 3), (1, 5), (1, 0)] {
        assert_eq!(make(cells, flags, shape), Err(OutOfRow), "{cells} {flags}");
    }
    let outside = RingShape { offset: shape.offset + 64, ..shape };
    assert_eq!(make(1, 4, outside), Err(OutOfRow));
}

/// A run returns the slots that it reserved, but no more.
#[test]
fn exhausted_run_returns_no_slot() {
    with_group(2, &[0], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        let mut run = outbox.reserve_run(2).expect("slots are free");
        let too_large = ReserveError::TooLarge { length: 17, limit: 16 };
        assert_eq!(run.next(17).map(drop), Err(too_large));
        for left in [1, 0] {
            run.next(1).expect("it fits").expect("one is left").commit();
            assert_eq!(run.left(), left);
        }
        assert!(run.next(1).expect("it fits").is_none());
        drop(run);
        let mut delivered = [Vec::new(), Vec::new()];
        settle(nodes, &mut delivered);
        assert_eq!(delivered[1].len(), 2);
        assert_eq!(outbox.reserve(1).map(|slot| slot.position().get()), Ok(2));
    });
}

/// NUL-5: messages reserved before a silence are sent before it; a message ends it.
#[test]
fn next_message_ends_declared_silence() {
    with_group(2, &[0, 1], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        let outbox = |rank: usize| outboxes[rank].as_ref().expect("it sends");
        let mut delivered = [Vec::new(), Vec::new()];
        let mut before = outbox(0).reserve(1).expect("a slot is free");
        before.payload()[0] = 1;
        outbox(0).declare_silence(2);
        for says in 10..13 {
            send(outbox(1), &[says]).expect("a slot is free");
        }
        settle(nodes, &mut delivered);
        assert_eq!(delivered[1], [[10], [11], [12]], "while one is being built");
        before.commit();
        settle(nodes, &mut delivered);
        assert_eq!(delivered[1][3..], [[1]], "although its sender has declared silence");
        // A silence that a message ends before it began has no effect.
        outbox(0).declare_silence(1_000);
        send(outbox(0), &[2]).expect("a slot is free");
        settle(nodes, &mut delivered);
        send(outbox(0), &[3]).expect("a slot is free");
        settle(nodes, &mut delivered);
        assert_eq!(delivered[0], delivered[1]);
        assert_eq!(delivered[1].iter().filter(|message| message[0] < 10).count(), 3);
    });
}

/// A shared-memory fabric that also returns events.
struct Eventful {
    events: RefCell<VecDeque<Event>>,
    cut: Vec<Rank>,
}

impl Eventful {
    fn new(events: &[Event]) -> Self {
        let events = RefCell::new(events.iter().copied().collect());
        Self { events, cut: Vec::new() }
    }
}

impl Carries for Eventful {
    fn limits(&self) -> Capabilities {
        OneMemory.limits()
    }
    fn cut_off(&mut self, peer: Rank) {
        self.cut.push(peer);
    }
    fn next_event(&mut self) -> Option<Event> {
        self.events.borrow_mut().pop_front()
    }
}

fabric!(Eventful);

/// A rank belongs to one view. Events that do not concern a peer change nothing.
#[test]
fn loss_in_another_view_does_not_affect_peer() {
    let lost = |view| Event::PeerLost { view, peer: Rank(1), cause: LossCause::Exited };
    let ready = Event::Ready { view: ViewId(1), peer: Rank(1) };
    with_group(2, &[0, 1], (4, 16), Delivery::Ordered, |nodes, _| {
        let others = [Event::Woken, ready, lost(ViewId(2)), Event::Completed(Token(u64::MAX))];
        let mut fabric = Eventful::new(&others);
        let mut nothing = |_: &mut Batch<'_>| {};
        let progress = nodes[0].step(Time(0), &mut fabric, &mut nothing).expect("it steps");
        assert_eq!((progress.lost, nodes[0].is_lost()), (None, false));
        assert!(fabric.events.borrow().is_empty() && fabric.cut.is_empty());
        *fabric.events.borrow_mut() = [lost(ViewId(1))].into();
        let progress = nodes[0].step(Time(0), &mut fabric, &mut nothing).expect("it steps");
        assert_eq!(progress.lost, Some((Rank(1), LossCause::Exited)));
        assert!(!progress.is_idle() && nodes[0].is_lost());
        assert_eq!(fabric.cut, [Rank(1)]);
        assert!(!nodes[0].is_alone(), "nobody has told it to go on");
    });
}

/// A fabric that refuses all posts, for one reason.
struct Refusing(ErrorKind);

impl Carries for Refusing {
    fn limits(&self) -> Capabilities {
        OneMemory.limits()
    }
    fn carry(&mut self, _: Rank, _: &[Write]) -> Result<(), ErrorKind> {
        Err(self.0)
    }
}

fabric!(Refusing);

/// A post to a full queue is retried. After any other error the peer is lost at the first post.
#[test]
fn refused_post_loses_the_peer_with_its_cause() {
    for (kind, cause) in [
        (ErrorKind::QueueFull, None),
        (ErrorKind::Revoked, Some(LossCause::Denied)),
        (ErrorKind::PeerLost, Some(LossCause::Unreachable)),
        (ErrorKind::OutOfRange, Some(LossCause::Unreachable)),
        (ErrorKind::WrongMemory, Some(LossCause::Unreachable)),
        (ErrorKind::Other, Some(LossCause::Unreachable)),
    ] {
        with_group(2, &[0], (4, 16), Delivery::Ordered, |nodes, outboxes| {
            send(outboxes[0].as_ref().expect("a sender"), &[1]).expect("a slot is free");
            let mut nothing = |_: &mut Batch<'_>| {};
            let mut fabric = Refusing(kind);
            let said = nodes[0].step(Time(0), &mut fabric, &mut nothing).expect("it steps");
            assert_eq!(said.lost, cause.map(|cause| (Rank(1), cause)), "{kind:?}");
            assert_eq!(nodes[0].is_lost(), cause.is_some());
        });
    }
}

/// COR-4: a step takes a bounded number of events; the rest wait for the next step.
#[test]
fn flood_of_events_does_not_prolong_a_step() {
    with_group(2, &[0, 1], (4, 16), Delivery::Ordered, |nodes, _| {
        let mut fabric = Eventful::new(&vec![Event::Woken; 100_000]);
        let mut nothing = |_: &mut Batch<'_>| {};
        let mut steps = 0;
        while !fabric.events.borrow().is_empty() {
            nodes[0].step(Time(0), &mut fabric, &mut nothing).expect("it steps");
            steps += 1;
        }
        assert!(steps > 10, "{steps} steps");
    });
}

/// RDM-7: a report about a sender or subgroup that does not exist changes nothing.
#[cfg(feature = "blocks")]
#[test]
fn large_message_from_unknown_sender_is_ignored() {
    use tramontane_core::ids::SenderRank;
    with_group(2, &[0], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        nodes[1].large_arrived(SubgroupId(3), SenderRank(0), 5);
        nodes[1].large_arrived(FIRST, SenderRank(1), 5);
        assert_eq!(nodes[1].large_delivered(FIRST, SenderRank(1)), 0);
        send(outboxes[0].as_ref().expect("a sender"), &[7]).expect("a slot is free");
        let mut delivered = [Vec::new(), Vec::new()];
        settle(nodes, &mut delivered);
        assert_eq!(delivered[1], [[7]]);
    });
}

/// IDL-1: a member that has sent a message is not settled until all members have delivered it.
#[test]
fn sender_is_settled_once_all_members_deliver() {
    with_group(2, &[0], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        assert!(nodes[0].is_settled() && nodes[1].is_settled());
        let mut nothing = |_: &mut Batch<'_>| {};
        let reserved = outboxes[0].as_ref().expect("a sender").reserve(1).expect("a slot is free");
        nodes[0].step(Time(0), &mut OneMemory, &mut nothing).expect("it steps");
        assert!(!nodes[0].is_settled(), "a message is being built");
        reserved.commit();
        assert!(!nodes[0].is_settled(), "it is to be sent");
        nodes[0].step(Time(0), &mut OneMemory, &mut nothing).expect("it steps");
        assert!(!nodes[0].is_settled(), "the other has not got it");
        settle(nodes, &mut [Vec::new(), Vec::new()]);
        assert!(nodes[0].is_settled() && nodes[1].is_settled());
    });
}

/// ORD-3.1, DEL-3: an unordered subgroup has no frontiers of sequence positions.
#[test]
fn unordered_subgroup_reports_no_peer_frontiers() {
    with_group(2, &[0], (4, 16), Delivery::Unordered, |nodes, outboxes| {
        send(outboxes[0].as_ref().expect("a sender"), &[7]).expect("a slot is free");
        settle(nodes, &mut [Vec::new(), Vec::new()]);
        assert_eq!(nodes[0].frontiers_of(FIRST, Rank(1)), None);
        assert_eq!(nodes[1].frontiers_of(FIRST, Rank(0)), None);
    });
}

/// HLT-2: one member of a pair continues alone, with each kind of delivery and in a subgroup
/// without senders.
#[test]
fn survivor_of_pair_continues_in_all_its_subgroups() {
    let subgroups = [
        SUBGROUP,
        Subgroup { senders: &[], ..SUBGROUP },
        Subgroup { delivery: Delivery::Unordered, ..SUBGROUP },
    ];
    with_rows(&layout(&subgroups), |nodes, outboxes, _| {
        assert!(!nodes[1].is_alone());
        let unordered = nodes[1].outbox(SubgroupId(2)).expect("it sends");
        // Each subgroup receives more messages than its window, and the partner takes none.
        for rounds in 1..=6_u8 {
            let mut delivered = 0;
            nodes[1].go_on_alone().expect("a pair");
            assert!(nodes[1].is_alone() && !nodes[1].is_lost());
            for outbox in [outboxes[1].as_ref().expect("it sends"), &unordered] {
                send(outbox, &[rounds]).expect("a slot is free");
            }
            for _ in 0..4 {
                let mut count = |batch: &mut Batch<'_>| delivered += batch.count();
                nodes[1].step(Time(0), &mut OneMemory, &mut count).expect("it steps");
            }
            assert_eq!(delivered, 2, "round {rounds}");
        }
    });
    with_group(3, &[0], (4, 16), Delivery::Ordered, |nodes, _| {
        assert_eq!(nodes[0].go_on_alone(), Err(AloneError::NotAPair));
        assert!(!nodes[0].is_alone());
    });
    with_group(1, &[0], (4, 16), Delivery::Ordered, |nodes, _| {
        assert!(nodes[0].is_alone(), "it has no partner");
    });
}
