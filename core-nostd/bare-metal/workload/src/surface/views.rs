//! The module `view`: its cells, and a group of three that loses a member, lets one go and one in.

use core::hint::black_box;

use super::{debug, display};
use tramontane_core::ids::*;
use tramontane_core::layout::*;
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::view::*;

const LINES: usize = 24;

pub fn call() {
    cells();
    group();
}

fn cells() {
    let accepted = Accepted { ballot: Ballot::of(black_box(Rank(3))), count: black_box(4) };
    let stance = Stance { promise: black_box(Rank(2)), accepted };
    debug(Stance::decode(black_box(stance.encode())));
    let committed = Committed { decided: black_box(true), accepted };
    debug(Committed::decode(black_box(committed.encode())));
    let cell = black_box(Change::Leave(Rank(7))).encode(accepted.ballot);
    debug((Change::decode(black_box(cell)), Change::ballot(black_box(cell))));
    let block = ViewBlock::new(black_box(70), black_box(3));
    black_box((block.words(), block.entries(), block.bytes()));
    for column in [
        ViewColumn::Heartbeat,
        ViewColumn::Leaving,
        ViewColumn::Wish,
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
    for error in [RequestError::IsMember, RequestError::TooMany, RequestError::NoWish] {
        display(black_box(error));
    }
    debug((black_box(Cause::Told(Rank(1))), black_box(Status::Left).is_final()));
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

    fn deliver_to(&mut self, _: SubgroupId, trim: Frontier) -> bool {
        black_box(trim);
        black_box(true)
    }

    fn cut(&mut self, peer: Rank, cause: Cause) {
        black_box((peer, cause));
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
    debug((layout.view_block(), layout.view_offset(black_box(Rank(1)), black_box(ViewColumn::Stance))));
    let rows: [Row<'_>; 3] = core::array::from_fn(|rank| match ROWS.get(rank) {
        Some(row) => Row::from_lines(black_box(&row[..])),
        None => Row::from_lines(&[]),
    });
    let options =
        black_box(ViewOptions { heartbeat_interval_ns: 1, members_max: 4, ..ViewOptions::default() });
    let mut states: [ViewState; 3] =
        ranks.map(|rank| black_box(ViewState::new(black_box(ViewId(1)), black_box(rank), options)));
    let mut peers = [[PeerState::default(); 3]; 3];
    let mut next = [[NodeId(0); 6]; 3];
    for now in 0..black_box(40) {
        let all = ranks.iter().zip(states.iter_mut()).zip(peers.iter_mut()).zip(next.iter_mut()).zip(&ROWS);
        for ((((rank, state), peers), next), row) in all {
            black_box((state.status(), peers.iter().any(PeerState::is_lost)));
            let mut table =
                RowTable::new(layout, black_box(*rank), black_box(&rows), RowWriter::from_lines(&row[..]));
            let Some(mut change) = ViewChange::new(&layout, state, black_box(peers), black_box(next)) else {
                continue;
            };
            match black_box(now) {
                3 => change.leave(&mut table),
                4 => drop(black_box(change.wish(&mut table, black_box(NodeId(11))))),
                5 => drop(black_box(change.take_back(&mut table))),
                6 => change.peer_lost(black_box(Rank(1))),
                _ => {}
            }
            // As often as not the second member is not there.
            if black_box(now) > 6 && rank.0 == 1 {
                continue;
            }
            black_box(change.step(Time(black_box(now)), &mut table, &mut Quiet(now)));
            black_box((change.status(), change.leader(&table), table.version()));
            black_box((change.suspects(&table, black_box(Rank(1))), change.trim(&table, SubgroupId(0))));
            debug(change.next_view());
        }
    }
}
