//! Unauthenticated peers cannot keep out a member, hold a slot indefinitely, or pass for a member.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{LONG, NODES, SHORT, go, group, identity, key, listener, operator, server};
use rustix::net::sockopt;
use tramontane_control::{
    Address, CLIENTS_MAX, Client, ControlServer, GREETINGS_MAX, OpenSessionError, PEER_SLOTS,
    Purpose, Refusal, SessionError,
};
use tramontane_core::ids::NodeId;

/// The first bytes of a connection in this version, without a key and with one.
const PREAMBLES: [&[u8; 16]; 2] =
    [b"tramontn\x0c\x00\x00\x00\x00\x00\x00\x00", b"tramontn\x0c\x00\x01\x00\x00\x00\x00\x00"];

fn tcp(address: &Address) -> SocketAddr {
    match address {
        Address::Tcp(address) => address.literal().expect("no name"),
        Address::Unix(path) => panic!("{}", path.display()),
    }
}

fn stranger(address: &Address) -> TcpStream {
    TcpStream::connect(tcp(address)).expect("it listens")
}

/// Returns whether the other end still holds the connection, after reading its preamble.
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

/// Opens connections with various first bytes, some of them incomplete, and keeps them open.
fn babble(address: &Address) -> Vec<TcpStream> {
    let words: [&[u8]; 6] = [
        &[0xff; 4096],
        b"GET / HTTP/1.1\r\n\r\n",
        b"tram",
        PREAMBLES[0],
        &[PREAMBLES[0].as_slice(), &[3, 0, 1, 2, 3]].concat(),
        // A handshake of maximum length, with meaningless content.
        &[PREAMBLES[1].as_slice(), &[0xff; 64]].concat(),
    ];
    let say = |words: &&[u8]| {
        let mut stream = stranger(address);
        // The connection may be closed before everything has been sent.
        let _ = stream.write_all(words);
        stream
    };
    words.iter().map(say).collect()
}

#[test]
fn silent_connections_do_not_block_a_control_server() {
    for key in [None, key(1)] {
        let (server, clients) = server(listener(), key.clone());
        let mut strangers: Vec<TcpStream> = (0..100).map(|_| stranger(server.address())).collect();
        assert!(strangers.len() > GREETINGS_MAX);
        let opened =
            go(server.address(), identity(11), key.as_ref(), Purpose::Join).expect("let in");
        assert_eq!(clients.recv_timeout(LONG).expect("handed over").node, NodeId(11));
        // The server did not wait for their time limit: the last peers are still connected, and the
        // first ones have made room.
        assert!(is_held(strangers.last_mut().expect("a hundred")));
        assert!(!is_held(&mut strangers[0]));
        drop(opened);
    }
}

