//! Members that pass on the messages of their subgroup's only sender (REL-1): the trees, and a
//! group in which each member has its own copies of the rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Carries, OneMemory, Private, fabric, send, with_layout};
use proptest::prelude::*;
use tramontane_core::fabric::{Capabilities, ErrorKind, Promises, Region, ViewPlan, Write};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, LayoutError, Stripes, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Node, OpenError, Options};

const ALL: SubgroupId = SubgroupId(0);
const STRIPES: [u32; 2] = [0, 1];

/// Runs `body` with the layout of a subgroup of all members, one of which sends.
fn with_relays<T>(
    members: u16,
    sender: u16,
    (window, message_max): (u32, u32),
    body: impl FnOnce(&Layout<'_>) -> T,
) -> T {
    let ids: Vec<NodeId> = (0..members).map(|id| NodeId(u32::from(id))).collect();
    let ranks: Vec<Rank> = (0..members).map(Rank).collect();
    let (senders, delivery) = ([Rank(sender)], Delivery::Ordered);
    let subgroups =
        [Subgroup { members: &ranks, senders: &senders, window, message_max, delivery }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("good");
    body(&layout.with_relays(&[ALL]).expect("one sender"))
}

/// Returns the number of links from the sender to each member in the tree of a stripe.
fn depths(layout: &Layout<'_>, sender: Rank, stripe: u32) -> BTreeMap<Rank, u32> {
    let ranks = || (0..).map(Rank).take(layout.members());
    let mut depths = BTreeMap::from([(sender, 0)]);
    let mut last = vec![sender];
    while !last.is_empty() {
        let mut next = Vec::new();
        for from in last {
            for to in ranks().filter(|to| layout.stripes(ALL, from, *to).contains(stripe)) {
                let before = depths.insert(to, depths[&from] + 1);
                assert_eq!(before, None, "{to} has two parents, or is on a circle");
                next.push(to);
            }
        }
        last = next;
    }
    depths
}

/// Requirement: REL-1.1.
#[test]
fn trees_reach_every_member_and_load_none_twice() {
    for members in 2..=130_u16 {
        let sender = members / 3;
        with_relays(members, sender, (16, 100), |layout| {
            let height_max = u32::from(members).ilog2() + 1;
            for stripe in STRIPES {
                let depths = depths(layout, Rank(sender), stripe);
                assert_eq!(depths.len(), usize::from(members));
                assert!(depths.values().all(|depth| *depth <= height_max), "{members}: {depths:?}");
            }
            for from in (0..members).map(Rank) {
                let halves = |to: u16| {
                    let stripes = layout.stripes(ALL, from, Rank(to));
                    STRIPES.iter().filter(|stripe| stripes.contains(**stripe)).count()
                };
                let sent: usize = (0..members).map(halves).sum();
                assert!(sent <= 2, "{from} of {members} sends {sent} halves");
            }
        });
    }
}

/// Requirement: REL-1.1. A member that passes on a window posts as many writes as the sender.
#[test]
fn step_bounds_count_slots_that_are_passed_on() {
    with_relays(4, 0, (6, 20), |layout| {
        let [sender, relay] = [0, 1].map(|rank| layout.step_bounds(Rank(rank), u32::MAX));
        assert_eq!((relay.writes, relay.posted_bytes), (sender.writes, sender.posted_bytes));
        assert_eq!((relay.received, relay.delivered), (6, 6));
    });
}

/// Requirement: REL-1.1.
#[test]
fn relays_need_one_sender_and_an_order() {
    let ids = [1, 2, 3].map(NodeId);
    let ranks = [0, 1, 2].map(Rank);
    let of = |senders, delivery| Subgroup {
        members: &ranks,
        senders,
        window: 4,
        message_max: 16,
        delivery,
    };
    let subgroups = [
        of(&ranks[..1], Delivery::Ordered),
        of(&ranks[..2], Delivery::Ordered),
        of(&ranks[..0], Delivery::Ordered),
        of(&ranks[..1], Delivery::Unordered),
        Subgroup { members: &ranks[..2], ..of(&ranks[1..2], Delivery::Ordered) },
    ];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("good");
    for wrong in [&[1][..], &[2], &[3], &[5], &[0, 0], &[4, 0, 4]] {
        let relayed: Vec<SubgroupId> = wrong.iter().copied().map(SubgroupId).collect();
        assert_eq!(layout.with_relays(&relayed).err(), Some(LayoutError::BadRelayedSubgroup));
    }
    let relayed = layout.with_relays(&[ALL]).expect("one sender");
    assert!(relayed.is_relayed(ALL) && !relayed.is_relayed(SubgroupId(1)));
    assert_ne!(relayed.digest(), layout.digest());
    assert_eq!(layout.with_relays(&[]).expect("none").digest(), layout.digest());
    assert_eq!(relayed.row_bytes(Rank(0)), layout.row_bytes(Rank(0)));
    let both = layout.with_relays(&[ALL, SubgroupId(4)]).expect("two, with one sender each");
    assert_eq!(both.stripes(SubgroupId(4), Rank(1), Rank(0)), Stripes::BOTH);
    assert_eq!(both.stripes(SubgroupId(4), Rank(1), Rank(2)), Stripes::NONE, "no member");
    assert_eq!(both.stripes(SubgroupId(5), Rank(0), Rank(1)), Stripes::NONE, "no subgroup");
    assert_eq!(layout.stripes(ALL, Rank(0), Rank(1)), Stripes::BOTH);
    assert_eq!(layout.stripes(ALL, Rank(1), Rank(2)), Stripes::NONE);
    assert_eq!(layout.relayed_to(Rank(2)).count(), 0);
}

/// Requirement: REL-1.1.
#[test]
fn only_parents_write_copies_of_the_ring() {
    with_relays(4, 0, (4, 16), |layout| {
        let ring = layout.ring(Rank(0), ALL).expect("it sends");
        let bytes = ring.stride * 4;
        // Rank 3 is a leaf of the first tree below rank 1, and of the second below rank 2.
        let rings: Vec<_> = layout.relayed_to(Rank(3)).collect();
        let may = |from, owner, offset, length| {
            rings.iter().any(|ring| ring.contains(Rank(from), Rank(owner), offset, length))
        };
        assert!(may(1, 0, ring.offset, bytes) && may(2, 0, ring.offset, bytes));
        assert!(!may(0, 0, ring.offset, 8), "the sender is no parent of rank 3");
        assert!(!may(1, 2, ring.offset, 8) && !may(3, 0, ring.offset, 8));
        assert!(!may(1, 0, ring.offset - 8, 8) && !may(1, 0, ring.offset, bytes + 1));
        assert!(!may(1, 0, ring.offset, usize::MAX));
    });
}

/// Requirement: REL-1.1.
#[test]
fn plan_of_a_view_names_all_relayed_rings() {
    with_relays(4, 0, (4, 16), |layout| {
        let plan = ViewPlan::of_layout(ViewId(1), Rank(1), layout);
        let all: Vec<_> = (0..4).flat_map(|to| layout.relayed_to(Rank(to))).collect();
        assert!(!all.is_empty() && plan.relayed().eq(all));
    });
    let sizes = ViewPlan::with_sizes(ViewId(1), Rank(0), &[NodeId(0)], &[64], 1);
    assert_eq!(sizes.relayed().count(), 0);
}

/// Requirement: REL-1.2. Also with slots that are longer than a segment should be.
#[test]
fn relaying_node_needs_fabric_that_carries_copies() {
    [(4, 16), (64, 40_000)].into_iter().for_each(relaying_node_needs_copies);
}

fn relaying_node_needs_copies(ring: (u32, u32)) {
    with_relays(3, 0, ring, |layout| {
        let lines: Vec<Vec<Line>> = (0..3)
            .map(|rank| (0..layout.row_bytes(Rank(rank)) / 64).map(|_| Line::new()).collect())
            .collect();
        let rows: Vec<Row<'_>> = lines.iter().map(|lines| Row::from_lines(lines)).collect();
        let row = RowWriter::from_lines(&lines[1]);
        let open = |promises| {
            let capabilities = Capabilities { promises, ..OneMemory.limits() };
            let mut private = Private::new(layout, Rank(1));
            let options = Options::default();
            private.try_open(layout, Rank(1), &rows, row, capabilities, options).err()
        };
        assert_eq!(open(Promises::WRITE_ORDER), Some(OpenError::NoRelays));
        let completion = Promises::RELAYS | Promises::COMPLETION_VISIBLE;
        assert_eq!(open(completion), Some(OpenError::NoRelays));
        assert_eq!(open(Promises::RELAYS | Promises::WRITE_ORDER), None);
    });
}

/// A member's fabric, which stores each write at once in the peer's copy of the row.
struct Copies<'r> {
    own: usize,
    /// The copies of each owner's row, by holder.
    copies: &'r [Vec<RowWriter<'r>>],
    promises: Promises,
    sender: usize,
    /// A member to which the sender's connection is busy all the time.
    unreached: Option<Rank>,
    /// The offset in the sender's row of a length that arrives as an impossible one.
    damaged: Option<usize>,
    /// The offset of the ring in the sender's row.
    ring: usize,
    /// The bytes of the ring that this member has posted, and the holders and slots that it wrote.
    bytes: usize,
    written: BTreeSet<(Rank, usize)>,
    stride: usize,
}

