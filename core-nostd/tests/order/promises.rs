//! Posts of a node over fabrics with different promises. If a property is not promised, the fabric
//! does the worst that it may.

use std::collections::VecDeque;

use crate::common::{Private, send};
use tramontane_core::check::Checks;
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Kind, Promises, Token, ViewMemory, Write,
};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::{Batch, Switches};
use tramontane_core::node::{Node, Options};

const RANKS: [Rank; 3] = [Rank(0), Rank(1), Rank(2)];
const NODES: [NodeId; 3] = [NodeId(0), NodeId(1), NodeId(2)];

/// A list in flight: its destination, its writes, and the bytes of its guards.
struct ListInFlight {
    to: Rank,
    writes: Vec<(Write, Vec<u8>)>,
    token: Option<Token>,
}

/// One member's fabric. A list lands two polls after it is posted. Without order between writes, a
/// list's last write lands first, and usually the latest of several lists lands first.
struct Promising<'r> {
    row: RowWriter<'r>,
    copies: [RowWriter<'r>; 3],
    promises: Promises,
    writes_max: usize,
    write_overhead_bytes: usize,
    under_way: VecDeque<ListInFlight>,
    completed: VecDeque<Token>,
    posts: u64,
    landings: u64,
}

impl Promising<'_> {
    fn bytes(&self, write: &Write) -> Vec<u8> {
        let mut bytes = vec![0; write.length];
        self.row.reader().read(write.source.offset, &mut bytes).expect("in the row");
        bytes
    }

    fn land(&mut self) {
        let ordered = self.promises.contains(Promises::WRITE_ORDER);
        self.landings += 1;
        // Usually the latest list; every fourth time, the oldest.
        let last = self.under_way.len().saturating_sub(1);
        let at = if ordered || self.landings.is_multiple_of(4) { 0 } else { last };
        let Some(mut list) = self.under_way.remove(at) else { return };
        if !ordered {
            list.writes.reverse();
        }
        for (write, guard) in &list.writes {
            // Content is read when it is carried; a guard has the bytes that it had when it was
            // posted.
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
            write_overhead_bytes: self.write_overhead_bytes,
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
        self.under_way.push_back(ListInFlight { to, writes, token });
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

/// Two ordered subgroups, one of which lacks a member, and one unordered subgroup.
const SUBGROUPS: [Subgroup<'static>; 3] = [
    Subgroup {
        members: &RANKS,
        senders: &[Rank(0), Rank(2)],
        window: 5,
        message_max: 40,
        delivery: Delivery::Ordered,
    },
    Subgroup {
        members: &[Rank(0), Rank(1)],
        senders: &[Rank(0), Rank(1)],
        window: 3,
        message_max: 24,
        delivery: Delivery::Ordered,
    },
    Subgroup {
        members: &RANKS,
        senders: &[Rank(1), Rank(2)],
        window: 4,
        message_max: 8,
        delivery: Delivery::Unordered,
    },
];

/// Number of messages per sender in each subgroup.
const MESSAGES: u8 = 60;

/// Settings for stepping a group over its fabric.
#[derive(Clone, Copy, Debug)]
struct Stepping {
    promises: Promises,
    writes_max: usize,
    write_overhead_bytes: usize,
    switches: Switches,
    checks: Checks,
}

/// The messages that each member delivers in each subgroup, with their senders.
type SubgroupDeliveries = Vec<[Vec<(Rank, Vec<u8>)>; 3]>;

/// Returns a sender's message by number; lengths differ.
fn message(subgroup: &Subgroup<'_>, sender: Rank, number: u8) -> Vec<u8> {
    let length = usize::from(number) * 7 % subgroup.message_max as usize + 1;
    let mut message = vec![sender.0 as u8; length];
    message[0] = number;
    message
}

/// Returns the deliveries of all messages from all senders, with dropped reservations and silences
/// in between. Asserts that, once a member is settled, it and all other members have delivered
/// everything that it sent.
fn delivered(way: Stepping) -> SubgroupDeliveries {
    let Stepping { promises, writes_max, write_overhead_bytes, switches, checks } = way;
    let group = Group { members: &NODES, subgroups: &SUBGROUPS };
    let layout = Layout::new(group).expect("a good group");
    let layout = if checks.is_on() { layout.with_checks().expect("small") } else { layout };
    // Memory, indexed by owner, then by holder.
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
        write_overhead_bytes,
        under_way: VecDeque::new(),
        completed: VecDeque::new(),
        posts: 0,
        landings: 0,
    });
    let options = Options { switches, ..Options::default() };
    let mut private = RANKS.map(|rank| Private::new(&layout, rank));
    let mut nodes = Vec::new();
    for (private, rank) in private.iter_mut().zip(RANKS) {
        let capabilities = fabrics[0].capabilities();
        let (rows, row) = (&rows[rank.index()], copies[rank.index()][rank.index()]);
        nodes.push(private.open_with(&layout, rank, rows, row, capabilities, options));
    }
    let mut senders = Vec::new();
    for (id, subgroup) in (0..).map(SubgroupId).zip(&SUBGROUPS) {
        for rank in subgroup.senders {
            let outbox = nodes[rank.index()].outbox(id).expect("it sends");
            senders.push((subgroup, *rank, outbox, 0_u8));
        }
    }
    let mut delivered: SubgroupDeliveries = SUBGROUPS.iter().map(|_| Default::default()).collect();
    for turn in 0..90_000_u64 {
        let is_all = senders.iter().all(|(.., sent)| *sent == MESSAGES);
        for (subgroup, rank, outbox, sent) in &mut senders {
            // Bursts are as long as the ring, one sender at a time.
            if turn % 9 < 5 && *sent < MESSAGES {
                *sent += u8::from(send(outbox, &message(subgroup, *rank, *sent)).is_ok());
            }
            if turn % 31 == 3 && !is_all {
                drop(outbox.reserve(4));
            }
            if turn % 100 > 97 && !is_all {
                outbox.declare_silence(3);
            }
        }
        // The last member rarely steps.
        let at = [0, 1, 0, 1, 0, 1, 2][(turn % 7) as usize];
        let mut take = |batch: &mut Batch<'_>| {
            let of_member = &mut delivered[usize::from(batch.subgroup().0)][at];
            of_member.extend(batch.map(|message| (message.rank, message.payload.to_vec())));
        };
        let node = &mut nodes[at];
        node.step(Time(turn), &mut fabrics[at], &mut take).expect("it steps");
        fabrics[at].land();
        let own = RANKS[at];
        if nodes[at].is_settled() {
            for (of_subgroup, subgroup) in delivered.iter().zip(&SUBGROUPS) {
                let of_own = |rank: &Rank| {
                    of_subgroup[rank.index()].iter().filter(|(sender, _)| *sender == own).count()
                };
                let counts: Vec<usize> = subgroup.members.iter().map(of_own).collect();
                assert!(counts.iter().all(|count| *count == counts[0]), "{way:?}: {counts:?}");
            }
        }
        if is_all && nodes.iter().all(Node::is_settled) {
            break;
        }
    }
    delivered
}

