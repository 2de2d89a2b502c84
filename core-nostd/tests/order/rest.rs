//! BAT-5: a subgroup at rest is looked at completely only if a cell has changed. A complete look
//! at every subgroup must therefore find nothing after an idle step, whatever came before.

use crate::common::{OneMemory, send, with_options, with_rows};
use proptest::prelude::*;
use tramontane_core::ids::{DurableCount, NodeId, Rank, SenderRank, SubgroupId, Time};
use tramontane_core::layout::{ControlCell, Delivery, Group, Layout, Subgroup};
use tramontane_core::multicast::{Batch, Switches};
use tramontane_core::node::{Node, Options};
use tramontane_core::smc::Reservation;

const SUBGROUPS: u16 = 6;
const LOGGED: SubgroupId = SubgroupId(2);
const LARGE: SubgroupId = SubgroupId(3);

/// One action of a member in a subgroup.
#[derive(Clone, Copy, Debug)]
enum SubgroupAction {
    Send,
    SendLarge,
    /// Reserves a slot and keeps it.
    Hold,
    /// Ends the oldest held reservation.
    Release {
        commits: bool,
    },
    BeSilent(u64),
    /// Reports the next message as durable.
    Sync,
    /// Reports the blocks of all large messages.
    Arrive,
    Step,
}

fn actions() -> impl Strategy<Value = SubgroupAction> {
    prop_oneof![
        3 => Just(SubgroupAction::Send),
        1 => Just(SubgroupAction::SendLarge),
        1 => Just(SubgroupAction::Hold),
        1 => any::<bool>().prop_map(|commits| SubgroupAction::Release { commits }),
        1 => (1_u64..9).prop_map(SubgroupAction::BeSilent),
        1 => Just(SubgroupAction::Sync),
        1 => Just(SubgroupAction::Arrive),
        8 => Just(SubgroupAction::Step),
    ]
}