impl Carries for Copies<'_> {
    fn limits(&self) -> Capabilities {
        Capabilities { promises: self.promises, ..OneMemory.limits() }
    }

    fn carry(&mut self, to: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        if self.own == self.sender && self.unreached == Some(to) {
            return Err(ErrorKind::QueueFull);
        }
        for write in writes {
            assert_eq!(write.source, write.target);
            let (region, offset) = (write.target.region, write.target.offset);
            let owner = region.owner().map_or(self.own, Rank::index);
            assert!(region == Region::ROW || (owner != self.own && owner != to.index()));
            let mut bytes = vec![0; write.length];
            let from = self.copies[owner][self.own].reader();
            from.read(offset, &mut bytes).expect("in the row");
            if let Some(damaged) = self.damaged.filter(|at| owner == self.sender && *at >= offset)
                && let Some(length) = bytes.get_mut(damaged - offset..damaged - offset + 4)
            {
                length.fill(0x7f);
            }
            self.copies[owner][to.index()].apply(offset, &bytes).expect("in the row");
            if owner == self.sender && offset >= self.ring {
                self.bytes += write.length;
                let slots = (offset - self.ring) / self.stride
                    ..(offset + write.length - self.ring).div_ceil(self.stride);
                self.written.extend(slots.map(|slot| (to, slot)));
            }
        }
        Ok(())
    }
}

