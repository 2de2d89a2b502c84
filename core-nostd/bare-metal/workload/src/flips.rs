//! Two members over rows with checks. In each run one bit flips when it lands; over all runs, each
//! bit of a slot and of a control block flips once. Each run must end with the same messages at
//! both members, or with a report.

use core::hint::black_box;

use tramontane_core::check::STEPS_UNREADABLE;
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Promises, Token, ViewMemory, Write,
};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, StateSizes, Subgroup};
use tramontane_core::memory::{NodeMemory, Row, RowWriter};
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Loan, Node, Options};
use tramontane_core::node_storage;
use tramontane_core::storage::{self, Lent, RowStorage};

const VIEW: ViewId = ViewId(0);
const SUBGROUP: SubgroupId = SubgroupId(0);
const IDS: [NodeId; 2] = [NodeId(1), NodeId(2)];
const RANKS: [Rank; 2] = [Rank(0), Rank(1)];
/// Size of every message in bytes. Each member sends three messages, over two slots.
const BYTES: usize = 24;
const MESSAGES: u64 = 3;
const LAYOUT: Layout<'static> = {
    let group = Group {
        members: &IDS,
        subgroups: &[Subgroup {
            members: &RANKS,
            senders: &RANKS,
            window: 2,
            message_max: BYTES as u32,
            delivery: Delivery::Ordered,
        }],
    };
    match Layout::new(group) {
        Ok(layout) => match layout.with_checks() {
            Ok(layout) => layout,
            Err(_) => panic!("the group is too large: this is the compiler speaking"),
        },
        Err(_) => panic!("the group is wrong: this is the compiler speaking"),
    }
};
const ROW_LINES: usize = storage::lines(LAYOUT.row_bytes(Rank(0)));
const SIZES: StateSizes = LAYOUT.state_sizes(Rank(0));

/// Ranges of the flipped bits in the first member's row: its control block, and its first slot.
const CONTROL: usize = match LAYOUT.control_offset(Rank(0), SUBGROUP) {
    Some(offset) => offset,
    None => panic!("a member: this is the compiler speaking"),
};
const CONTROL_BYTES: usize = 24;
const SLOT: (usize, usize) = match LAYOUT.ring(Rank(0), SUBGROUP) {
    Some(ring) => (ring.offset, ring.stride),
    None => panic!("a sender: this is the compiler speaking"),
};

/// Number of turns of both members after which a run must be over: a run takes a few, and a report
/// some more.
const TURNS: u64 = 12 + STEPS_UNREADABLE as u64;

type RowMemory = RowStorage<ROW_LINES>;
/// Memory of a member, in addition to its rows.
type Private = node_storage!(SIZES);

/// Row of each member, and each member's copy of the other's.
static OWN: [RowMemory; 2] = [const { RowMemory::new() }; 2];
static COPIES: [RowMemory; 2] = [const { RowMemory::new() }; 2];

/// The results of the runs.
pub struct Report {
    /// Number of flips after which both members delivered everything.
    pub agreed: u64,
    /// Number of flips that a member reported.
    pub reported: u64,
}

const CAPABILITIES: Capabilities = Capabilities {
    promises: Promises::WRITE_ORDER,
    writes_max: 8,
    write_bytes_max: 1 << 16,
    guard_bytes_max: 64,
    write_overhead_bytes: 24,
};

/// Carries the local row into the peer's copy at once. One bit of the row may flip on the way.
struct Carrier {
    row: Row<'static>,
    copy: RowWriter<'static>,
    /// Bit of the row that flips when it lands for the first time.
    flip: Option<usize>,
}

impl Carrier {
    fn carry(&mut self, write: &Write) -> Option<()> {
        let mut buffer = [0; 64];
        let mut done = 0_usize;
        while done < write.length {
            let at = write.target.offset.checked_add(done)?;
            let part = buffer.get_mut(..write.length.wrapping_sub(done).min(64))?;
            self.row.read(at, part).ok()?;
            let bit = self.flip.unwrap_or(usize::MAX);
            if let Some(byte) = (bit / 8).checked_sub(at).and_then(|within| part.get_mut(within)) {
                *byte ^= 1 << (bit % 8);
                self.flip = None;
            }
            self.copy.apply(at, part).ok()?;
            done = done.checked_add(part.len())?;
        }
        Some(())
    }
}

