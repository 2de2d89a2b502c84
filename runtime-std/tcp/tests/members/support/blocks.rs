//! Blocks between members over TCP.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::time::Instant;

use tramontane_core::fabric::{
    BlockEvent, BlockStore as _, BlockUse, Blocks, Channel, ErrorKind, HostBlocks as _, Token, Way,
};
use tramontane_core::ids::Rank;
use tramontane_tcp::BlockMemory;

use super::{PATIENCE, TcpMember, VIEW};

pub const FIRST: Channel = Channel(0);

pub const fn on(channel: Channel, peer: Rank) -> Way {
    Way { view: VIEW, channel, peer }
}

/// Returns bytes that differ between blocks and offsets.
pub fn pattern(salt: u32, length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(salt * 97) >> 13) as u8)
        .collect()
}

/// Allocates fresh block memory for a member.
pub fn memory(member: &TcpMember, bytes: usize) -> BlockMemory {
    member.fabric.block_store().memory(bytes, BlockUse::Both).expect("memory")
}

pub fn look(memory: &BlockMemory, offset: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    memory.read(offset, &mut bytes).expect("in the memory");
    bytes
}

pub fn receive(
    at: &mut TcpMember,
    from: Way,
    into: &BlockMemory,
    range: (usize, usize),
    token: u64,
) {
    let posted = at.fabric.post_receive(from, into.area(range.0), range.1, Token(token));
    posted.expect("a receive");
}

pub fn send(
    from: &mut TcpMember,
    to: Way,
    of: &BlockMemory,
    range: (usize, usize),
    number: u32,
) -> Result<(), ErrorKind> {
    from.fabric.send(to, of.area(range.0), range.1, number, Token(u64::from(number)))
}

/// Returns a member's pending events about blocks.
pub fn told(member: &mut TcpMember) -> Vec<BlockEvent> {
    std::iter::from_fn(|| member.fabric.poll_block()).collect()
}

/// Lets all members poll until they have `count` events about blocks. Returns the events of each.
pub fn exchange(members: &mut [TcpMember], count: usize) -> Vec<Vec<BlockEvent>> {
    let start = Instant::now();
    let mut all = vec![Vec::new(); members.len()];
    while all.iter().map(Vec::len).sum::<usize>() < count {
        for (member, seen) in members.iter_mut().zip(&mut all) {
            seen.extend(told(member));
        }
        assert!(
            start.elapsed() < PATIENCE,
            "{} of {count} events",
            all.iter().map(Vec::len).sum::<usize>()
        );
    }
    all
}

pub const fn received(way: Way, token: u64, immediate: u32, length: usize) -> BlockEvent {
    BlockEvent::Received { way, token: Token(token), immediate, length }
}

pub const fn sent(way: Way, token: u64) -> BlockEvent {
    BlockEvent::Sent { way, token: Token(token) }
}
