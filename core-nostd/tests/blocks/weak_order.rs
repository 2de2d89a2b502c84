//! Slots on a machine where the writes of a device become visible out of order (HAL-1).

use crate::common::Private;
use crate::weak::network;
use tramontane_core::fabric::Fabric;
use tramontane_core::ids::{NodeId, Rank, SenderRank, SubgroupId, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;

const WINDOW: u32 = 4;
const SUBGROUP: SubgroupId = SubgroupId(0);

#[test]
fn slot_length_is_read_after_a_barrier() {
    let (ids, ranks) = ([NodeId(1), NodeId(2)], [Rank(0), Rank(1)]);
    let subgroups = [Subgroup {
        members: &ranks,
        senders: &[Rank(0)],
        window: WINDOW,
        message_max: 16,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a good group");
    let layout = layout.with_large(&[SUBGROUP]).expect("it is there");
    let memory: Vec<Vec<Vec<Line>>> = ranks
        .iter()
        .map(|owner| {
            let row = || (0..layout.row_bytes(*owner) / 64).map(|_| Line::new()).collect();
            ranks.iter().map(|_| row()).collect()
        })
        .collect();
    let copies: Vec<Vec<RowWriter<'_>>> = memory
        .iter()
        .map(|readers| readers.iter().map(|lines| RowWriter::from_lines(lines)).collect())
        .collect();
    let mut ends = network(&copies);
    let mut private = [Private::new(&layout, Rank(0)), Private::new(&layout, Rank(1))];
    let rows: [[Row<'_>; 2]; 2] =
        std::array::from_fn(|reader| std::array::from_fn(|owner| copies[owner][reader].reader()));
    let capabilities = ends[0].capabilities();
    let [sender, receiver] = &mut private;
    let mut nodes = [
        sender.open(&layout, Rank(0), &rows[0], copies[0][0], capabilities),
        receiver.open(&layout, Rank(1), &rows[1], copies[1][1], capabilities),
    ];
    let outbox = nodes[0].outbox(SUBGROUP).expect("it sends");
    nodes[1].large_arrived(SUBGROUP, SenderRank(0), u64::MAX);
    let mut delivered = Vec::new();
    let (mut sent, mut larges) = (0_u8, 0);
    for turn in 0..2_000_u32 {
        if let Ok(mut slot) = outbox.reserve(usize::from(1 + sent % 16)) {
            slot.payload().fill(sent);
            // Both kinds alternate, so that a slot holds the other kind after a lap.
            if sent % 3 == 0 {
                slot.commit_large()
            } else {
                slot.commit()
            }
            sent = sent.wrapping_add(1);
        }
        nodes[0].step(Time(0), &mut ends[0], &mut |_: &mut Batch<'_>| {}).expect("it steps");
        if !turn.is_multiple_of(3) {
            continue;
        }
        let mut take = |batch: &mut Batch<'_>| {
            delivered.extend(batch.map(|message| (message.large, message.payload.to_vec())));
        };
        let progress = nodes[1].step(Time(0), &mut ends[1], &mut take).expect("it steps");
        assert_eq!(progress.lost, None, "after {} messages", delivered.len());
    }
    assert!(delivered.len() > 200, "{}", delivered.len());
    for (number, (large, payload)) in delivered.iter().enumerate() {
        let number = number as u8;
        assert_eq!(*payload, vec![number; usize::from(1 + number % 16)]);
        assert_eq!(large.is_some(), number.is_multiple_of(3), "message {number}");
        larges += u32::from(large.is_some());
    }
    assert!(larges > 50);
}
