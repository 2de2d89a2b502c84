//! Nothing is allocated on the path of a block once its channel is in use, nor on the path of lists
//! and reads of regions. Allocations are counted for the whole program.

#[path = "../../tests/allocation_support/mod.rs"]
mod allocation_support;
#[path = "members/support/mod.rs"]
mod tcp_support;

use allocation_support::of_all_threads;
use tcp_support::blocks::{memory, on, receive, send};
use tcp_support::{LOG, TcpMember, VIEW, key, log_write, members};
use tramontane_core::fabric::{
    Area, BlockEvent, Blocks, Channel, ErrorKind, Event, Fabric as _, Permissions as _, Token,
};
use tramontane_core::ids::Rank;
use tramontane_tcp::{BlockMemory, Settings};

const BYTES: usize = 700_000;

/// Sends a block on each channel, and waits until all blocks have been sent and received.
fn exchange(members: &mut [TcpMember], memories: &[BlockMemory], channels: u16) {
    for channel in (0..channels).map(Channel) {
        receive(&mut members[1], on(channel, Rank(0)), &memories[1], (0, BYTES), 1);
        send(&mut members[0], on(channel, Rank(1)), &memories[0], (0, BYTES), 2).expect("sent");
    }
    let (mut sent, mut received) = (0, 0);
    while (sent, received) != (channels, channels) {
        for member in &mut *members {
            match member.fabric.poll_block() {
                Some(BlockEvent::Sent { .. }) => sent += 1,
                Some(BlockEvent::Received { .. }) => received += 1,
                None => {}
            }
        }
    }
}

/// Writes to a log and reads it, with several operations at once, and waits until all of them have
/// completed.
fn write_and_read(members: &mut [TcpMember]) {
    let lists: [_; 16] = std::array::from_fn(|place| log_write(place * 100, 100));
    let (lists_posted, area) = (200, Area { region: LOG, offset: 0 });
    for token in (0..lists_posted).map(Token) {
        while let Err(error) = members[0].fabric.post(VIEW, Rank(1), &lists, Some(token)) {
            assert_eq!(error, ErrorKind::QueueFull);
            for member in &mut *members {
                member.fabric.carry();
            }
        }
    }
    for token in (lists_posted..lists_posted + 8).map(Token) {
        members[0].fabric.read(VIEW, Rank(1), area, area, 30_000, token).expect("there is room");
    }
    let mut completed = 0;
    while completed < lists_posted + 8 {
        members[1].fabric.carry();
        while let Some(event) = members[0].fabric.poll() {
            completed += u64::from(matches!(event, Event::Completed(_)));
        }
    }
}

#[test]
fn blocks_lists_and_reads_allocate_nothing() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        members[1].fabric.grant(VIEW, Rank(0), LOG).expect("it is ready");
        while members[0].told().is_empty() {}
        (0..3).for_each(|_| write_and_read(&mut members));
        let before = of_all_threads();
        (0..20).for_each(|_| write_and_read(&mut members));
        assert_eq!(of_all_threads(), before);
        let memories: Vec<BlockMemory> =
            members.iter_mut().map(|member| memory(member, BYTES)).collect();
        exchange(&mut members, &memories, 20);
        let before = of_all_threads();
        for _ in 0..20 {
            exchange(&mut members, &memories, 20);
        }
        assert_eq!(of_all_threads(), before);
    }
}
