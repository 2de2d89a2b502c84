//! Nothing is allocated on the way of a block, once its channel is used: the whole program's
//! allocator counts.

#[path = "../../tests/allocation_support/mod.rs"]
mod allocation_support;
#[path = "members/support/mod.rs"]
mod tcp_support;

use allocation_support::of_all_threads;
use tcp_support::blocks::{memory, on, receive, send};
use tcp_support::{Member, key, members};
use tramontane_core::fabric::{BlockEvent, Blocks, Channel};
use tramontane_core::ids::Rank;
use tramontane_tcp::{BlockMemory, Settings};

const BYTES: usize = 700_000;

/// Sends a block on each channel, and waits until all have come and gone.
fn exchange(members: &mut [Member], memories: &[BlockMemory], channels: u16) {
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

#[test]
fn sending_and_receiving_blocks_allocate_nothing() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
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
