//! SMC-7: posting a message costs its bytes, and padding is posted only if a separate write would
//! cost more.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{Carries, OneMemory, Private, fabric};
use tramontane_core::check::Checks;
use tramontane_core::fabric::{Capabilities, ErrorKind, Promises, Write};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{
    Delivery, Group, Layout, SLOT_HEADER, SLOT_HEADER_CHECKED, Subgroup,
};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;

const ALL: SubgroupId = SubgroupId(0);
const WINDOW: u32 = 12;
const MESSAGE_MAX: u32 = 600;

/// Records the ranges of the local ring that are posted.
struct Ranges {
    limits: Capabilities,
    ring: std::ops::Range<usize>,
    posted: Vec<std::ops::Range<usize>>,
}

impl Carries for Ranges {
    fn limits(&self) -> Capabilities {
        self.limits
    }
    fn carry(&mut self, _: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        let ranges =
            writes.iter().map(|write| write.source.offset..write.source.offset + write.length);
        self.posted.extend(ranges.filter(|range| self.ring.contains(&range.start)));
        Ok(())
    }
}

fabric!(Ranges);

/// One message of a test: the reserved length, and the committed length, or `None` if it is
/// dropped.
type Built = (usize, Option<usize>);

fn built() -> impl Strategy<Value = Built> {
    let length = prop_oneof![0..40_usize, 0..=MESSAGE_MAX as usize, Just(MESSAGE_MAX as usize)];
    (length, 0..=MESSAGE_MAX as usize, 0..8_u8).prop_map(|(reserved, shorter, kind)| match kind {
        0 => (reserved, None),
        1 => (reserved, Some(reserved.min(shorter))),
        _ => (reserved, Some(reserved)),
    })
}

/// Builds the messages in one burst, and returns the ranges that one step posts to the only peer,
/// and the range that each message needs.
fn posted(
    messages: &[Built],
    promises: Promises,
    write_overhead_bytes: usize,
    checks: Checks,
) -> (Vec<std::ops::Range<usize>>, Vec<std::ops::Range<usize>>) {
    posted_in((WINDOW, MESSAGE_MAX), messages, promises, write_overhead_bytes, checks)
}

