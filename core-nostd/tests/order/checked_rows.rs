//! Rows with checks: a value that fails its check counts as not yet written. If a later write
//! repairs it, the reader continues; otherwise the owner is reported after a given number of steps.

use crate::common::{OneMemory, send, settle, with_rows};
use tramontane_core::check::{Checks, STEPS_UNREADABLE};
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{NodeId, Rank, SenderRank, SubgroupId, Time};
use tramontane_core::layout::{
    CACHE_LINE, ControlCell, Delivery, Group, Layout, SLOT_HEADER_CHECKED, Subgroup,
};
use tramontane_core::memory::RowWriter;
use tramontane_core::multicast::{Batch, Impossible};
use tramontane_core::node::{Node, Progress};
use tramontane_core::smc::Outbox;

const ALL: SubgroupId = SubgroupId(0);
const RANKS: [Rank; 3] = [Rank(0), Rank(1), Rank(2)];
const NODES: [NodeId; 3] = [NodeId(0), NodeId(1), NodeId(2)];
const WINDOW: u32 = 4;

/// Opens three members over rows with checks, after each has sent the others one message.
fn with_three(
    delivery: Delivery,
    body: impl FnOnce(&Layout<'_>, &mut [Node<'_>], &[Option<Outbox<'_>>], &[RowWriter<'_>]),
) {
    let subgroup =
        Subgroup { members: &RANKS, senders: &RANKS, window: WINDOW, message_max: 16, delivery };
    let subgroups = [subgroup];
    let layout = Layout::new(Group { members: &NODES, subgroups: &subgroups })
        .and_then(Layout::with_checks)
        .expect("a good group");
    with_rows(&layout, |nodes, outboxes, rows| {
        for outbox in outboxes.iter().flatten() {
            send(outbox, &[1; 11]).expect("room");
        }
        let mut delivered = vec![Vec::new(); 3];
        settle(nodes, &mut delivered);
        assert!(delivered.iter().all(|one| *one == vec![vec![1; 11]; 3]));
        body(&layout, nodes, outboxes, rows);
    });
}

