//! Nodes that share one memory, stepped in turn: the smallest group there is.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::integer_division,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic
)]

use tramontane_core::fabric::{Capabilities, ErrorKind, Event, Fabric, Promises, Token, ViewMemory, Write};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::{Batch, Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::{Loan, Node, Options, State};
use tramontane_core::smc::{HandOffCells, Outbox, ReadyFlag, ReserveError};

/// A fabric with nothing to do: the peers' rows are the rows.
struct OneMemory;

impl Fabric for OneMemory {
    type Error = ErrorKind;
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: Promises::all(),
            writes_max: 16,
            write_bytes_max: usize::MAX,
            guard_bytes_max: 64,
        }
    }
    fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        Ok(())
    }
    fn ready(&self, _: ViewId, _: Rank) -> bool {
        true
    }
    fn cut(&mut self, _: ViewId, _: Rank) {}
    fn retire(&mut self, _: ViewId) -> bool {
        true
    }
    fn post(&mut self, _: ViewId, _: Rank, _: &[Write], _: Option<Token>) -> Result<(), ErrorKind> {
        Ok(())
    }
    fn poll(&mut self) -> Option<Event> {
        None
    }
    fn wake(&mut self, _: ViewId, _: Rank) {}
    fn arm(&mut self) -> bool {
        true
    }
    fn disarm(&mut self) {}
    fn observe_barrier(&self) {}
}

/// What one member needs beside the rows.
struct Private {
    cells: Vec<HandOffCells>,
    ready: Vec<ReadyFlag>,
    subgroups: Vec<SubgroupState>,
    senders: Vec<SenderState>,
    members: Vec<MemberState>,
    links: Vec<Link>,
}

/// Opens every member of a group with one subgroup, and runs `body` on nodes and outboxes.
fn with_group(
    members: u16,
    senders: &[u16],
    window: u32,
    delivery: Delivery,
    body: impl FnOnce(&mut [Node<'_>], &[Option<Outbox<'_>>]),
) {
    let ids: Vec<NodeId> = (0..members).map(|id| NodeId(u32::from(id))).collect();
    let ranks: Vec<Rank> = (0..members).map(Rank).collect();
    let senders: Vec<Rank> = senders.iter().copied().map(Rank).collect();
    let subgroups = [Subgroup { members: &ranks, senders: &senders, window, message_max: 16, delivery }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a good group");
    let memory: Vec<Vec<Line>> =
        ranks.iter().map(|rank| (0..layout.row_bytes(*rank) / 64).map(|_| Line::new()).collect()).collect();
    let rows: Vec<Row<'_>> = memory.iter().map(|lines| Row::from_lines(lines)).collect();
    let mut private: Vec<Private> = ranks
        .iter()
        .map(|rank| {
            let sizes = layout.state_sizes(*rank);
            Private {
                cells: (0..sizes.handoffs).map(|_| HandOffCells::new()).collect(),
                ready: (0..sizes.ready).map(|_| ReadyFlag::new()).collect(),
                subgroups: vec![SubgroupState::VACANT; sizes.subgroups],
                senders: vec![SenderState::VACANT; sizes.senders],
                members: vec![MemberState::VACANT; sizes.members],
                links: vec![Link::VACANT; sizes.links],
            }
        })
        .collect();
    let mut nodes: Vec<Node<'_>> = Vec::new();
    for (rank, private) in ranks.iter().zip(&mut private) {
        let Private { cells, ready, subgroups, senders, members, links } = private;
        let loan = Loan {
            rows: &rows,
            row: RowWriter::from_lines(&memory[rank.index()]),
            cells,
            ready,
            state: State { subgroups, senders, members, links },
        };
        let capabilities = OneMemory.capabilities();
        let node = Node::open(ViewId(1), &layout, *rank, loan, Options::default(), capabilities);
        nodes.push(node.expect("it opens"));
    }
    let outboxes: Vec<_> = nodes.iter().map(|node| node.outbox(SubgroupId(0))).collect();
    body(&mut nodes, &outboxes);
}

fn send(outbox: &Outbox<'_>, payload: &[u8]) -> Result<(), ReserveError> {
    let mut reservation = outbox.reserve(payload.len())?;
    reservation.payload().copy_from_slice(payload);
    reservation.commit();
    Ok(())
}

/// Steps every node in turn, until a whole turn does nothing; returns what each delivered.
fn settle(nodes: &mut [Node<'_>], delivered: &mut [Vec<Vec<u8>>]) {
    for _ in 0..10_000 {
        let mut idle = true;
        for (node, delivered) in nodes.iter_mut().zip(delivered.iter_mut()) {
            let progress = node
                .step(Time(0), &mut OneMemory, &mut |batch: &mut Batch<'_>| {
                    delivered.extend(batch.map(|message| message.payload.to_vec()));
                })
                .expect("it steps");
            idle &= progress.is_idle();
        }
        if idle {
            return;
        }
    }
    panic!("the group does not come to rest");
}

#[test]
fn all_members_deliver_all_messages_in_one_order() {
    with_group(3, &[0, 1, 2], 4, Delivery::Ordered, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        for round in 0..20_u8 {
            for (sender, outbox) in outboxes.iter().flatten().enumerate() {
                send(outbox, &[sender as u8, round]).expect("a slot is free");
            }
            settle(nodes, &mut delivered);
        }
        assert_eq!(delivered[0].len(), 60);
        assert_eq!(delivered[0], delivered[1]);
        assert_eq!(delivered[0], delivered[2]);
        assert!(nodes.iter().all(Node::is_settled));
    });
}