/// Opens three members of six different subgroups.
fn with_members(has_checks: bool, options: Options, body: impl FnOnce(&mut [Node<'_>])) {
    let ids = [NodeId(0), NodeId(1), NodeId(2)];
    let ranks = [Rank(0), Rank(1), Rank(2)];
    let of = |members, senders, delivery| Subgroup {
        members,
        senders,
        window: 3,
        message_max: 8,
        delivery,
    };
    let subgroups = [
        of(&ranks[..], &ranks[..], Delivery::Ordered),
        of(&ranks[..], &ranks[1..2], Delivery::Ordered),
        of(&ranks[..], &ranks[..2], Delivery::Ordered),
        of(&ranks[..], &ranks[..], Delivery::Ordered),
        of(&ranks[1..], &ranks[1..], Delivery::Unordered),
        of(&ranks[..2], &ranks[..2], Delivery::Ordered),
    ];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("good");
    let layout = layout.with_logged(&[LOGGED]).expect("it is ordered");
    let layout = layout.with_large(&[LARGE]).expect("there are channels enough");
    let layout = if has_checks { layout.with_checks().expect("it fits") } else { layout };
    with_options(&layout, options, |nodes, _, _| body(nodes));
}

/// Publishes an impossible value in a cell of member 1, or in its next slot, while the subgroup is
/// at rest at member 0, which has sent a message. Member 0 must report the value in its next step.
fn shown_at_rest(delivery: Delivery, cell: Option<ControlCell>) {
    let ranks = [Rank(0), Rank(1)];
    let subgroup =
        Subgroup { members: &ranks, senders: &ranks, window: 3, message_max: 8, delivery };
    let group = Group { members: &[NodeId(0), NodeId(1)], subgroups: &[subgroup] };
    let mut layout = Layout::new(group).expect("good");
    if delivery == Delivery::Ordered {
        layout = layout.with_logged(&[SubgroupId(0)]).expect("it is ordered");
    }
    with_rows(&layout, |nodes, outboxes, rows| {
        if delivery == Delivery::Ordered {
            nodes[1].set_durable(SubgroupId(0), DurableCount(5));
        }
        send(&outboxes[0].expect("it sends"), &[1]).expect("a slot is free");
        let mut delivered = 0;
        while !step(&mut nodes[0], &mut delivered) {}
        let ring = layout.ring(Rank(1), SubgroupId(0)).expect("it sends");
        let control = layout.control_offset(Rank(1), SubgroupId(0)).expect("a member");
        let (place, value) = match cell {
            None => (ring.offset + ring.stride - 8, 1 << 40),
            Some(ControlCell::Durable) => (control + ControlCell::Durable.offset(), 4),
            Some(cell) => (control + cell.offset(), 1 << 40),
        };
        rows[1].cell(place).expect("in the row").publish(value);
        let mut upcall = |batch: &mut Batch<'_>| delivered += batch.count();
        let progress = nodes[0].step(Time(0), &mut OneMemory, &mut upcall).expect("it steps");
        assert!(progress.refused.is_some(), "{cell:?} was overlooked");
    });
}

#[test]
fn every_cell_of_a_peer_ends_the_rest() {
    let read =
        [ControlCell::Received, ControlCell::Delivered, ControlCell::Silent, ControlCell::Durable];
    for cell in read.map(Some).into_iter().chain([None]) {
        shown_at_rest(Delivery::Ordered, cell);
    }
    for cell in [Some(ControlCell::Consumed(SenderRank(0))), None] {
        shown_at_rest(Delivery::Unordered, cell);
    }
}

/// Steps a member, counts the delivered messages, and returns whether the step was idle.
fn step(node: &mut Node<'_>, delivered: &mut usize) -> bool {
    let mut upcall = |batch: &mut Batch<'_>| *delivered += batch.count();
    node.step(Time(0), &mut OneMemory, &mut upcall).expect("it steps").is_idle()
}

/// Steps a member. If the step is idle, every subgroup is looked at completely in another step.
fn step_twice(node: &mut Node<'_>, delivered: &mut usize) -> bool {
    if !step(node, delivered) {
        return false;
    }
    for subgroup in (0..SUBGROUPS).map(SubgroupId) {
        // A report that changes nothing, except that it ends the rest.
        node.large_arrived(subgroup, SenderRank(0), 0);
    }
    assert!(step(node, delivered), "work was overlooked");
    true
}

fn options() -> impl Strategy<Value = Options> {
    (any::<bool>(), any::<bool>(), 0_u8..32).prop_map(|(is_default, is_limited, bits)| Options {
        switches: if is_default { Switches::all() } else { Switches::from_bits_truncate(bits) },
        messages_max: if is_limited { 1 } else { u32::MAX },
        ..Options::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn complete_look_after_idle_step_finds_nothing(
        (has_checks, options) in (any::<bool>(), options()),
        actions in prop::collection::vec((actions(), 0_usize..3, 0..SUBGROUPS), 0..250),
    ) {
        with_members(has_checks, options, |nodes| {
            let mut held: Vec<Reservation<'_>> = Vec::new();
            let mut delivered = [0; 3];
            let mut syncs = [0; 3];
            let mut larges = [0; 3];
            for (action, member, subgroup) in actions {
                let node = &mut nodes[member];
                let outbox = node.outbox(SubgroupId(subgroup));
                match (action, outbox) {
                    (SubgroupAction::Send, Some(outbox)) => {
                        let _ = outbox.reserve(1).map(Reservation::commit);
                    }
                    (SubgroupAction::SendLarge, _) => {
                        let outbox = node.outbox(LARGE).expect("all send there");
                        if outbox.reserve(1).map(Reservation::commit_large).is_ok() {
                            larges[member] += 1;
                        }
                    }
                    (SubgroupAction::Hold, Some(outbox)) => held.extend(outbox.reserve(1)),
                    (SubgroupAction::Release { commits }, _) if !held.is_empty() => {
                        let one = held.remove(0);
                        if commits { one.commit() } else { drop(one) }
                    }
                    (SubgroupAction::BeSilent(rounds), Some(outbox)) => {
                        outbox.declare_silence(rounds);
                    }
                    (SubgroupAction::Sync, _) => {
                        syncs[member] += 1;
                        node.set_durable(LOGGED, DurableCount(syncs[member]));
                    }
                    (SubgroupAction::Arrive, _) => {
                        for (sender, count) in (0..).map(SenderRank).zip(larges) {
                            node.large_arrived(LARGE, sender, count);
                        }
                    }
                    (SubgroupAction::Step, _) => {
                        step_twice(node, &mut delivered[member]);
                    }
                    _ => {}
                }
            }
            held.clear();
            let mut turns = 0;
            loop {
                let all = nodes.iter_mut().zip(&mut delivered);
                let idle = all.fold(true, |idle, (node, delivered)| {
                    for (sender, count) in (0..).map(SenderRank).zip(larges) {
                        node.large_arrived(LARGE, sender, count);
                    }
                    step_twice(node, delivered) && idle
                });
                turns += 1;
                assert!(turns < 5_000, "the group does not come to rest");
                if idle {
                    break;
                }
            }
            for node in nodes.iter() {
                let known = node.durable(LOGGED).expect("it is logged");
                let least = syncs.iter().min().copied().expect("a member");
                assert_eq!(known.everywhere, DurableCount(least));
            }
        });
    }
}
