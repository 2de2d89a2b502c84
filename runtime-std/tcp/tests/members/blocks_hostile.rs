//! A peer that sends blocks without receives, or is killed in the middle of a block, is lost. No
//! other peer is lost.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::free_addresses::free_addresses;
use crate::support::blocks::{self, FIRST, exchange, look, memory, on, receive, send, told};
use crate::support::{
    MEMBERS, PATIENCE, TcpMember, VIEW, header, join, key, listeners, open_frame, with_hand,
};
use tramontane_core::fabric::{
    BlockEvent, Channel, ErrorKind, Event, Fabric, LossCause, ViewRows as _,
};
use tramontane_core::ids::Rank;
use tramontane_tcp::Settings;

const BAD: Rank = Rank(1);

/// Returns a piece with any header, valid or not.
fn piece(channel: u16, length: u32, left: u32, immediate: u32, body: usize) -> Vec<u8> {
    piece_in(VIEW.0, channel, (length, left), immediate, body)
}

fn piece_in(
    view: u64,
    channel: u16,
    (length, left): (u32, u32),
    immediate: u32,
    body: usize,
) -> Vec<u8> {
    let last = u64::from(left) | u64::from(immediate) << 32;
    [header(6, channel, length, view, last), vec![7; body]].concat()
}

/// Asserts that two correct members still exchange a block.
fn assert_others_go_on(members: &mut [TcpMember]) {
    let memories: Vec<_> = members.iter_mut().map(|member| memory(member, 100)).collect();
    let (one, other) = (members[0].own, members[1].own);
    receive(&mut members[1], on(FIRST, one), &memories[1], (0, 100), 1);
    send(&mut members[0], on(FIRST, other), &memories[0], (0, 100), 2).expect("sent");
    exchange(members, 2);
}

#[test]
fn invalid_block_piece_is_refused_before_storing() {
    let mut padded = piece(0, 8, 8, 1, 8);
    padded[1] = 1;
    // The bytes that are sent, and how many of them may have been stored in the receive, which has
    // 1000 bytes.
    let bad: Vec<(&str, Vec<u8>, usize)> = vec![
        ("a block on a channel without a receive", piece(1, 8, 8, 1, 8), 0),
        ("a block on a channel that nobody has", piece(u16::MAX, 8, 8, 1, 8), 0),
        ("a block longer than its receive", piece(0, 1001, 1001, 1, 1001), 0),
        ("a block that will be longer than its receive", piece(0, 8, 1001, 1, 8), 0),
        ("a block as long as can be said", piece(0, u32::MAX, u32::MAX, 1, 64), 0),
        ("a piece longer than its block", piece(0, 9, 8, 1, 9), 0),
        ("a piece of nothing", piece(0, 0, 8, 1, 0), 0),
        ("a piece that goes back", [piece(0, 10, 20, 1, 10), piece(0, 10, 20, 1, 10)].concat(), 10),
        (
            "a piece that leaves some out",
            [piece(0, 10, 30, 1, 10), piece(0, 10, 10, 1, 10)].concat(),
            10,
        ),
        (
            "a piece with another number",
            [piece(0, 10, 20, 1, 10), piece(0, 10, 10, 2, 10)].concat(),
            10,
        ),
        (
            "a second block for one receive",
            [piece(0, 10, 10, 1, 10), piece(0, 10, 10, 2, 10)].concat(),
            10,
        ),
        ("a block in a view that is not open", piece_in(VIEW.0 + 1, 0, (8, 8), 1, 8), 0),
        ("a block in no view", piece_in(0, 0, (8, 8), 1, 8), 0),
        ("a byte that means nothing", padded, 0),
    ];
    for keyed in [false, true] {
        for (what, bytes, stored) in &bad {
            let (mut members, mut hand) = with_hand(if keyed { key() } else { None });
            hand.send(&open_frame());
            while !members[0].fabric.ready(VIEW, BAD) {
                members[0].fabric.carry();
            }
            let memory = blocks::memory(&members[0], 4096);
            receive(&mut members[0], on(FIRST, BAD), &memory, (100, 1000), 1);
            hand.send(bytes);
            let loss = loss(&mut members[0]);
            assert_eq!(loss, (VIEW, BAD, LossCause::Misbehaved), "{what}");
            let seen = look(&memory, 0, 4096);
            assert!(
                seen[..100].iter().chain(&seen[100 + stored..]).all(|byte| *byte == 0),
                "{what}"
            );
            assert_eq!(told(&mut members[0]), [], "{what}: told of a peer that is lost");
            let refused = send(&mut members[0], on(FIRST, BAD), &memory, (0, 8), 1);
            assert_eq!(refused, Err(ErrorKind::PeerLost), "{what}");
            assert_others_go_on(&mut members);
        }
    }
}

fn loss(member: &mut TcpMember) -> (tramontane_core::ids::ViewId, Rank, LossCause) {
    match member.loss() {
        Event::PeerLost { view, peer, cause } => (view, peer, cause),
        event => panic!("{event:?}"),
    }
}

