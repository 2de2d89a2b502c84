//! Block groups: `rdmc::transfer`, over a fabric that accepts everything, with scripted events.

use core::hint::black_box;

use super::{debug, display};
use crate::entries;
use crate::fabric::{self, Local};
use tramontane_core::check::Checks;
use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, LossCause, Region, Token,
    ViewMemory, Way,
};
use tramontane_core::ids::*;
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::*;

const MEMBERS: usize = 3;

impl Blocks for Local {
    fn block_limits(&self) -> BlockLimits {
        black_box(BlockLimits { channels: 4, receives_max: 16, sends_max: 16, bytes_max: 1 << 20 })
    }

    fn post_receive(&mut self, _: Way, _: Area, _: usize, _: Token) -> Result<(), ErrorKind> {
        black_box(Ok(()))
    }

    fn send(&mut self, _: Way, _: Area, _: usize, _: u32, _: Token) -> Result<(), ErrorKind> {
        black_box(Ok(()))
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        black_box((view, channel));
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        black_box(None)
    }
}

/// Memory that is always provided; all reports are ignored.
struct Anywhere;

impl MessageMemory for Anywhere {
    fn incoming(&mut self, number: u64, bytes: usize) -> Option<Area> {
        black_box((number, bytes));
        black_box(Some(area(4096)))
    }

    fn place(&mut self, from: Area, to: Area, length: usize) {
        black_box((from, to, length));
    }

    fn completed(&mut self, number: u64, bytes: usize) {
        black_box((number, bytes));
    }
}

pub fn call() {
    errors();
    layouts();
    for own in [0, 1] {
        for algorithm in black_box([Algorithm::Pipeline, Algorithm::Chain]) {
            group(Rank(own), algorithm);
        }
    }
}

fn layouts() {
    let ranks = [Rank(0), Rank(1)];
    let members = [NodeId(7), NodeId(9)];
    let subgroups = [Subgroup {
        members: black_box(&ranks),
        senders: black_box(&ranks),
        window: black_box(4),
        message_max: black_box(100),
        delivery: black_box(Delivery::Ordered),
    }];
    if let Ok(layout) = Layout::of_channels(black_box(&members), black_box(3)) {
        black_box((layout.channels(), layout.channel_offset(Channel(black_box(1)))));
    }
    if let Ok(layout) = Layout::new(Group { members: &members, subgroups: &subgroups })
        && let Ok(layout) = layout.with_large(black_box(&[SubgroupId(0)]))
    {
        let (subgroup, sender) = black_box((SubgroupId(0), SenderRank(1)));
        black_box(layout.large_channel(subgroup, sender));
    }
}

fn area(offset: usize) -> Area {
    Area { region: Region(black_box(1)), offset }
}

fn group(own: Rank, algorithm: Algorithm) {
    static ROWS: [[Line; 1]; MEMBERS] = [const { [const { Line::new() }] }; MEMBERS];
    let ranks = black_box([Rank(0), Rank(1), Rank(2)]);
    let nodes = [NodeId(4), NodeId(5), NodeId(6)];
    let rows: [Row<'static>; MEMBERS] = core::array::from_fn(|rank| match ROWS.get(rank) {
        Some(lines) => Row::from_lines(lines),
        None => Row::from_lines(&[]),
    });
    let Some(lines) = ROWS.get(own.index()) else { return };
    let memory =
        ViewMemory { own, members: &nodes, row: RowWriter::from_lines(lines), rows: &rows };
    let setup = Setup {
        view: ViewId(black_box(9)),
        channel: Channel(black_box(2)),
        members: &ranks,
        algorithm,
        block_bytes: black_box(100),
        cells: black_box(0),
        staging: area(0),
        window: black_box(Window::default()),
        checks: black_box(Checks::On),
    };
    let mut words = [0; words_for(500)];
    let mut fabric = Local::new(fabric::Way::Shared);
    let mut group = match BlockGroup::open(setup, &memory, &fabric, &mut words) {
        Ok(group) => group,
        Err(error) => return display(error),
    };
    black_box((group.channel(), group.view(), group.completed(), group.is_moving()));
    if let Err(error) = group.send(area(0), black_box(950)) {
        display(error);
    }
    for step in 0..black_box(40) {
        let token = Token(black_box(step));
        let way = |peer| Way { view: ViewId(9), channel: Channel(2), peer: black_box(Rank(peer)) };
        let received =
            BlockEvent::Received { way: way(0), token, immediate: black_box(10), length: 100 };
        black_box(group.take(&received, &mut Anywhere));
        black_box(group.take(&BlockEvent::Sent { way: way(1), token }, &mut Anywhere));
        let progress = entries::block_group_step(|| group.step(&mut fabric, &mut Anywhere));
        black_box(progress.is_idle());
        debug(progress);
        while let Some(event) = fabric.poll_block() {
            debug(event);
        }
    }
    if let Err(error) = group.close() {
        display(error);
    }
    group.lost(ViewId(black_box(9)), black_box(Rank(2)), LossCause::Left);
    debug(black_box(group.step(&mut fabric, &mut Anywhere)));
    debug(black_box(group.outcome()));
}

fn errors() {
    display(black_box(OpenError::Unordered));
    display(black_box(SendError::TooLarge { blocks: 9, blocks_max: 3 }));
    display(black_box(CloseError::NotRoot));
    display(black_box(Failure { member: Rank(1), cause: Cause::NoMemory }));
    black_box((CELLS_BYTES, tramontane_core::rdmc::transfer::words_for(black_box(500))));
}
