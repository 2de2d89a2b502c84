//! A machine on which writes of a device become visible out of order (HAL-1): a guard is seen at once, and what it guards
//! only after the reader's next barrier. Whoever reads a length, a payload or a column of a view without one reads what stood
//! there before.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::integer_division,
    clippy::panic,
    dead_code
)]

mod common;
#[path = "views_of_nodes/members.rs"]
mod members;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use common::Private;
use members::{Member, open};
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Kind, Promises, Token, ViewMemory, WRITES_MAX, Write,
};
use tramontane_core::ids::{NodeId, Rank, SenderRank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;
use tramontane_core::view::Status;

const WINDOW: u32 = 4;
const SUBGROUP: SubgroupId = SubgroupId(0);

/// Bytes that go to a place of an owner's row.
struct Bytes {
    owner: usize,
    offset: usize,
    bytes: Vec<u8>,
    kind: Kind,
}

/// What is on its way to one reader.
#[derive(Default)]
struct Inbox {
    /// Lists that have not arrived.
    coming: VecDeque<Vec<Bytes>>,
    /// Content that has arrived, and is not visible.
    hidden: Vec<Bytes>,
}

/// One member's end of the network.
struct Weak<'r> {
    own: usize,
    /// What each owner's row looks like at each reader.
    copies: Vec<Vec<RowWriter<'r>>>,
    inboxes: Rc<RefCell<Vec<Inbox>>>,
}

impl Weak<'_> {
    fn store(&self, what: &Bytes) {
        self.copies[what.owner][self.own].apply(what.offset, &what.bytes).expect("in the row");
    }

    /// All that has arrived becomes visible.
    fn show(&self) {
        for content in std::mem::take(&mut self.inboxes.borrow_mut()[self.own].hidden) {
            self.store(&content);
        }
    }

    /// The next list arrives: its guards are seen at once.
    fn arrive(&self) {
        let inbox = &mut self.inboxes.borrow_mut()[self.own];
        for write in inbox.coming.pop_front().unwrap_or_default() {
            match write.kind {
                Kind::Guard => self.store(&write),
                Kind::Content => inbox.hidden.push(write),
            }
        }
    }
}

impl Fabric for Weak<'_> {
    type Error = ErrorKind;
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: Promises::WRITE_ORDER,
            writes_max: WRITES_MAX,
            write_bytes_max: 4096,
            guard_bytes_max: 24,
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
    fn post(
        &mut self,
        _: ViewId,
        to: Rank,
        writes: &[Write],
        _: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let row = self.copies[self.own][self.own].reader();
        let carried = writes.iter().map(|write| {
            let mut bytes = vec![0; write.length];
            row.read(write.source.offset, &mut bytes).expect("in the row");
            Bytes { owner: self.own, offset: write.target.offset, bytes, kind: write.kind }
        });
        self.inboxes.borrow_mut()[to.index()].coming.push_back(carried.collect());
        Ok(())
    }
    /// What arrived before this step has become visible by now.
    fn poll(&mut self) -> Option<Event> {
        self.show();
        self.arrive();
        None
    }
    fn wake(&mut self, _: ViewId, _: Rank) {}
    fn arm(&mut self) -> bool {
        true
    }
    fn disarm(&mut self) {}
    /// More arrives while a step looks.
    fn observe_barrier(&self) {
        self.show();
        self.arrive();
    }
}

fn network<'r>(copies: &[Vec<RowWriter<'r>>]) -> Vec<Weak<'r>> {
    let inboxes = Rc::new(RefCell::new(copies.iter().map(|_| Inbox::default()).collect()));
    let end = |own| Weak { own, copies: copies.to_vec(), inboxes: Rc::clone(&inboxes) };
    (0..copies.len()).map(end).collect()
}

#[test]
fn a_slots_length_is_read_behind_a_barrier() {
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
            // Now one kind, now another, so that a slot's last lap was another one.
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

#[test]
fn columns_of_a_view_are_read_behind_a_barrier() {
    let ids: Vec<NodeId> = (1..=4).map(NodeId).collect();
    for victim in 0..4_usize {
        let mut members = open(1, &ids, false, victim as u64);
        let copies = members[0].fabric.copies.clone().expect("copies");
        let mut ends = network(&copies);
        let mut now = 0;
        for turn in 0.. {
            now += 100;
            let mut is_over = true;
            for (rank, Member { node, views, .. }) in members.iter_mut().enumerate() {
                if rank == victim && turn > 10 {
                    continue;
                }
                let mut nothing = |_: &mut Batch<'_>| {};
                let stepped =
                    node.step_in_views(Time(now), &mut ends[rank], &mut nothing, views, |_| true);
                let (_, status) = stepped.expect("it steps");
                assert!(
                    !matches!(status, Status::Halted(_)),
                    "{rank} of which {victim} failed: {status:?}"
                );
                is_over &= status == Status::Installed;
            }
            if is_over {
                break;
            }
            assert!(turn < 5_000, "the view does not end");
        }
        for (rank, Member { views, .. }) in members.iter_mut().enumerate() {
            let (change, _) = views.change().expect("state that fits");
            let next = change.next_view().map(|next| next.members.to_vec());
            let survivors = || ids.iter().copied().filter(|id| *id != ids[victim]).collect();
            assert_eq!(next, (rank != victim).then(survivors));
        }
    }
}