#[test]
fn block_sent_byte_by_byte_arrives_whole() {
    for keyed in [false, true] {
        let (mut members, mut hand) = with_hand(if keyed { key() } else { None });
        hand.send(&open_frame());
        while !members[0].fabric.ready(VIEW, BAD) {
            members[0].fabric.carry();
        }
        let memory = blocks::memory(&members[0], 100);
        for token in 0..2 {
            receive(&mut members[0], on(FIRST, BAD), &memory, (10, 80), token);
        }
        let frames =
            [piece(0, 13, 40, 6, 13), piece(0, 27, 27, 6, 27), piece(0, 0, 0, 8, 0)].concat();
        for byte in frames {
            hand.send(&[byte]);
            members[0].fabric.carry();
        }
        let start = Instant::now();
        let mut events = Vec::new();
        while events.len() < 2 {
            events.extend(told(&mut members[0]));
            assert!(start.elapsed() < PATIENCE, "{events:?}");
        }
        let way = on(FIRST, BAD);
        let event = |token, immediate, length| {
            let token = tramontane_core::fabric::Token(token);
            BlockEvent::Received { way, token, immediate, length }
        };
        assert_eq!(events, [event(0, 6, 40), event(1, 8, 0)]);
        let seen = look(&memory, 0, 100);
        assert_eq!(seen[10..50], [7; 40]);
        assert!(seen[..10].iter().chain(&seen[50..]).all(|byte| *byte == 0));
    }
}

/// The length of the block during which its sender is killed.
const LONG: usize = 64 << 20;

/// Does nothing unless this program was started again to play this role. Sends one long block to
/// each of two members. Its argument is the members' addresses.
#[test]
fn role_send_until_killed() {
    let Ok(addresses) = std::env::var("TRAMONTANE_ROLE") else { return };
    let addresses: Vec<std::net::SocketAddr> =
        addresses.split(' ').map(|address| address.parse().expect("an address")).collect();
    let listener = std::net::TcpListener::bind(addresses[1]).expect("a free port");
    let mut member =
        TcpMember::new(BAD, join(BAD, &addresses, listener, None), Settings::default());
    member.open(VIEW).expect("it opens");
    let mut memory = blocks::memory(&member, LONG);
    memory.write(0, &vec![5; LONG]).expect("in the memory");
    let ready = |member: &TcpMember, peer| member.cell(peer, 64) == 1;
    while !ready(&member, Rank(0)) || !ready(&member, Rank(2)) {
        member.fabric.carry();
    }
    for peer in [0, 2] {
        send(&mut member, on(Channel(3), Rank(peer)), &memory, (0, LONG), 1).expect("sent");
    }
    loop {
        member.fabric.carry();
    }
}

#[test]
fn kill_during_block_loses_only_that_peer() {
    let (mut sockets, mut addresses) = listeners(MEMBERS);
    sockets.remove(1);
    addresses[1] = free_addresses(1).expect("a free port")[0];
    let text: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "blocks_hostile::role_send_until_killed",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("TRAMONTANE_ROLE", text.join(" "))
        .stdout(Stdio::null())
        .spawn()
        .expect("a child");
    let mut members: Vec<TcpMember> = std::thread::scope(|scope| {
        let meeting: Vec<_> = [Rank(0), Rank(2)]
            .into_iter()
            .zip(sockets)
            .map(|(own, listener)| {
                let addresses = &addresses;
                scope.spawn(move || {
                    TcpMember::new(own, join(own, addresses, listener, None), Settings::default())
                })
            })
            .collect();
        meeting.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for member in &mut members {
        member.open(VIEW).expect("it opens");
    }
    let start = Instant::now();
    while !members.iter().all(|member| member.fabric.ready(VIEW, BAD)) {
        for member in &mut members {
            member.fabric.carry();
        }
        assert!(start.elapsed() < PATIENCE, "it never comes");
    }
    let memories: Vec<_> = members.iter_mut().map(|member| memory(member, LONG + 64)).collect();
    for (member, memory) in members.iter_mut().zip(&memories) {
        receive(member, on(Channel(3), BAD), memory, (0, LONG), 1);
        member.rows.row().cell(64).expect("a cell").publish(1);
        member.fabric.post(VIEW, BAD, &[crate::support::guard(64)], None).expect("it is ready");
    }
    // Both members have part of the block, but neither has all of it.
    let has_begun = |memory: &tramontane_tcp::BlockMemory| look(memory, 1 << 20, 1) == [5];
    while !memories.iter().all(has_begun) {
        for member in &mut members {
            member.fabric.carry();
        }
        assert!(start.elapsed() < PATIENCE, "nothing comes");
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    for (member, memory) in members.iter_mut().zip(&memories) {
        assert_eq!(loss(member), (VIEW, BAD, LossCause::Exited));
        assert_eq!(told(member), [], "told of a block that never came whole");
        let seen = look(memory, 0, LONG + 64);
        let came = seen.iter().take_while(|byte| **byte == 5).count();
        assert!(
            (1 << 20..LONG).contains(&came) && seen[came..].iter().all(|byte| *byte == 0),
            "{came}"
        );
    }
    assert_others_go_on(&mut members);
}