/// SMC-6, FAB-1: a counter becomes visible after its message, whichever promise ensures it and
/// whichever techniques are on.
#[test]
fn messages_arrive_intact_and_ordered_under_any_promises() {
    let late = Switches::LATE_POSTING;
    for promises in [
        Promises::COMPLETION_VISIBLE,
        Promises::COMPLETION_VISIBLE.union(Promises::ADDRESS_ORDER),
        Promises::WRITE_ORDER,
        Promises::WRITE_ORDER.union(Promises::ADDRESS_ORDER),
    ] {
        for writes_max in [4, 5, 16] {
            for switches in [Switches::default(), Switches::all().difference(late)] {
                for checks in [Checks::Off, Checks::On] {
                    for write_overhead_bytes in [0, 16, usize::MAX] {
                        judge(Stepping {
                            promises,
                            writes_max,
                            write_overhead_bytes,
                            switches,
                            checks,
                        });
                    }
                }
            }
        }
        judge(Stepping {
            promises,
            writes_max: 5,
            write_overhead_bytes: 16,
            switches: Switches::NULLS,
            checks: Checks::Off,
        });
    }
}

fn judge(way: Stepping) {
    for (of_subgroup, subgroup) in delivered(way).iter().zip(&SUBGROUPS) {
        let first = &of_subgroup[subgroup.members[0].index()];
        for member in subgroup.members {
            let of_member = &of_subgroup[member.index()];
            assert!(
                subgroup.delivery == Delivery::Unordered || of_member == first,
                "{way:?}: one order at {member}"
            );
            for sender in subgroup.senders {
                let of_sender: Vec<&Vec<u8>> = of_member
                    .iter()
                    .filter(|(rank, _)| rank == sender)
                    .map(|(_, message)| message)
                    .collect();
                let expected: Vec<Vec<u8>> =
                    (0..MESSAGES).map(|number| message(subgroup, *sender, number)).collect();
                assert_eq!(of_sender.len(), expected.len(), "{way:?}: of {sender} at {member}");
                assert!(of_sender.into_iter().eq(&expected), "{way:?}: of {sender} at {member}");
            }
        }
    }
}