fn step(node: &mut Node<'_>) -> Progress {
    node.step(Time(0), &mut OneMemory, &mut |_: &mut Batch<'_>| {}).expect("it steps")
}

/// Returns the offset at which a slot of member 0 ends in its row.
fn slot_end(layout: &Layout<'_>, slot: usize) -> usize {
    let ring = layout.ring(Rank(0), ALL).expect("it sends");
    ring.offset + (slot + 1) * ring.stride
}

fn control(layout: &Layout<'_>, cell: ControlCell) -> usize {
    layout.control_offset(Rank(0), ALL).expect("a member") + cell.offset()
}

fn flip(row: &RowWriter<'_>, bit: usize) {
    let cell = row.cell((bit >> 6) * 8).expect("in the row");
    cell.publish(cell.load() ^ 1 << (bit & 63));
}

/// Lets member 0 send another message, and flips one bit before any member reads it. Returns what
/// member 1 finally refuses and after how many steps, or `None` if member 1 delivered the message.
fn refused_after(
    delivery: Delivery,
    bit: impl Fn(&Layout<'_>) -> usize,
) -> Option<(u32, (Rank, Impossible))> {
    let mut refused = None;
    with_three(delivery, |layout, nodes, outboxes, rows| {
        for outbox in outboxes.iter().take(2).flatten() {
            send(outbox, &[2; 11]).expect("room");
        }
        step(&mut nodes[0]);
        flip(&rows[0], bit(layout));
        refused = (1..60).find_map(|steps| {
            let progress = step(&mut nodes[1]);
            assert_eq!(progress.lost.is_some(), progress.refused.is_some());
            assert!(progress.delivered == 0 || delivery == Delivery::Unordered);
            let waits = progress.unreadable && progress.lost.is_none();
            assert!(!waits || !nodes[1].is_settled(), "what waits does not rest");
            progress.refused.map(|refused| (steps, refused))
        });
        if refused.is_some() {
            let progress = step(&mut nodes[1]);
            assert!(!progress.unreadable, "a lost member's cells are waited for no more");
        }
    });
    refused
}

#[test]
fn flipped_slot_bit_is_reported_within_step_limit() {
    let sent = Some((STEPS_UNREADABLE, (Rank(0), Impossible::SlotCheck)));
    let counter = Some((STEPS_UNREADABLE, (Rank(0), Impossible::CellCheck)));
    for delivery in [Delivery::Ordered, Delivery::Unordered] {
        let at = |from: fn(usize) -> usize, bit: usize| {
            refused_after(delivery, |layout| from(slot_end(layout, 1)) * 8 + bit)
        };
        for bit in 0..64 {
            assert_eq!(at(|end| end - 8, bit), counter, "counter, bit {bit}");
            assert_eq!(at(|end| end - SLOT_HEADER_CHECKED, bit), sent, "check, bit {bit}");
        }
        for bit in 0..32 {
            assert_eq!(at(|end| end - 12, bit), sent, "length, bit {bit}");
        }
        for bit in 0..11 * 8 {
            // 11 bytes and the header of 24 begin on a multiple of 8.
            assert_eq!(at(|end| end - 40, bit), sent, "payload, bit {bit}");
        }
        // A flipped bit outside the message does no harm.
        assert_eq!(at(|end| end - 48, 0), None);
    }
}

#[test]
fn flipped_control_bit_is_reported_within_step_limit() {
    let refused = Some((STEPS_UNREADABLE, (Rank(0), Impossible::CellCheck)));
    for cell in [ControlCell::Received, ControlCell::Delivered, ControlCell::Silent] {
        for bit in 0..64 {
            let said = refused_after(Delivery::Ordered, |layout| control(layout, cell) * 8 + bit);
            assert_eq!(said, refused, "{cell:?}, bit {bit}");
        }
    }
    let consumed = ControlCell::Consumed(SenderRank(1));
    for bit in 0..64 {
        let said = refused_after(Delivery::Unordered, |layout| control(layout, consumed) * 8 + bit);
        assert_eq!(said, refused, "{consumed:?}, bit {bit}");
    }
}

/// BAT-5: nothing has been sent since, and the subgroup is at rest.
#[test]
fn flipped_counter_of_empty_slot_ends_the_rest() {
    for delivery in [Delivery::Ordered, Delivery::Unordered] {
        with_three(delivery, |layout, nodes, _, rows| {
            assert!(step(&mut nodes[1]).is_idle());
            flip(&rows[0], (slot_end(layout, 1) - 8) * 8);
            for _ in 1..STEPS_UNREADABLE {
                let progress = step(&mut nodes[1]);
                assert!(progress.unreadable && progress.lost.is_none());
            }
            let refused = step(&mut nodes[1]).refused;
            assert_eq!(refused, Some((Rank(0), Impossible::CellCheck)));
        });
    }
}

#[test]
fn reposting_in_time_repairs_a_damaged_cell() {
    for cell in [ControlCell::Received, ControlCell::Delivered, ControlCell::Silent] {
        with_three(Delivery::Ordered, |layout, nodes, outboxes, rows| {
            let at = control(layout, cell) * 8 + 7;
            send(outboxes[1].as_ref().expect("a sender"), &[2; 11]).expect("room");
            flip(&rows[0], at);
            for _ in 1..STEPS_UNREADABLE {
                let progress = step(&mut nodes[1]);
                assert!(progress.lost.is_none() && progress.unreadable && !progress.is_idle());
            }
            flip(&rows[0], at);
            settle(nodes, &mut vec![Vec::new(); 3]);
            // The count of steps starts again.
            flip(&rows[0], at);
            send(outboxes[1].as_ref().expect("a sender"), &[2; 11]).expect("room");
            assert_eq!(step(&mut nodes[1]).lost, None, "{cell:?}");
        });
    }
}

/// A payload that changes between receipt and delivery is not delivered.
#[test]
fn message_changed_after_receipt_is_not_delivered() {
    with_three(Delivery::Ordered, |layout, nodes, outboxes, rows| {
        for outbox in outboxes.iter().take(2).flatten() {
            send(outbox, &[2; 11]).expect("room");
        }
        for rank in [0, 1, 2] {
            step(&mut nodes[rank]);
        }
        flip(&rows[0], (slot_end(layout, 1) - 40) * 8 + 3);
        let progress = step(&mut nodes[1]);
        assert_eq!(progress.refused, Some((Rank(0), Impossible::SlotCheck)));
        assert_eq!(progress.lost, Some((Rank(0), LossCause::Misbehaved)));
        assert_eq!(progress.delivered, 0);
    });
}

/// In an unordered subgroup each message is delivered in the step that receives it. Here the second
/// of two messages in a batch changes while the application reads the first.
#[test]
fn message_changed_during_the_upcall_is_not_delivered() {
    with_three(Delivery::Unordered, |layout, nodes, outboxes, rows| {
        for _ in 0..2 {
            send(outboxes[0].as_ref().expect("a sender"), &[2; 11]).expect("room");
        }
        step(&mut nodes[0]);
        let mut delivered = 0;
        let mut change = |batch: &mut Batch<'_>| {
            delivered += usize::from(batch.next().is_some());
            flip(&rows[0], (slot_end(layout, 2) - 40) * 8 + 3);
            delivered += batch.count();
        };
        let progress = nodes[1].step(Time(0), &mut OneMemory, &mut change).expect("it steps");
        assert_eq!(progress.refused, Some((Rank(0), Impossible::SlotCheck)));
        assert_eq!(progress.lost, Some((Rank(0), LossCause::Misbehaved)));
        assert_eq!(delivered, 1);
    });
}

#[test]
fn enabling_checks_changes_digest_and_slot_sizes() {
    let subgroups = [Subgroup {
        members: &RANKS,
        senders: &RANKS,
        window: WINDOW,
        message_max: 40,
        delivery: Delivery::Ordered,
    }];
    let plain = Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("good");
    let checked = plain.with_checks().expect("good");
    assert_eq!((plain.checks(), checked.checks()), (Checks::Off, Checks::On));
    assert_ne!(plain.digest(), checked.digest());
    let stride = |layout: Layout<'_>| layout.ring(Rank(0), ALL).expect("it sends").stride;
    assert_eq!((stride(plain), stride(checked)), (64, 64));
    assert!(stride(checked).is_multiple_of(16) && CACHE_LINE == 64);
}

/// A count that is too high claims that more messages are durable than really are. Without checks,
/// only a count that shrinks is reported.
#[cfg(feature = "durable")]
#[test]
fn flipped_durable_count_bit_is_reported_within_limit() {
    let subgroups = [Subgroup {
        members: &RANKS,
        senders: &RANKS,
        window: WINDOW,
        message_max: 16,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &NODES, subgroups: &subgroups })
        .and_then(|layout| layout.with_logged(&[ALL]))
        .and_then(Layout::with_checks)
        .expect("a good group");
    for bit in 0..64 {
        with_rows(&layout, |nodes, _, rows| {
            nodes[0].set_durable(ALL, tramontane_core::ids::DurableCount(3));
            step(&mut nodes[1]);
            flip(&rows[0], control(&layout, ControlCell::Durable) * 8 + bit);
            let refused = (1..60).find_map(|steps| Some((steps, step(&mut nodes[1]).refused?)));
            let expected = Some((STEPS_UNREADABLE, (Rank(0), Impossible::CellCheck)));
            assert_eq!(refused, expected, "bit {bit}");
        });
    }
}
