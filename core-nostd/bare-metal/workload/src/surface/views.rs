//! The module `view`: its cells; a group of three that loses a member, releases one and admits one;
//! and a node around it.

use core::hint::black_box;

use super::{debug, display};
use crate::fabric::{Local, Way};
use tramontane_core::check::Checks;
use tramontane_core::fabric::Fabric;
use tramontane_core::ids::*;
use tramontane_core::layout::*;
use tramontane_core::memory::{Line, NodeMemory, Row, RowWriter};
use tramontane_core::multicast::*;
use tramontane_core::node::*;
use tramontane_core::storage::{Lent, RowStorage, ViewStorage};
use tramontane_core::view::*;

const LINES: usize = 24;

pub fn call() {
    cells();
    group();
    node();
}

fn cells() {
    let accepted = Accepted { ballot: Ballot::of(black_box(Rank(3))), count: black_box(4) };
    let stance = Stance { promise: black_box(Rank(2)), accepted };
    debug(Stance::decode(black_box(stance.encode())));
    let committed = Committed { decided: black_box(true), accepted };
    debug(Committed::decode(black_box(committed.encode())));
    let cell = black_box(Change::Leave(Rank(7))).encode(accepted.ballot);
    debug((Change::decode(black_box(cell)), Change::ballot(black_box(cell))));
    let block = ViewBlock::new(black_box(70), black_box(3))
        .with_line_size(black_box(LineSize::Bytes128))
        .with_checks(black_box(Checks::On));
    black_box((block.words(), block.entries(), block.bytes()));
    for column in [
        ViewColumn::Heartbeat,
        ViewColumn::Leaving,
        ViewColumn::JoinRequest,
        ViewColumn::Stance,
        ViewColumn::Committed,
        ViewColumn::Installed,
        ViewColumn::Suspicions(1),
        ViewColumn::Entry(70),
        ViewColumn::Wedged(SubgroupId(2)),
        ViewColumn::Trim(SubgroupId(3)),
    ] {
        debug((column, block.offset(black_box(column))));
    }
    debug(block);
    display(black_box(Halt::SuspectedBy(Rank(1))));
    display(black_box(Halt::NoMajority));
    display(black_box(Halt::ChangedBy(Rank(1))));
    for error in [RequestError::IsMember, RequestError::TooMany, RequestError::NoJoinRequest] {
        display(black_box(error));
    }
    debug((black_box(Cause::SuspectedBy(Rank(1))), black_box(Status::Left).is_final()));
}

/// A node with nothing to deliver.
struct Quiet(u64);

impl Host for Quiet {
    fn received(&self, _: SubgroupId) -> Frontier {
        Frontier(black_box(self.0))
    }

    fn delivered(&self, _: SubgroupId) -> Frontier {
        Frontier(black_box(0))
    }

    fn wedge(&mut self) {}

    fn prepare(&mut self, next: NextView<'_>) -> bool {
        debug(next);
        black_box(true)
    }

    fn promise(
        &mut self,
        next: NextView<'_>,
        ballot: Ballot,
        trim: impl Fn(SubgroupId) -> Option<Frontier>,
    ) -> Result<bool, Misbehaved> {
        debug((next, ballot, trim(black_box(SubgroupId(0)))));
        black_box(Ok(true))
    }

    fn deliver_to(&mut self, _: SubgroupId, trim: Frontier) -> Result<bool, Misbehaved> {
        black_box(trim);
        black_box(Ok(true))
    }

    fn cut(&mut self, peer: Rank, cause: Cause) {
        black_box((peer, cause));
    }
}

/// A node's caller whose promises become durable only in every second step.
#[cfg(feature = "durable")]
struct Keeper(u64);

#[cfg(feature = "durable")]
impl Preparation for Keeper {
    fn prepare(&mut self, next: NextView<'_>) -> bool {
        black_box(next.members.len()) > 0
    }

    fn promise(&mut self, next: NextView<'_>, ballot: Ballot) -> bool {
        debug((next, ballot));
        black_box(self.0 & 1) == 0
    }
}

fn group() {
    static ROWS: [[Line; LINES]; 3] = [const { [const { Line::new() }; LINES] }; 3];
    let ranks = [Rank(0), Rank(1), Rank(2)];
    let members = [NodeId(7), NodeId(8), NodeId(9)];
    let subgroups = [Subgroup {
        members: black_box(&ranks),
        senders: black_box(&ranks),
        window: black_box(2),
        message_max: black_box(8),
        delivery: black_box(Delivery::Ordered),
    }];
    let group = Group { members: black_box(&members), subgroups: black_box(&subgroups) };
    let Ok(layout) = Layout::with_views(black_box(group)) else { return };
    debug((
        layout.view_block(),
        layout.view_offset(black_box(Rank(1)), black_box(ViewColumn::Stance)),
    ));
    let rows: [Row<'_>; 3] = core::array::from_fn(|rank| match ROWS.get(rank) {
        Some(row) => Row::from_lines(black_box(&row[..])),
        None => Row::from_lines(&[]),
    });
    let options = black_box(ViewOptions {
        heartbeat_interval_ns: 1,
        members_max: 4,
        ..ViewOptions::default()
    });
    let mut states: [ViewState; 3] =
        ranks.map(|rank| black_box(ViewState::new(black_box(ViewId(1)), black_box(rank), options)));
    let mut peers = [[PeerState::default(); 3]; 3];
    let mut next = [[NodeId(0); 6]; 3];
    for now in 0..black_box(40) {
        let all = ranks
            .iter()
            .zip(states.iter_mut())
            .zip(peers.iter_mut())
            .zip(next.iter_mut())
            .zip(&ROWS);
        for ((((rank, state), peers), next), row) in all {
            black_box((state.status(), peers.iter().any(PeerState::is_lost)));
            let mut table = RowTable::new(
                &layout,
                black_box(*rank),
                black_box(&rows),
                RowWriter::from_lines(&row[..]),
            );
            let Some(mut change) =
                ViewChange::new(&layout, state, black_box(peers), black_box(next))
            else {
                continue;
            };
            match black_box(now) {
                3 => change.leave(&mut table),
                4 => drop(black_box(change.request_join(&mut table, black_box(NodeId(11))))),
                5 => drop(black_box(change.withdraw_join(&mut table))),
                6 => change.peer_lost(black_box(Rank(1))),
                7 => change.denied_by(black_box(Rank(1))),
                _ => {}
            }
            // From step 7 on the second member is absent.
            if black_box(now) > 6 && rank.0 == 1 {
                continue;
            }
            black_box(change.step(Time(black_box(now)), &mut table, &mut Quiet(now)));
            black_box((change.status(), change.leader(&table), table.version()));
            black_box((
                change.suspects(&table, black_box(Rank(1))),
                change.trim(&table, SubgroupId(0)),
            ));
            debug(change.next_view());
        }
    }
}

