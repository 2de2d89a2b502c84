//! Three members in the same memory, all of it static and laid out at compile time.

use core::hint::black_box;

use crate::entries;
use crate::fabric::{Local, Way};
use crate::member::Member;
use tramontane_core::fabric::{Fabric, ViewMemory};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, StateSizes, Subgroup};
use tramontane_core::memory::{NodeMemory, Row};
use tramontane_core::node::{Loan, Node, Options};
use tramontane_core::node_storage;
use tramontane_core::storage::{self, Lent, RowStorage};

/// Number of members in the group.
pub const MEMBERS: usize = 3;
/// Largest message in bytes.
pub const MESSAGE_MAX: u32 = 200;
/// The group's only subgroup.
pub const SUBGROUP: SubgroupId = SubgroupId(0);
/// The group's only view.
pub const VIEW: ViewId = ViewId(0);

const IDS: [NodeId; MEMBERS] = [NodeId(11), NodeId(22), NodeId(33)];
const RANKS: [Rank; MEMBERS] = [Rank(0), Rank(1), Rank(2)];
const LAYOUT: Layout<'static> = {
    let group = Group {
        members: &IDS,
        subgroups: &[Subgroup {
            members: &RANKS,
            senders: &RANKS,
            window: 8,
            message_max: MESSAGE_MAX,
            delivery: Delivery::Ordered,
        }],
    };
    match Layout::new(group) {
        Ok(layout) => layout,
        Err(_) => panic!("the group is wrong: this is the compiler speaking"),
    }
};
/// All members have the same sizes, so one number is enough.
const ROW_LINES: usize = storage::lines(LAYOUT.row_bytes(Rank(0)));
const SIZES: StateSizes = LAYOUT.state_sizes(Rank(0));

type RowMemory = RowStorage<ROW_LINES>;
type Private = node_storage!(SIZES);

/// The rows of one run: each member's own row, and each member's copies of all rows.
struct Rows {
    own: [RowMemory; MEMBERS],
    copies: [[RowMemory; MEMBERS]; MEMBERS],
}

/// One set per run, because rows must be fresh.
static SHARED: Rows = Rows::new();
static COPIED: Rows = Rows::new();

impl Rows {
    const fn new() -> Self {
        Self {
            own: [const { RowMemory::new() }; MEMBERS],
            copies: [const { [const { RowMemory::new() }; MEMBERS] }; MEMBERS],
        }
    }

    /// Returns all rows, as one member reads them, in rank order.
    fn seen_by(&'static self, reader: usize, copied: bool) -> Option<[Row<'static>; MEMBERS]> {
        let mut rows = self.own.each_ref().map(RowMemory::reader);
        if copied {
            for (owner, copy) in self.copies.get(reader)?.iter().enumerate() {
                if owner != reader {
                    *rows.get_mut(owner)? = copy.reader();
                }
            }
        }
        Some(rows)
    }

    /// Returns the path of a member's writes to its peers.
    fn way_of(&'static self, writer: usize, copied: bool) -> Option<Way> {
        if !copied {
            return Some(Way::Shared);
        }
        let [first, second, third] = &self.copies;
        let copies = [first.get(writer)?, second.get(writer)?, third.get(writer)?];
        Some(Way::Copied {
            row: self.own.get(writer)?.reader(),
            copies: copies.map(RowMemory::writer),
        })
    }
}

/// The results of a run.
pub struct Report {
    /// Number of messages that every member delivered.
    pub messages: u64,
    /// Number of rounds that were used without a message.
    pub nulls: u64,
    /// Number of lists that the fabrics accepted.
    pub posts: u64,
    /// Approximate maximum stack size that a step used, including the functions that it calls.
    pub stack_bytes: u64,
}

/// Runs the group. Returns `None` if anything is not as it should be.
pub fn run(copied: bool) -> Option<Report> {
    let rows = black_box(if copied { &COPIED } else { &SHARED });
    let layout = black_box(LAYOUT);
    let mut private = [const { Private::new() }; MEMBERS];
    let seen = [rows.seen_by(0, copied)?, rows.seen_by(1, copied)?, rows.seen_by(2, copied)?];
    let [seen0, seen1, seen2] = &seen;
    let [private0, private1, private2] = &mut private;
    let mut members = [
        open(&layout, rows, copied, Rank(0), seen0, private0)?,
        open(&layout, rows, copied, Rank(1), seen1, private1)?,
        open(&layout, rows, copied, Rank(2), seen2, private2)?,
    ];
    crate::member::exchange(&mut members)
}

fn open<'m>(
    layout: &Layout<'_>,
    memory: &'static Rows,
    copied: bool,
    own: Rank,
    rows: &'m [Row<'m>; MEMBERS],
    private: &'m mut Private,
) -> Option<Member<'m>> {
    let row = memory.own.get(own.index())?.writer();
    let mut fabric = Local::new(memory.way_of(own.index(), copied)?);
    fabric.open(VIEW, &ViewMemory { own, members: &IDS, row, rows }).ok()?;
    let Lent { state, cells, ready } = private.lend(&layout.state_sizes(own))?;
    // SAFETY: one node per member, on static rows, hand-offs and flags that only it uses; its
    // peers' copies are written only by posts, between its steps.
    let memory = unsafe { NodeMemory::new(rows, row, cells, ready) };
    let loan = Loan { memory, state };
    let (options, capabilities) = black_box((Options::default(), fabric.capabilities()));
    let node =
        entries::node_open(|| Node::open(VIEW, layout, own, loan, options, capabilities)).ok()?;
    let outbox = node.outbox(SUBGROUP)?;
    Some(Member::new(own, node, fabric, outbox))
}