#[test]
fn silent_connections_do_not_block_a_meeting() {
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
fn unauthenticated_bytes_do_not_disturb_a_meeting() {
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
fn unauthenticated_bytes_open_no_session() {
    for key in [None, key(1)] {
        let (server, clients) = server(listener(), key.clone());
        let held: Vec<_> = (0..20).map(|_| babble(server.address())).collect();
        let opened = go(server.address(), operator(), key.as_ref(), Purpose::Ask).expect("let in");
        assert_eq!(clients.recv_timeout(LONG).expect("handed over").purpose, Purpose::Ask);
        drop((held, opened));
        assert!(clients.try_recv().is_err());
    }
}

#[test]
fn server_can_be_dropped_during_greetings() {
    let (server, clients) = server(listener(), key(1));
    let address = server.address().clone();
    let mut strangers: Vec<TcpStream> = (0..20).map(|_| stranger(&address)).collect();
    let babbling = babble(&address);
    std::thread::sleep(Duration::from_millis(100));
    assert!(strangers.iter_mut().all(is_held));
    drop(server);
    // The server's threads have ended, and their connections with them.
    assert!(strangers.iter_mut().all(|stream| !is_held(stream)));
    assert!(clients.recv().is_err());
    drop(babbling);
}

/// Opens a control server whose callbacks wait until the sender is dropped.
fn crowded_server() -> (ControlServer, std::sync::mpsc::Sender<()>, Receiver<Purpose>) {
    let (release, held) = channel::<()>();
    let (sender, came) = channel();
    let held = Arc::new(Mutex::new(held));
    let server =
        ControlServer::open(listener(), identity(10), NODES, None, move |client: Client| {
            // A test that has ended does not need the message.
            let _ = sender.send(client.purpose);
            let _ = held.lock().map(|held| held.recv());
        });
    (server.expect("a thread"), release, came)
}

#[test]
fn excess_clients_are_refused_as_busy() {
    let (server, release, came) = crowded_server();
    let ask = || go(server.address(), operator(), None, Purpose::Ask);
    let join = |node| go(server.address(), identity(node), None, Purpose::Join);
    let others_max = u32::try_from(CLIENTS_MAX - PEER_SLOTS).expect("it is small");
    let mut sessions: Vec<_> = (0..others_max)
        .map(|turn| if turn % 2 == 0 { ask() } else { join(11) }.expect("let in"))
        .collect();
    for error in [ask(), join(11)].map(|one| one.expect_err("too many")) {
        assert!(matches!(error, OpenSessionError::Refused(Refusal::Busy)), "{error}");
    }
    // These clients do not keep out a member.
    let peer = || go(server.address(), identity(12), None, Purpose::Peer);
    sessions.extend((0..PEER_SLOTS).map(|_| peer().expect("let in")));
    let error = peer().expect_err("too many of all kinds");
    assert!(matches!(error, OpenSessionError::Refused(Refusal::Busy)), "{error}");
    assert_eq!(came.iter().take(CLIENTS_MAX).count(), sessions.len());
    drop(release);
    while let Err(error) = ask() {
        assert!(matches!(error, OpenSessionError::Refused(Refusal::Busy)), "{error}");
    }
}

/// A node of another implementation, which sends the protocol byte by byte.
fn by_hand(address: &Address) -> TcpStream {
    let mut stream = stranger(address);
    stream.write_all(PREAMBLES[0]).expect("taken");
    let mut preamble = [0; 16];
    stream.read_exact(&mut preamble).expect("an answer");
    // This byte says whether the peer's processor has instructions for AES; the test cannot know
    // that.
    preamble[11] = 0;
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

/// A host that loses power sends nothing, so its sessions must not last indefinitely.
#[test]
fn keepalive_is_enabled_for_client_connections() {
    let (server, clients) = server(listener(), None);
    let opened = go(server.address(), identity(11), None, Purpose::Join).expect("let in");
    let client = clients.recv_timeout(LONG).expect("handed over");
    for session in [opened.session, client.session] {
        let stream = session.into_connection().expect("over TCP").stream;
        assert!(sockopt::socket_keepalive(&stream).expect("an option"));
        let pause = sockopt::tcp_keepidle(&stream).expect("an option");
        assert!(pause <= LONG, "{pause:?}");
    }
}

#[test]
fn fragmented_message_survives_read_timeouts() {
    let (server, clients) = server(listener(), None);
    let mut stream = by_hand(server.address());
    let mut session = clients.recv_timeout(LONG).expect("handed over").session;
    assert!(matches!(session.receive(SHORT), Err(SessionError::TimeUp)));
    for piece in [&[5][..], &[0, b'p'], b"iec"] {
        stream.write_all(piece).expect("taken");
        assert!(matches!(session.receive(SHORT), Err(SessionError::TimeUp)));
    }
    stream.write_all(b"e\x01\x00").expect("taken");
    assert_eq!(session.receive(LONG).expect("whole now"), b"piece");
    // Part of the next message has already been read, so the session cannot become a stream.
    assert!(matches!(session.receive(SHORT), Err(SessionError::TimeUp)));
    assert!(session.into_connection().is_none());
}

#[test]
fn client_stalling_during_a_message_times_out() {
    let (server, clients) = server(listener(), None);
    let mut stream = by_hand(server.address());
    let mut session = clients.recv_timeout(LONG).expect("handed over").session;
    stream.write_all(b"\x09\x00half").expect("taken");
    drop(stream);
    assert!(matches!(session.receive(LONG), Err(SessionError::Closed)));
    assert!(!session.is_open());
    assert!(matches!(session.send(b"hello?", LONG), Err(SessionError::Closed)));
}
