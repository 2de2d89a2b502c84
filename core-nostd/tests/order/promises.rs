//! What a node posts over fabrics that promise different things: whatever is not promised is done
//! in the worst way.

use std::collections::VecDeque;

use crate::common::{Private, send};
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Kind, Promises, Token, ViewMemory, Write,
};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;

const RANKS: [Rank; 3] = [Rank(0), Rank(1), Rank(2)];
const NODES: [NodeId; 3] = [NodeId(0), NodeId(1), NodeId(2)];

/// A list on its way: to whom, its writes, and the bytes of its guards.
struct List {
    to: Rank,
    writes: Vec<(Write, Vec<u8>)>,
    token: Option<Token>,
}

/// One member's end. A list lands two polls after its post: without order between writes the last
/// write of it first, and of lists to different peers the latest first.
struct Promising<'r> {
    row: RowWriter<'r>,
    copies: [RowWriter<'r>; 3],
    promises: Promises,
    writes_max: usize,
    under_way: VecDeque<List>,
    completed: VecDeque<Token>,
    posts: u64,
}

impl Promising<'_> {
    fn bytes(&self, write: &Write) -> Vec<u8> {
        let mut bytes = vec![0; write.length];
        self.row.reader().read(write.source.offset, &mut bytes).expect("in the row");
        bytes
    }

    fn land(&mut self) {
        let ordered = self.promises.contains(Promises::WRITE_ORDER);
        let list = if ordered { self.under_way.pop_front() } else { self.under_way.pop_back() };
        let Some(mut list) = list else { return };
        if !ordered {
            list.writes.reverse();
        }
        for (write, guard) in &list.writes {
            // Content is read when it is carried, a guard has the bytes of the post.
            let bytes = if write.kind == Kind::Guard { guard.clone() } else { self.bytes(write) };
            self.copies[list.to.index()].apply(write.target.offset, &bytes).expect("in the row");
        }
        self.completed.extend(list.token);
    }
}

impl Fabric for Promising<'_> {
    type Error = ErrorKind;
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: self.promises,
            writes_max: self.writes_max,
            write_bytes_max: 4096,
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
    fn post(
        &mut self,
        _: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        self.posts += 1;
        assert!(writes.len() <= self.writes_max, "a list of {} writes", writes.len());
        let is_full = self.under_way.iter().filter(|list| list.to == to).count() >= 4;
        if is_full || self.posts.is_multiple_of(7) {
            return Err(ErrorKind::QueueFull);
        }
        let writes = writes.iter().map(|write| (*write, self.bytes(write))).collect();
        self.under_way.push_back(List { to, writes, token });
        Ok(())
    }
    fn poll(&mut self) -> Option<Event> {
        self.completed.pop_front().map(Event::Completed)
    }
    fn wake(&mut self, _: ViewId, _: Rank) {}
    fn arm(&mut self) -> bool {
        true
    }
    fn disarm(&mut self) {}
    fn observe_barrier(&self) {}
}

/// What each member delivers of 60 messages of each of two senders.
fn delivered(promises: Promises, writes_max: usize) -> [Vec<Vec<u8>>; 3] {
    let subgroups = [Subgroup {
        members: &RANKS,
        senders: &[Rank(0), Rank(2)],
        window: 5,
        message_max: 40,
        delivery: Delivery::Ordered,
    }];
    let group = Group { members: &NODES, subgroups: &subgroups };
    let layout = Layout::new(group).expect("a good group");
    // By owner, then by holder.
    let memory: [[Vec<Line>; 3]; 3] = RANKS.map(|owner| {
        RANKS.map(|_| (0..layout.row_bytes(owner) / 64).map(|_| Line::new()).collect())
    });
    let copies: [[RowWriter<'_>; 3]; 3] = std::array::from_fn(|owner| {
        std::array::from_fn(|at| RowWriter::from_lines(&memory[owner][at]))
    });
    let rows: [[Row<'_>; 3]; 3] =
        std::array::from_fn(|at| std::array::from_fn(|owner| copies[owner][at].reader()));
    let mut fabrics: [Promising<'_>; 3] = std::array::from_fn(|own| Promising {
        row: copies[own][own],
        copies: copies[own],
        promises,
        writes_max,
        under_way: VecDeque::new(),
        completed: VecDeque::new(),
        posts: 0,
    });
    let mut private = RANKS.map(|rank| Private::new(&layout, rank));
    let mut nodes = Vec::new();
    for (private, rank) in private.iter_mut().zip(RANKS) {
        let capabilities = fabrics[0].capabilities();
        let (rows, row) = (&rows[rank.index()], copies[rank.index()][rank.index()]);
        nodes.push(private.open(&layout, rank, rows, row, capabilities));
    }
    let outboxes = [0, 2].map(|at: usize| nodes[at].outbox(SubgroupId(0)).expect("it sends"));
    let mut delivered = [const { Vec::new() }; 3];
    let mut sent = [0_u8; 2];
    for turn in 0..20_000_u64 {
        for ((outbox, sent), sender) in outboxes.iter().zip(&mut sent).zip(0_u8..) {
            let mut message = vec![sender; usize::from(*sent % 40) + 1];
            message[0] = *sent;
            // Bursts as long as the ring, one after the other.
            if turn % 9 < 5 && *sent < 60 && send(outbox, &message).is_ok() {
                *sent += 1;
            }
        }
        let at = (turn % 3) as usize;
        let mut take = |batch: &mut Batch<'_>| {
            delivered[at].extend(batch.map(|message| message.payload.to_vec()));
        };
        let node = &mut nodes[at];
        node.step(Time(turn), &mut fabrics[at], &mut take).expect("it steps");
        fabrics[at].land();
        if sent == [60, 60] && delivered.iter().all(|one| one.len() == 120) {
            break;
        }
    }
    delivered
}

/// SMC-6, FAB-1: a counter is behind its message, whichever promise keeps it there.
#[test]
fn with_whatever_a_fabric_promises_all_messages_arrive_whole_and_in_one_order() {
    for promises in [
        Promises::COMPLETION_VISIBLE,
        Promises::COMPLETION_VISIBLE.union(Promises::ADDRESS_ORDER),
        Promises::WRITE_ORDER,
        Promises::WRITE_ORDER.union(Promises::ADDRESS_ORDER),
    ] {
        for writes_max in [4, 5, 16] {
            let [first, second, third] = delivered(promises, writes_max);
            assert_eq!(first.len(), 120, "{promises:?}, lists of {writes_max}");
            assert!(first == second && second == third, "{promises:?}, lists of {writes_max}");
            for sender in [0, 1] {
                let of_sender = first.iter().filter(|one| one.len() == 1 || one[1] == sender);
                let numbers: Vec<u8> =
                    of_sender.filter(|one| one.len() > 1).map(|one| one[0]).collect();
                let expected: Vec<u8> = (0..60).filter(|number| number % 40 != 0).collect();
                assert_eq!(numbers, expected, "{promises:?}, lists of {writes_max}");
            }
        }
    }
}
