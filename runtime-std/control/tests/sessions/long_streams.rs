//! Streams that are longer than a message. A stream either arrives completely, or both ends know
//! that it did not.

use std::io::{Cursor, Error, Read};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::support::{LONG, go, identity, key, listeners, server};
use tramontane_control::{Client, ControlServer, MESSAGE_MAX, Purpose, Session, SessionError};

/// Time limit for an end that stalls.
const BRIEF: Duration = Duration::from_millis(150);

/// Two ends, with the server and the folder that they need.
struct StreamPair {
    here: Session,
    there: Session,
    _server: (ControlServer, Receiver<Client>),
    _folder: tempfile::TempDir,
}

/// Runs a test over TCP and Unix sockets, with and without a key.
fn everywhere(test: impl Fn(StreamPair)) {
    for key in [None, key(1)] {
        for is_unix in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let (server, clients) =
                server(listeners(1, is_unix.then_some(&folder)).remove(0), key.clone());
            let here = go(server.address(), identity(11), key.as_ref(), Purpose::Join)
                .expect("let in")
                .session;
            let there = clients.recv_timeout(LONG).expect("handed over").session;
            test(StreamPair { here, there, _server: (server, clients), _folder: folder });
        }
    }
}

/// Returns bytes that do not repeat within the size of a message.
fn content(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..bytes).map(|_| next()).collect()
}

/// A source that returns few bytes at a time and, if so configured, fails at its end.
struct SlowSource {
    rest: Cursor<Vec<u8>>,
    fails: bool,
}

impl Read for SlowSource {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(4099);
        match self.rest.read(&mut into[..most])? {
            0 if self.fails => Err(Error::other("the disk is gone")),
            count => Ok(count),
        }
    }
}

fn source(bytes: usize, fails: bool) -> SlowSource {
    SlowSource { rest: Cursor::new(content(bytes)), fails }
}

#[test]
fn long_stream_arrives_whole_and_the_session_continues() {
    everywhere(|StreamPair { mut here, mut there, .. }| {
        for bytes in
            [0, 1, MESSAGE_MAX - 2, MESSAGE_MAX - 1, MESSAGE_MAX, 2 * MESSAGE_MAX - 2, 3_000_013]
        {
            let (sent, received) = std::thread::scope(|scope| {
                let sending = scope.spawn(|| here.send_stream(&mut source(bytes, false), LONG));
                let mut into = Vec::new();
                let limit = u64::try_from(bytes).expect("small");
                let received = there.receive_stream(&mut into, limit, LONG);
                assert_eq!(into, content(bytes));
                (sending.join().expect("no panic"), received)
            });
            assert_eq!(sent.expect("taken"), received.expect("it came"));
        }
        there.send(b"thanks", LONG).expect("taken");
        assert_eq!(here.receive(LONG).expect("it came"), b"thanks");
    });
}

#[test]
fn oversized_stream_is_refused_and_its_sender_stops() {
    everywhere(|StreamPair { mut here, mut there, .. }| {
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| here.send_stream(&mut std::io::repeat(7), LONG));
            let mut into = Vec::new();
            let error = there.receive_stream(&mut into, 1_000_000, LONG).expect_err("too long");
            assert!(matches!(error, SessionError::TooLong { limit: 1_000_000 }), "{error}");
            assert!(into.len() <= 1_000_000);
            let error = sending.join().expect("no panic").expect_err("nobody takes it");
            assert!(matches!(error, SessionError::Closed), "{error}");
        });
        assert!(!there.is_open() && !here.is_open());
    });
}

#[test]
fn peer_dying_during_a_stream_is_detected() {
    everywhere(|StreamPair { mut here, mut there, .. }| {
        let part = [&[0], &content(MESSAGE_MAX)[1..]].concat();
        here.send(&part, LONG).expect("taken");
        drop(here);
        let mut into = Vec::new();
        let error = there.receive_stream(&mut into, u64::MAX, LONG).expect_err("it is gone");
        assert!(matches!(error, SessionError::Closed), "{error}");
        assert_eq!(into, part[1..]);
    });
    everywhere(|StreamPair { mut here, there, .. }| {
        drop(there);
        let error = here.send_stream(&mut std::io::repeat(7), LONG).expect_err("it is gone");
        assert!(matches!(error, SessionError::Closed), "{error}");
    });
}

#[test]
fn wait_for_stalled_peer_is_bounded() {
    everywhere(|StreamPair { mut here, mut there, .. }| {
        let error =
            there.receive_stream(&mut Vec::new(), u64::MAX, BRIEF).expect_err("nothing comes");
        assert!(matches!(error, SessionError::TimeUp), "{error}");
        assert!(matches!(here.receive(LONG), Err(SessionError::Closed)));
    });
    everywhere(|StreamPair { mut here, there, .. }| {
        let error = here.send_stream(&mut std::io::repeat(7), BRIEF).expect_err("nobody takes it");
        assert!(matches!(error, SessionError::TimeUp), "{error}");
        drop(there);
    });
}

#[test]
fn failing_source_is_reported_and_the_session_continues() {
    everywhere(|StreamPair { mut here, mut there, .. }| {
        for bytes in [0, 10, 200_000] {
            let error = here.send_stream(&mut source(bytes, true), LONG).expect_err("it fails");
            assert!(matches!(error, SessionError::Local(_)), "{error}");
            let error =
                there.receive_stream(&mut Vec::new(), u64::MAX, LONG).expect_err("it failed");
            assert!(matches!(error, SessionError::Aborted), "{error}");
        }
        here.send(b"sorry", LONG).expect("taken");
        assert_eq!(there.receive(LONG).expect("it came"), b"sorry");
    });
}

#[test]
fn failure_to_write_stream_ends_session() {
    everywhere(|StreamPair { mut here, mut there, .. }| {
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| here.send_stream(&mut std::io::repeat(7), LONG));
            let mut small = [0_u8; 100_000];
            let error =
                there.receive_stream(&mut &mut small[..], u64::MAX, LONG).expect_err("full");
            assert!(matches!(error, SessionError::Local(_)), "{error}");
            let error = sending.join().expect("no panic").expect_err("nobody takes it");
            assert!(matches!(error, SessionError::Closed), "{error}");
        });
    });
}

#[test]
fn message_that_violates_stream_protocol_is_refused() {
    for message in [&[][..], &[0, 1, 2], &[3], &[9; 100]] {
        everywhere(|StreamPair { mut here, mut there, .. }| {
            here.send(message, LONG).expect("taken");
            let error = there.receive_stream(&mut Vec::new(), u64::MAX, LONG).expect_err("not one");
            assert!(matches!(error, SessionError::Malformed), "{error}");
        });
    }
    everywhere(|StreamPair { mut here, .. }| {
        let error = here.send(&vec![0; MESSAGE_MAX + 1], Duration::ZERO).expect_err("too long");
        assert!(matches!(error, SessionError::TooLong { .. }), "{error}");
        assert!(here.is_open());
    });
}
