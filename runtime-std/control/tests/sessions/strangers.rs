//! What strangers cannot do: keep a member out, hold a place for ever, be taken for somebody.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{LONG, NODES, SHORT, door, go, group, identity, key, listener, operator};
use rustix::net::sockopt;
use tramontane_control::{
    Address, Door, GREETINGS_MAX, PEER_PLACES, Purpose, Refusal, TalkError, VISITORS_MAX,
    VisitError, Visitor,
};
use tramontane_core::ids::NodeId;

/// What crosses first, in this version, with and without a key.
const PREAMBLES: [&[u8; 16]; 2] =
    [b"tramontn\x04\x00\x00\x00\x00\x00\x00\x00", b"tramontn\x04\x00\x01\x00\x00\x00\x00\x00"];

fn tcp(address: &Address) -> SocketAddr {
    match address {
        Address::Tcp(address) => *address,
        Address::Unix(path) => panic!("{}", path.display()),
    }
}

fn stranger(address: &Address) -> TcpStream {
    TcpStream::connect(tcp(address)).expect("it listens")
}

/// Whether the other end holds the connection still, once its preamble is read.
fn is_held(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    loop {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// All sorts of first words, and some that never end; the connections stay open.
fn babble(address: &Address) -> Vec<TcpStream> {
    let words: [&[u8]; 6] = [
        &[0xff; 4096],
        b"GET / HTTP/1.1\r\n\r\n",
        b"tram",
        PREAMBLES[0],
        &[PREAMBLES[0].as_slice(), &[3, 0, 1, 2, 3]].concat(),
        // A handshake of the greatest length, and nothing in it.
        &[PREAMBLES[1].as_slice(), &[0xff; 64]].concat(),
    ];
    let say = |words: &&[u8]| {
        let mut stream = stranger(address);
        // It may be closed before all is said.
        let _ = stream.write_all(words);
        stream
    };
    words.iter().map(say).collect()
}

#[test]
fn a_hundred_silent_strangers_do_not_keep_a_member_from_a_door() {
    for key in [None, key(1)] {
        let (door, visitors) = door(listener(), key.clone());
        let mut strangers: Vec<TcpStream> = (0..100).map(|_| stranger(door.address())).collect();
        assert!(strangers.len() > GREETINGS_MAX);
        let visited =
            go(door.address(), identity(11), key.as_ref(), Purpose::Join).expect("let in");
        assert_eq!(visitors.recv_timeout(LONG).expect("handed over").node, NodeId(11));
        // It did not wait until they had been there for too long: the last are there still, and the
        // first made room.
        assert!(is_held(strangers.last_mut().expect("a hundred")));
        assert!(!is_held(&mut strangers[0]));
        drop(visited);
    }
}

#[test]
fn a_hundred_silent_strangers_do_not_keep_a_member_from_meeting() {
    let (parts, mut listeners) = group(2, key(1));
    let (last, first) = (listeners.pop(), listeners.pop());
    let waiting = {
        let part = parts[0].clone();
        std::thread::spawn(move || part.join(first))
    };
    let mut strangers: Vec<TcpStream> =
        (0..100).map(|_| stranger(&parts[0].addresses[0])).collect();
    std::thread::sleep(Duration::from_millis(200));
    assert!(is_held(strangers.last_mut().expect("a hundred")));
    assert!(parts[1].join(last).is_ok());
    assert!(waiting.join().expect("no panic").is_ok());
}

#[test]
fn what_strangers_say_disturbs_no_meeting() {
    let (parts, mut listeners) = group(2, key(1));
    let (last, first) = (listeners.pop(), listeners.pop());
    let waiting = {
        let part = parts[0].clone();
        std::thread::spawn(move || part.join(first))
    };
    let held: Vec<_> = (0..6).map(|_| babble(&parts[0].addresses[0])).collect();
    std::thread::sleep(Duration::from_millis(200));
    assert!(parts[1].join(last).is_ok());
    assert!(waiting.join().expect("no panic").is_ok());
    drop(held);
}

#[test]
fn what_strangers_say_opens_no_door() {
    for key in [None, key(1)] {
        let (door, visitors) = door(listener(), key.clone());
        let held: Vec<_> = (0..20).map(|_| babble(door.address())).collect();
        let visited = go(door.address(), operator(), key.as_ref(), Purpose::Ask).expect("let in");
        assert_eq!(visitors.recv_timeout(LONG).expect("handed over").purpose, Purpose::Ask);
        drop((held, visited));
        assert!(visitors.try_recv().is_err());
    }
}

#[test]
fn a_door_can_be_dropped_while_it_greets() {
    let (door, visitors) = door(listener(), key(1));
    let address = door.address().clone();
    let mut strangers: Vec<TcpStream> = (0..20).map(|_| stranger(&address)).collect();
    let babbling = babble(&address);
    std::thread::sleep(Duration::from_millis(100));
    assert!(strangers.iter_mut().all(is_held));
    drop(door);
    // Its threads are gone, and what they held.
    assert!(strangers.iter_mut().all(|stream| !is_held(stream)));
    assert!(visitors.recv().is_err());
    drop(babbling);
}

/// A door whose callbacks wait until somebody drops the sender.
fn crowded_door() -> (Door, std::sync::mpsc::Sender<()>, Receiver<Purpose>) {
    let (release, held) = channel::<()>();
    let (sender, came) = channel();
    let held = Arc::new(Mutex::new(held));
    let door = Door::open(listener(), identity(10), NODES, None, move |visitor: Visitor| {
        // A test that ended need not know.
        let _ = sender.send(visitor.purpose);
        let _ = held.lock().map(|held| held.recv());
    });
    (door.expect("a thread"), release, came)
}

#[test]
fn too_many_visitors_are_told_to_come_again() {
    let (door, release, came) = crowded_door();
    let ask = || go(door.address(), operator(), None, Purpose::Ask);
    let join = |node| go(door.address(), identity(node), None, Purpose::Join);
    let others_max = u32::try_from(VISITORS_MAX - PEER_PLACES).expect("it is small");
    let mut visits: Vec<_> = (0..others_max)
        .map(|turn| if turn % 2 == 0 { ask() } else { join(11) }.expect("let in"))
        .collect();
    for error in [ask(), join(11)].map(|one| one.expect_err("too many")) {
        assert!(matches!(error, VisitError::Refused(Refusal::Busy)), "{error}");
    }
    // They keep no member out.
    let peer = || go(door.address(), identity(12), None, Purpose::Peer);
    visits.extend((0..PEER_PLACES).map(|_| peer().expect("let in")));
    let error = peer().expect_err("too many of all kinds");
    assert!(matches!(error, VisitError::Refused(Refusal::Busy)), "{error}");
    assert_eq!(came.iter().take(VISITORS_MAX).count(), visits.len());
    drop(release);
    while let Err(error) = ask() {
        assert!(matches!(error, VisitError::Refused(Refusal::Busy)), "{error}");
    }
}

/// A node of another hand, that speaks as it is written here, byte by byte.
fn by_hand(address: &Address) -> TcpStream {
    let mut stream = stranger(address);
    stream.write_all(PREAMBLES[0]).expect("taken");
    let mut preamble = [0; 16];
    stream.read_exact(&mut preamble).expect("an answer");
    assert_eq!(&preamble, PREAMBLES[0]);
    // Length, purpose, view, digest, node, incarnation.
    let mut hello = vec![29, 0, 1];
    hello.extend([0; 8]);
    hello.extend(42_u64.to_le_bytes());
    hello.extend(11_u32.to_le_bytes());
    hello.extend(11_000_u64.to_le_bytes());
    stream.write_all(&hello).expect("taken");
    let mut answer = [0; 31 + 3];
    stream.read_exact(&mut answer).expect("an answer");
    hello[19..23].copy_from_slice(&10_u32.to_le_bytes());
    hello[23..].copy_from_slice(&10_000_u64.to_le_bytes());
    assert_eq!((&answer[..31], &answer[31..]), (&hello[..], &[1, 0, 0][..]));
    stream.write_all(&[1, 0, 0]).expect("taken");
    stream
}

/// A host that loses its power says nothing; its visits must not stand for ever.
#[test]
fn the_kernel_looks_whether_a_silent_visitor_is_there() {
    let (door, visitors) = door(listener(), None);
    let visited = go(door.address(), identity(11), None, Purpose::Join).expect("let in");
    let visitor = visitors.recv_timeout(LONG).expect("handed over");
    for talk in [visited.talk, visitor.talk] {
        let stream = talk.into_connection().expect("over TCP").stream;
        assert!(sockopt::socket_keepalive(&stream).expect("an option"));
        let pause = sockopt::tcp_keepidle(&stream).expect("an option");
        assert!(pause <= LONG, "{pause:?}");
    }
}

#[test]
fn a_message_that_comes_in_pieces_is_waited_for_again() {
    let (door, visitors) = door(listener(), None);
    let mut stream = by_hand(door.address());
    let mut talk = visitors.recv_timeout(LONG).expect("handed over").talk;
    assert!(matches!(talk.receive(SHORT), Err(TalkError::TimeUp)));
    for piece in [&[5][..], &[0, b'p'], b"iec"] {
        stream.write_all(piece).expect("taken");
        assert!(matches!(talk.receive(SHORT), Err(TalkError::TimeUp)));
    }
    stream.write_all(b"e\x01\x00").expect("taken");
    assert_eq!(talk.receive(LONG).expect("whole now"), b"piece");
    // A part of the next was read already, so this cannot go on as a stream.
    assert!(matches!(talk.receive(SHORT), Err(TalkError::TimeUp)));
    assert!(talk.into_connection().is_none());
}

#[test]
fn who_stops_in_the_middle_of_a_message_is_gone() {
    let (door, visitors) = door(listener(), None);
    let mut stream = by_hand(door.address());
    let mut talk = visitors.recv_timeout(LONG).expect("handed over").talk;
    stream.write_all(b"\x09\x00half").expect("taken");
    drop(stream);
    assert!(matches!(talk.receive(LONG), Err(TalkError::Closed)));
    assert!(!talk.is_open());
    assert!(matches!(talk.send(b"hello?", LONG), Err(TalkError::Closed)));
}