/// The members of a node's group, in separate memory, on which the view protocol of nodes is
/// called.
const PAIR: usize = 2;

static PAIR_ROWS: [RowStorage<LINES>; PAIR] = [const { RowStorage::new() }; PAIR];
const PAIR_SIZES: StateSizes =
    StateSizes { subgroups: 1, senders: PAIR, members: PAIR, links: 1, handoffs: 1, ready: 2 };
static PAIR_MEMBERS: [NodeId; PAIR] = [NodeId(1), NodeId(2)];
static PAIR_RANKS: [Rank; PAIR] = [Rank(0), Rank(1)];
static PAIR_SUBGROUPS: [Subgroup<'static>; 1] = [Subgroup {
    members: &PAIR_RANKS,
    senders: &PAIR_RANKS,
    window: 2,
    message_max: 8,
    delivery: Delivery::Ordered,
}];

/// Calls a node in a view whose peer is reported as lost.
fn node() {
    let group = Group { members: black_box(&PAIR_MEMBERS), subgroups: black_box(&PAIR_SUBGROUPS) };
    let Ok(layout) = Layout::with_views(group) else { return };
    #[cfg(feature = "durable")]
    let Ok(layout) = layout.with_logged(black_box(&[SubgroupId(0)])) else { return };
    let rows: [Row<'static>; PAIR] = PAIR_ROWS.each_ref().map(RowStorage::reader);
    let Some(own) = PAIR_ROWS.first() else { return };
    own.clear();
    let mut state = <tramontane_core::node_storage!(PAIR_SIZES)>::default();
    let mut views = ViewStorage::<PAIR, 4>::default();
    let Some(Lent { state, cells, ready }) = state.lend(black_box(&PAIR_SIZES)) else { return };
    // SAFETY: this is the only node over these lines, hand-offs and flags; nothing else stores in
    // them as long as it exists.
    let memory = unsafe { NodeMemory::new(black_box(&rows), own.writer(), cells, ready) };
    let Some(lent) = views.lend(Loan { memory, state }, black_box(PAIR)) else { return };
    let mut fabric = Local::new(Way::Shared);
    let capabilities = fabric.capabilities();
    let view = black_box(ViewId(1));
    let options = ViewOptions { majority: black_box(false), ..ViewOptions::default() };
    let own = black_box(Rank(0));
    let mut node =
        match ViewNode::open(view, layout, own, lent, Options::default(), options, capabilities) {
            Ok(node) => node,
            Err(error) => return display(error),
        };
    if let Some(mut slot) =
        node.node().outbox(SubgroupId(0)).and_then(|outbox| outbox.reserve(3).ok())
    {
        slot.payload().fill(black_box(5));
        slot.commit();
    }
    let mut each = EachMessage(|message: Message<'_>| debug(message));
    for now in 0..black_box(20) {
        match black_box(now) {
            3 => drop(black_box(node.request_join(black_box(NodeId(11))))),
            4 => drop(black_box(node.withdraw_join())),
            9 => node.peer_lost(black_box(Rank(1))),
            10 => node.denied_by(black_box(Rank(1))),
            11 => node.leave(),
            _ => {}
        }
        let prepare = |next: NextView<'_>| black_box(next.members.len()) > 0;
        let _ = black_box(node.step(Time(black_box(now)), &mut fabric, &mut each, prepare));
        #[cfg(feature = "durable")]
        let _ = black_box(node.step_logged(Time(now), &mut fabric, &mut each, Keeper(now)));
        black_box((node.status(), node.is_all_posted(), node.leader()));
        black_box((node.suspects(black_box(Rank(1))), node.trim(black_box(SubgroupId(0)))));
        debug(node.next_view());
        black_box(node.show_life(Time(black_box(now)), &mut fabric));
        black_box(each.now(Time(black_box(now))));
        #[cfg(feature = "durable")]
        node.set_durable(SubgroupId(0), DurableCount(black_box(now)));
        #[cfg(feature = "blocks")]
        node.large_arrived(SubgroupId(0), black_box(SenderRank(1)), black_box(now));
        black_box(node.table().heartbeats());
    }
    let node = node.node();
    if let Some(outbox) = node.outbox(black_box(SubgroupId(0))) {
        if let Some(mut rest) = node.undelivered(black_box(SubgroupId(0))) {
            black_box((rest.position(), rest.was_sent(), rest.get(&outbox)));
            let _ = black_box(rest.carry(&outbox, &outbox));
            rest.pass();
        }
        #[cfg(feature = "blocks")]
        black_box(node.large_delivered(black_box(SubgroupId(0)), black_box(SenderRank(1))));
    }
}