/// Does the same as [`posted`], with a ring of this window and maximum length.
fn posted_in(
    (window, message_max): (u32, u32),
    messages: &[Built],
    promises: Promises,
    write_overhead_bytes: usize,
    checks: Checks,
) -> (Vec<std::ops::Range<usize>>, Vec<std::ops::Range<usize>>) {
    let (ids, ranks) = ([NodeId(0), NodeId(1)], [Rank(0), Rank(1)]);
    let subgroups = [Subgroup {
        members: &ranks,
        senders: &ranks[..1],
        window,
        message_max,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("good");
    let layout = if checks.is_on() { layout.with_checks().expect("small") } else { layout };
    let memory = ranks.map(|rank| -> Vec<Line> {
        (0..layout.row_bytes(rank) / 64).map(|_| Line::new()).collect()
    });
    let rows = [Row::from_lines(&memory[0]), Row::from_lines(&memory[1])];
    let ring = layout.ring(ranks[0], ALL).expect("it sends");
    let end = ring.offset + ring.stride * ring.slots as usize;
    let limits = Capabilities { promises, write_overhead_bytes, ..OneMemory.limits() };
    let mut fabric = Ranges { limits, ring: ring.offset..end, posted: Vec::new() };
    let mut private = Private::new(&layout, ranks[0]);
    let mut node =
        private.open(&layout, ranks[0], &rows, RowWriter::from_lines(&memory[0]), limits);
    let outbox = node.outbox(ALL).expect("it sends");
    let header = if checks.is_on() { SLOT_HEADER_CHECKED } else { SLOT_HEADER };
    let mut needed = Vec::new();
    for (slot, (reserved, committed)) in (1..).zip(messages) {
        let mut reservation = outbox.reserve(*reserved).expect("room");
        reservation.payload().fill(7);
        let length = committed.unwrap_or(0);
        if committed.is_some() {
            reservation.truncate(length);
            reservation.commit();
        }
        let slot_end = ring.offset + slot * ring.stride;
        needed.push(slot_end - (length + header).next_multiple_of(8)..slot_end);
    }
    let mut nothing = |_: &mut Batch<'_>| {};
    node.step(Time(0), &mut fabric, &mut nothing).expect("it steps");
    (fabric.posted, needed)
}

proptest! {
    /// The posted ranges contain each message, and cost no more than either one write for all slots
    /// or one write per message would.
    #[test]
    fn posts_never_cost_more_than_naive_alternatives(
        messages in vec(built(), 1..=WINDOW as usize),
        overhead in prop_oneof![0..700_usize, Just(1 << 20)],
        checked: bool,
    ) {
        let checks = if checked { Checks::On } else { Checks::Off };
        let promises = Promises::ADDRESS_ORDER.union(Promises::WRITE_ORDER);
        let (posted, needed) = posted(&messages, promises, overhead, checks);
        for range in &needed {
            let holds = |post: &&std::ops::Range<usize>| {
                post.start <= range.start && range.end <= post.end
            };
            prop_assert_eq!(posted.iter().filter(holds).count(), 1, "{:?}", range);
        }
        let bytes: usize = posted.iter().map(ExactSizeIterator::len).sum();
        let cost = bytes + overhead * posted.len();
        let split: usize = needed.iter().map(|range| range.len() + overhead).sum();
        prop_assert!(cost <= split, "{} is dearer than one write per message, {}", cost, split);
        let first = needed.first().map_or(0, |range| range.start);
        let joined = needed.last().map_or(0, |range| range.end) - first + overhead;
        prop_assert!(cost <= joined, "{} is dearer than one write, {}", cost, joined);
    }

    /// If the counter needs a separate write, no padding is posted at all.
    #[test]
    fn padding_is_not_posted_if_counters_are_separate(
        messages in vec(built(), 1..=WINDOW as usize),
        checked: bool,
    ) {
        let checks = if checked { Checks::On } else { Checks::Off };
        let (posted, needed) = posted(&messages, Promises::WRITE_ORDER, 24, checks);
        let wanted: Vec<_> = needed
            .iter()
            .flat_map(|range| [range.start..range.end - 8, range.end - 8..range.end])
            .collect();
        prop_assert_eq!(posted, wanted);
    }
}

/// The header of a write over TCP.
const WRITE_HEADER: usize = 24;

/// On a link, a burst costs at most 1.25 times its payload and headers, whatever the mix of lengths
/// and the longest message that is allowed. A message has two headers: the slot's, and the write's.
#[test]
fn wire_bytes_are_near_payload_and_headers() {
    let lengths = [1, 100, 1024, 10_240];
    let mixes = lengths.iter().map(std::slice::from_ref).chain([
        &lengths[..],
        &[10_240, 1, 1, 1, 1, 1, 1, 1],
        &[1, 1, 1, 100, 10_240],
    ]);
    for mix in mixes {
        for (burst, checks) in [1, 2, 7, 12, 100]
            .into_iter()
            .flat_map(|burst| [(burst, Checks::Off), (burst, Checks::On)])
        {
            let messages: Vec<Built> =
                mix.iter().cycle().take(burst).map(|length| (*length, Some(*length))).collect();
            let promises = Promises::ADDRESS_ORDER.union(Promises::WRITE_ORDER);
            let (ranges, ranges_needed) =
                posted_in((100, 10_240), &messages, promises, WRITE_HEADER, checks);
            assert_eq!(ranges_needed.len(), burst);
            let wire: usize = ranges.iter().map(|range| range.len() + WRITE_HEADER).sum();
            let slot = if checks.is_on() { SLOT_HEADER_CHECKED } else { SLOT_HEADER };
            let headers = burst * (slot + WRITE_HEADER);
            let payload: usize = messages.iter().map(|(length, _)| length).sum();
            assert!(
                wire >= payload && wire * 100 <= (payload + headers) * 125,
                "{burst} messages of {mix:?}: {wire} bytes for {payload} and {headers}"
            );
        }
    }
}