fabric!(Copies<'_>);

/// The members that wrote each slot of a holder's copy of the ring.
type WriterOf = BTreeMap<(Rank, usize), usize>;

/// Sends messages in a group in which only some members step at a time, after a number of steps
/// without messages. The length of one slot may arrive as an impossible one. Returns each member's
/// deliveries, and who wrote each slot.
fn run(
    layout: &Layout<'_>,
    (promises, unreached, damaged_slot): (Promises, Option<Rank>, Option<usize>),
    (idle_steps, messages): (usize, usize),
    steps: impl Iterator<Item = u16>,
) -> (Vec<Vec<Vec<u8>>>, WriterOf) {
    let members = layout.members();
    let sender = layout.subgroup(ALL).expect("it is there").senders[0];
    let shape = layout.ring(sender, ALL).expect("it sends");
    let lines: Vec<Vec<Vec<Line>>> = (0..members)
        .map(|owner| {
            let bytes = layout.row_bytes(Rank(owner as u16));
            (0..members).map(|_| (0..bytes / 64).map(|_| Line::new()).collect()).collect()
        })
        .collect();
    let writers: Vec<Vec<RowWriter<'_>>> = lines
        .iter()
        .map(|copies| copies.iter().map(|lines| RowWriter::from_lines(lines)).collect())
        .collect();
    let rows: Vec<Vec<Row<'_>>> = (0..members)
        .map(|holder| lines.iter().map(|copies| Row::from_lines(&copies[holder])).collect())
        .collect();
    let mut fabrics: Vec<Copies<'_>> = (0..members)
        .map(|own| Copies {
            own,
            copies: &writers,
            promises,
            sender: sender.index(),
            unreached,
            // The counter takes the last eight bytes of a slot.
            damaged: damaged_slot.map(|slot| shape.offset + (slot + 1) * shape.stride - 12),
            ring: shape.offset,
            bytes: 0,
            written: BTreeSet::new(),
            stride: shape.stride,
        })
        .collect();
    let mut private: Vec<Private> =
        (0..members).map(|rank| Private::new(layout, Rank(rank as u16))).collect();
    let mut nodes: Vec<Node<'_>> = private
        .iter_mut()
        .enumerate()
        .map(|(own, private)| {
            let row = writers[own][own];
            private.open(layout, Rank(own as u16), &rows[own], row, fabrics[own].limits())
        })
        .collect();
    let outbox = nodes[sender.index()].outbox(ALL).expect("it sends");
    let mut delivered = vec![Vec::new(); members];
    let mut sent = 0;
    for (step, member) in steps.enumerate() {
        while step >= idle_steps
            && sent < messages
            && send(&outbox, &[sent as u8; 24][..1 + sent % 24]).is_ok()
        {
            sent += 1;
        }
        let member = usize::from(member) % members;
        let taken = &mut delivered[member];
        nodes[member]
            .step(Time(0), &mut fabrics[member], &mut |batch: &mut Batch<'_>| {
                taken.extend(batch.map(|message| message.payload.to_vec()));
            })
            .expect("it steps");
        if delivered.iter().all(|delivered| delivered.len() == messages) {
            break;
        }
    }
    let mut writer_of = WriterOf::new();
    for fabric in &fabrics {
        assert!(fabric.bytes <= messages * shape.stride + 4096, "{} bytes", fabric.bytes);
        for place in &fabric.written {
            let before = writer_of.insert(*place, fabric.own);
            assert_eq!(before, None, "{place:?} is written by two members");
        }
    }
    (delivered, writer_of)
}

