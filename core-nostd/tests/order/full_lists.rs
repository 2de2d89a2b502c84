//! Writes of a member's row that do not fit in one list.

use crate::common::{Carries, OneMemory, Private, fabric, send};
use tramontane_core::fabric::{Capabilities, ErrorKind, Kind, Promises, Write};
use tramontane_core::ids::{NodeId, Rank, Round, SubgroupId, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;
use tramontane_core::smc::SlotCounter;

const ALL: SubgroupId = SubgroupId(0);

/// Keeps the lists that are posted. Writes keep their order, and a list holds at most four.
#[derive(Default)]
struct Lists {
    posted: Vec<Vec<Write>>,
    is_full: bool,
}

impl Carries for Lists {
    fn limits(&self) -> Capabilities {
        Capabilities { promises: Promises::WRITE_ORDER, writes_max: 4, ..OneMemory.limits() }
    }
    fn carry(&mut self, _: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        if self.is_full {
            return Err(ErrorKind::QueueFull);
        }
        self.posted.push(writes.to_vec());
        Ok(())
    }
}

fabric!(Lists);

/// NUL-5, SMC-6: two messages waited for room in the fabric until nulls followed them. The messages
/// fill a list. The nulls are posted in the next list, ahead of the control block, which refers to
/// them.
#[test]
fn nulls_begin_the_list_after_a_full_list() {
    let (ids, ranks) = ([NodeId(0), NodeId(1)], [Rank(0), Rank(1)]);
    let subgroups = [Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 8,
        message_max: 16,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("good");
    let memory = ranks.map(|rank| -> Vec<Line> {
        (0..layout.row_bytes(rank) / 64).map(|_| Line::new()).collect()
    });
    let rows = [Row::from_lines(&memory[0]), Row::from_lines(&memory[1])];
    let (mut first, mut second) =
        (Private::new(&layout, ranks[0]), Private::new(&layout, ranks[1]));
    let mut fabric = Lists { is_full: true, ..Lists::default() };
    let writer = |rank: usize| RowWriter::from_lines(&memory[rank]);
    let mut node = first.open(&layout, ranks[0], &rows, writer(0), fabric.limits());
    let mut ahead = second.open(&layout, ranks[1], &rows, writer(1), OneMemory.limits());
    let mut nothing = |_: &mut Batch<'_>| {};
    let (outbox, of_ahead) =
        (node.outbox(ALL).expect("it sends"), ahead.outbox(ALL).expect("it too"));
    for _ in 0..8 {
        send(&of_ahead, b"ahead").expect("there is room");
    }
    ahead.step(Time(0), &mut OneMemory, &mut nothing).expect("it steps");
    for message in [b"one", b"two"] {
        send(&outbox, message).expect("there is room");
    }
    node.step(Time(0), &mut fabric, &mut nothing).expect("it steps");
    fabric.is_full = false;
    node.step(Time(0), &mut fabric, &mut nothing).expect("it steps");

    let ring = layout.ring(ranks[0], ALL).expect("it sends");
    let at = |slot: usize| ring.offset + slot * ring.stride;
    let counter_at = |slot: usize| at(slot + 1) - 8;
    let [messages, rest] = &fabric.posted[..] else { panic!("{:?}", fabric.posted) };
    let places: Vec<usize> = messages.iter().map(|write| write.target.offset).collect();
    // Three bytes and the header of 12 begin on a multiple of 8.
    let payload_at = |slot: usize| at(slot + 1) - 16;
    assert_eq!(places, [payload_at(0), counter_at(0), payload_at(1), counter_at(1)]);
    let [nulls, control] = &rest[..] else { panic!("{rest:?}") };
    let place = (nulls.target.offset, nulls.length, nulls.kind);
    assert_eq!(place, (counter_at(2), 8, Kind::Guard));
    let said = rows[0].cell(counter_at(2)).expect("a counter").load();
    assert_eq!(SlotCounter::decode(said), SlotCounter::UsedBelow(Round(8)));
    assert_eq!(Some(control.target.offset), layout.control_offset(ranks[0], ALL));
}
