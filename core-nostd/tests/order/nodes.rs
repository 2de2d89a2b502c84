//! The conditions for opening a node, queries about its progress, and the turn that lets one thread
//! step it.

use crate::common::{Carries, OneMemory, Private, send, settle, with_group};
use tramontane_core::fabric::{Capabilities, Promises};
use tramontane_core::ids::{Frontier, NodeId, Position, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Frontiers, OpenError, Options};
use tramontane_core::turn::Turn;

const FIRST: SubgroupId = SubgroupId(0);

fn frontiers(received: u64, delivered: u64) -> Frontiers {
    Frontiers { received: Frontier(received), delivered: Frontier(delivered) }
}

/// ORD-3.1.
#[test]
fn node_reports_local_and_peer_frontiers() {
    with_group(2, &[0], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        for message in 0..3_u8 {
            send(outboxes[0].as_ref().expect("a sender"), &[message]).expect("a slot is free");
        }
        let mut nothing = |_: &mut Batch<'_>| {};
        nodes[0].step(Time(0), &mut OneMemory, &mut nothing).expect("it steps");
        assert_eq!(nodes[0].frontiers(FIRST), Some(frontiers(3, 0)), "the peer has nothing yet");
        assert_eq!(nodes[0].frontiers_of(FIRST, Rank(1)), Some(frontiers(0, 0)));
        assert_eq!(nodes[0].own_delivered(FIRST), Some(Position(0)));
        nodes[1].step(Time(0), &mut OneMemory, &mut nothing).expect("it steps");
        assert_eq!(nodes[1].frontiers_of(FIRST, Rank(0)), Some(frontiers(3, 0)));
        settle(nodes, &mut [Vec::new(), Vec::new()]);
        for (node, rank) in nodes.iter().zip([Rank(0), Rank(1)]) {
            assert_eq!(node.rank(), rank);
            assert_eq!(node.view(), ViewId(1));
            assert_eq!(node.frontiers(FIRST), Some(frontiers(3, 3)));
            for peer in [Rank(0), Rank(1)] {
                assert_eq!(node.frontiers_of(FIRST, peer), Some(frontiers(3, 3)));
            }
            assert_eq!(node.frontiers_of(FIRST, Rank(2)), None, "no member");
            assert_eq!(node.frontiers(SubgroupId(1)), None, "no subgroup");
            assert!(!node.is_lost());
        }
        assert_eq!(nodes[0].own_delivered(FIRST), Some(Position(3)));
        assert_eq!(nodes[1].own_delivered(FIRST), None, "it sends nothing there");
    });
}

/// SMC-3.3.
#[test]
fn shortened_message_is_delivered_at_its_final_length() {
    with_group(2, &[0], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        let mut message = outbox.reserve(8).expect("a slot is free");
        assert_eq!(message.position(), Position(0));
        assert_eq!(message.payload().len(), 8);
        message.payload().copy_from_slice(b"shortest");
        message.truncate(5);
        message.truncate(7);
        message.truncate(usize::MAX);
        assert_eq!(message.payload(), b"short");
        message.commit();
        assert_eq!(outbox.reserve(0).expect("a slot is free").position(), Position(1));
        let mut delivered = [Vec::new(), Vec::new()];
        settle(nodes, &mut delivered);
        assert_eq!(delivered, [[b"short"], [b"short"]]);
    });
}

/// Opens a node of a two-member group on memory of its own, and returns the result.
fn opened(
    of_layout: &Layout<'_>,
    lent_for: &Layout<'_>,
    rank: Rank,
    rows: usize,
    capabilities: Capabilities,
) -> Result<(), OpenError> {
    let lines: Vec<Vec<Line>> = (0..rows)
        .map(|_| (0..of_layout.row_bytes(Rank(0)) / 64).map(|_| Line::new()).collect())
        .collect();
    let memory: Vec<Row<'_>> = lines.iter().map(|lines| Row::from_lines(lines)).collect();
    let row = RowWriter::from_lines(&lines[0]);
    Private::new(lent_for, Rank(0))
        .try_open(of_layout, rank, &memory, row, capabilities, Options::default())
        .map(|_| ())
}

/// COR-2.1.
#[test]
fn node_refuses_unsuitable_memory_or_fabric_promises() {
    let ranks = [Rank(0), Rank(1)];
    let subgroup = Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 4,
        message_max: 16,
        delivery: Delivery::Ordered,
    };
    let nodes = [NodeId(0), NodeId(1)];
    let subgroups = [subgroup];
    let layout = Layout::new(Group { members: &nodes, subgroups: &subgroups }).expect("good");
    let larger = [Subgroup { window: 5, ..subgroup }];
    let larger = Layout::new(Group { members: &nodes, subgroups: &larger }).expect("good");
    let good = OneMemory.limits();
    let open = |rank, rows, capabilities| opened(&layout, &layout, rank, rows, capabilities);
    assert_eq!(open(Rank(0), 2, good), Ok(()));
    assert_eq!(open(Rank(2), 2, good), Err(OpenError::NotAMember));
    assert_eq!(open(Rank(0), 1, good), Err(OpenError::WrongRows));
    assert_eq!(opened(&layout, &larger, Rank(0), 2, good), Err(OpenError::WrongState));
    let of = |promises| open(Rank(0), 2, Capabilities { promises, ..good });
    assert_eq!(of(Promises::empty()), Err(OpenError::NoGuard));
    assert_eq!(of(Promises::ADDRESS_ORDER), Err(OpenError::NoGuard), "a guard is a write apart");
    assert_eq!(of(Promises::WRITE_ORDER), Ok(()));
    for small in [
        Capabilities { writes_max: 3, ..good },
        Capabilities { write_bytes_max: 16, ..good },
        Capabilities { guard_bytes_max: 16, ..good },
    ] {
        assert_eq!(open(Rank(0), 2, small), Err(OpenError::FabricTooSmall), "{small:?}");
    }
    // A write size that just fits a slot, or all guards, is enough.
    let slot = layout.ring(Rank(0), SubgroupId(0)).expect("it sends").stride;
    let least =
        Capabilities { writes_max: 4, write_bytes_max: slot.max(24), guard_bytes_max: 24, ..good };
    assert_eq!(open(Rank(0), 2, least), Ok(()));
    let less = Capabilities { write_bytes_max: least.write_bytes_max - 1, ..least };
    assert_eq!(open(Rank(0), 2, less), Err(OpenError::FabricTooSmall));
}

/// COR-3.1.
#[test]
fn turn_admits_one_thread_and_never_blocks() {
    let turn = Turn::new(0_u32);
    let held = turn.take().expect("nobody has it");
    assert!(turn.take().is_none());
    std::thread::scope(|threads| {
        let other = threads.spawn(|| turn.take().is_none());
        assert!(other.join().expect("it does not panic"), "and this thread still holds it");
    });
    drop(held);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let mut done = 0;
                while done < 1_000 {
                    let Some(mut count) = turn.take() else { continue };
                    let before = *count;
                    std::hint::black_box(&before);
                    *count = before + 1;
                    done += 1;
                }
            });
        }
    });
    assert_eq!(turn.into_inner(), 4_000);
}