/// A member passes on a slot even if an earlier one, which comes from another member, has not
/// arrived, and nothing from the sender has.
///
/// Requirement: REL-1.2.
#[test]
fn later_slot_is_passed_on_before_earlier_one() {
    let promises = Promises::RELAYS | Promises::WRITE_ORDER;
    let (delivered, writer_of) = with_relays(8, 0, (2, 16), |layout| {
        // The second slot goes from rank 2 to 4, and from there to 1. Nobody passes on the first.
        // Rank 4 does not hear from the sender either, so only that slot ends its rest.
        let steps = (0..8).cycle().take(80).chain([0, 4, 4, 4, 2, 4]);
        run(layout, (promises, Some(Rank(4)), None), (80, 2), steps)
    });
    assert!(delivered[4].is_empty());
    assert_eq!((writer_of.get(&(Rank(4), 1)), writer_of.get(&(Rank(1), 1))), (Some(&2), Some(&4)));
}

/// A slot that no correct sender writes is not passed on, nor is anything after it in the same half
/// of the ring. The segments have two slots.
///
/// Requirement: REL-1.2.
#[test]
fn impossible_slot_is_not_passed_on() {
    let promises = Promises::RELAYS | Promises::WRITE_ORDER;
    with_relays(4, 0, (16, 24), |layout| {
        let damaged = |slot| {
            let steps = (0..4).cycle().take(400);
            run(layout, (promises, None, slot), (0, 8), steps)
        };
        let passed_on = |(_, writer_of): &(_, WriterOf)| -> Vec<usize> {
            let mut slots: Vec<usize> = writer_of
                .iter()
                .filter(|(_, from)| **from != 0)
                .map(|((_, slot), _)| *slot)
                .collect();
            slots.sort_unstable();
            slots.dedup();
            slots
        };
        let (intact, damaged) = (damaged(None), damaged(Some(3)));
        assert_eq!(passed_on(&intact), Vec::from_iter(0..8));
        assert_eq!(passed_on(&damaged), [0, 1, 2, 4, 5]);
        for delivered in &damaged.0[1..] {
            assert_eq!(delivered[..], intact.0[0][..delivered.len()]);
            assert!(delivered.len() <= 3, "{delivered:?}");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Requirement: REL-1.2.
    #[test]
    fn every_member_delivers_relayed_messages_in_order(
        (members, sender) in (2_u16..9, 0_u16..9),
        window in 1_u32..40,
        messages in 1_usize..120,
        in_pairs in any::<bool>(),
        order in prop::collection::vec(any::<u16>(), 1..60),
    ) {
        let promises = Promises::RELAYS | Promises::WRITE_ORDER;
        let promises =
            if in_pairs { promises } else { promises | Promises::ADDRESS_ORDER };
        let (delivered, _) = with_relays(members, sender % members, (window, 24), |layout| {
            let turns = (0..members).cycle().take(20_000);
            run(layout, (promises, None, None), (0, messages), order.into_iter().chain(turns))
        });
        let sent: Vec<Vec<u8>> =
            (0..messages).map(|sent| vec![sent as u8; 1 + sent % 24]).collect();
        for (member, delivered) in delivered.iter().enumerate() {
            prop_assert_eq!(delivered, &sent, "member {}", member);
        }
    }
}

/// Requirement: REL-1.2.
#[test]
fn relays_in_one_memory_change_no_delivery() {
    with_relays(4, 1, (4, 16), |layout| {
        with_layout(layout, |nodes, outboxes| {
            let outbox = outboxes[1].as_ref().expect("it sends");
            let mut delivered = vec![Vec::new(); 4];
            for round in 0..10 {
                send(outbox, &[round]).expect("a free slot");
                crate::common::settle(nodes, &mut delivered);
            }
            let sent: Vec<Vec<u8>> = (0..10).map(|round| vec![round]).collect();
            assert!(delivered.iter().all(|delivered| *delivered == sent));
        });
    });
}