impl Fabric for Carrier {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
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
        _: Rank,
        writes: &[Write],
        _: Option<Token>,
    ) -> Result<(), ErrorKind> {
        for write in writes {
            self.carry(write).ok_or(ErrorKind::OutOfRange)?;
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Event> {
        None
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        true
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {}
}

/// Flips each bit once. Returns `None` if a run ends neither in agreement nor in a report.
pub fn run() -> Option<Report> {
    let mut report = Report { agreed: 0, reported: 0 };
    let (slot, slot_bytes) = SLOT;
    let control = CONTROL * 8..(CONTROL + CONTROL_BYTES) * 8;
    for bit in control.chain(slot * 8..(slot + slot_bytes) * 8) {
        match black_box(flipped(black_box(Some(bit))))? {
            true => report.reported = report.reported.saturating_add(1),
            false => report.agreed = report.agreed.saturating_add(1),
        }
    }
    // Without a flip, nothing is reported. Most flips in a slot are reported, because a slot is
    // written only once.
    let calm = flipped(black_box(None))?;
    if calm || report.reported < 300 || report.agreed == 0 { None } else { Some(report) }
}

/// Does one run, and returns whether a member reported something. Returns `None` if the run ended
/// in another way.
fn flipped(flip: Option<usize>) -> Option<bool> {
    for row in OWN.iter().chain(&COPIES) {
        row.clear();
    }
    let [own0, own1] = &OWN;
    let [copy0, copy1] = &COPIES;
    let rows0 = [own0.reader(), copy1.reader()];
    let rows1 = [copy0.reader(), own1.reader()];
    let (mut private0, mut private1) = (Private::new(), Private::new());
    let mut members = [
        (open(Rank(0), &rows0, own0, &mut private0)?, carrier(own0, copy0, flip), (0_u64, 0_u64)),
        (open(Rank(1), &rows1, own1, &mut private1)?, carrier(own1, copy1, None), (0, 0)),
    ];
    let mut sent = [0_u64; 2];
    let mut reported = false;
    for turn in 0..TURNS {
        for ((node, fabric, delivered), sent) in members.iter_mut().zip(&mut sent) {
            if *sent < MESSAGES
                && let Ok(mut slot) = node.outbox(SUBGROUP)?.reserve(BYTES)
            {
                slot.payload().fill(*sent as u8 ^ 0x5a);
                slot.commit();
                *sent = sent.wrapping_add(1);
            }
            let mut take = |batch: &mut Batch<'_>| {
                for message in batch {
                    delivered.0 = delivered.0.wrapping_add(1);
                    for byte in message.payload {
                        let mixed = delivered.1 ^ u64::from(*byte) ^ message.place.0;
                        delivered.1 = mixed.wrapping_mul(0x0100_0000_01b3);
                    }
                }
            };
            let progress = node.step(Time(turn), fabric, &mut take).ok()?;
            reported |= progress.refused.is_some() && progress.lost.is_some();
        }
    }
    let [(_, _, first), (_, _, second)] = &members;
    let agreed = first == second && first.0 == MESSAGES.wrapping_mul(2);
    if agreed || reported { Some(reported) } else { None }
}

fn carrier(own: &'static RowMemory, copy: &'static RowMemory, flip: Option<usize>) -> Carrier {
    Carrier { row: own.reader(), copy: copy.writer(), flip }
}

fn open<'m>(
    own: Rank,
    rows: &'m [Row<'m>; 2],
    row: &'static RowMemory,
    private: &'m mut Private,
) -> Option<Node<'m>> {
    let Lent { state, cells, ready } = private.lend(&SIZES)?;
    let row = row.writer();
    // SAFETY: one node per member at a time, on rows that have been cleared; the copies are written
    // only by posts, between the member's steps. A flipped bit breaks the promise about a cell's
    // content, but not about the time of its writes.
    let memory = unsafe { NodeMemory::new(rows, row, cells, ready) };
    let loan = Loan { memory, state };
    Node::open(VIEW, &black_box(LAYOUT), own, loan, Options::default(), CAPABILITIES).ok()
}