#[test]
fn one_sender_runs_alone_while_the_others_send_nulls_that_nobody_sees() {
    with_group(3, &[0, 1, 2], 4, Delivery::Ordered, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        for round in 0..50_u8 {
            send(outboxes[2].as_ref().expect("a sender"), &[round]).expect("a slot is free");
            settle(nodes, &mut delivered);
        }
        let expected: Vec<Vec<u8>> = (0..50).map(|round| vec![round]).collect();
        assert_eq!(delivered, vec![expected; 3]);
    });
}

#[test]
fn a_full_ring_refuses_and_frees_when_all_have_delivered() {
    with_group(2, &[0], 3, Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        for _ in 0..3 {
            send(outbox, &[]).expect("a slot is free");
        }
        assert_eq!(send(outbox, &[]), Err(ReserveError::Full));
        let mut delivered = vec![Vec::new(); 2];
        settle(nodes, &mut delivered);
        assert_eq!(delivered, vec![vec![Vec::<u8>::new(); 3]; 2], "empty messages are messages");
        send(outbox, &[1; 16]).expect("slots are free again");
        assert_eq!(send(outbox, &[1; 17]), Err(ReserveError::TooLarge { length: 17, limit: 16 }));
    });
}

#[test]
fn a_dropped_reservation_holds_its_place_and_is_not_delivered() {
    with_group(2, &[0, 1], 4, Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        let mut delivered = vec![Vec::new(); 2];
        for round in 0..10_u8 {
            let dropped = outbox.reserve(4).expect("a slot is free");
            send(outbox, &[round]).expect("a slot is free");
            settle(nodes, &mut delivered);
            assert_eq!(delivered[1].len(), usize::from(round), "held back by the reservation");
            drop(dropped);
            settle(nodes, &mut delivered);
        }
        let expected: Vec<Vec<u8>> = (0..10).map(|round| vec![round]).collect();
        assert_eq!(delivered, vec![expected; 2]);
    });
}

#[test]
fn unordered_delivery_does_not_wait_for_silent_senders() {
    with_group(3, &[0, 1], 3, Delivery::Unordered, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        for round in 0..30_u8 {
            send(outboxes[1].as_ref().expect("a sender"), &[round]).expect("a slot is free");
            settle(nodes, &mut delivered);
        }
        let expected: Vec<Vec<u8>> = (0..30).map(|round| vec![round]).collect();
        assert_eq!(delivered, vec![expected; 3]);
    });
}

#[test]
fn declared_silence_lets_the_others_run_and_ends_with_the_next_message() {
    with_group(3, &[0, 1, 2], 4, Delivery::Ordered, |nodes, outboxes| {
        let (talker, silent) = (outboxes[1].as_ref().expect("a sender"), outboxes[0].as_ref().expect("one"));
        let mut delivered = vec![Vec::new(); 3];
        silent.declare_silence(1_000);
        for round in 0..40_u8 {
            send(talker, &[round]).expect("a slot is free");
            settle(nodes, &mut delivered);
        }
        send(silent, b"back").expect("a slot is free");
        send(talker, b"on").expect("a slot is free");
        settle(nodes, &mut delivered);
        assert_eq!(delivered[0].len(), 42);
        assert_eq!(delivered[0], delivered[1]);
        assert_eq!(delivered[0], delivered[2]);
    });
}
