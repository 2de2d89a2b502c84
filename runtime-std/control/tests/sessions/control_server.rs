//! Control servers of running processes, over TCP and Unix sockets. Tests which clients are
//! admitted or refused, and the reports at both ends.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::support::{
    DIGEST, LONG, NEVER, NODES, SHORT, error, go, group, group_at, identity, key, listeners,
    operator, server,
};
use tramontane_control::{
    Address, Client, ControlServer, Identity, MESSAGE_MAX, Mesh, MeshError, OpenSessionError,
    Purpose, Refusal, SessionError, incarnation, open_session,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};

/// Runs a test with each kind of address, with and without a key.
fn everywhere(
    test: impl Fn(Address, Option<tramontane_control::SharedKey>, tramontane_control::Listener),
) {
    for key in [None, key(1)] {
        for is_unix in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let listener = listeners(1, is_unix.then_some(&folder)).remove(0);
            test(listener.address().clone(), key.clone(), listener);
        }
    }
}

#[test]
fn server_passes_admitted_client_to_its_callback() {
    everywhere(|address, key, listener| {
        let (server, clients) = server(listener, key.clone());
        assert_eq!(*server.address(), address);
        for (who, purpose) in [
            (identity(11), Purpose::Peer),
            (identity(12), Purpose::Join),
            (operator(), Purpose::Ask),
        ] {
            let mut opened = go(&address, who, key.as_ref(), purpose).expect("let in");
            assert_eq!((opened.node, opened.incarnation), (NodeId(10), 10_000));
            let mut client = clients.recv_timeout(LONG).expect("handed over");
            let came = (client.purpose, client.node, client.incarnation);
            assert_eq!(came, (purpose, who.node, who.incarnation));
            for size in [0, 1, MESSAGE_MAX] {
                opened.session.send(&vec![7; size], LONG).expect("taken");
                let heard = client.session.receive(LONG).expect("it came");
                client.session.send(&heard, LONG).expect("taken");
                assert_eq!(opened.session.receive(LONG).expect("it came"), vec![7; size]);
            }
            assert!(opened.session.is_open() && client.session.is_open());
            drop(opened);
            assert!(matches!(client.session.receive(LONG), Err(SessionError::Closed)));
            assert!(!client.session.is_open());
        }
    });
}

#[test]
fn refused_client_learns_the_exact_reason() {
    everywhere(|address, own_key, listener| {
        let (_server, clients) = server(listener, own_key.clone());
        let refusal =
            |client: Identity, purpose| match go(&address, client, own_key.as_ref(), purpose) {
                Err(OpenSessionError::Refused(refusal)) => refusal,
                other => panic!("{other:?}"),
            };
        for purpose in [Purpose::Peer, Purpose::Join, Purpose::Ask] {
            let stray = Identity { digest: 43, ..identity(11) };
            let error = go(&address, stray, own_key.as_ref(), purpose).expect_err("another group");
            assert!(
                matches!(error, OpenSessionError::OtherConfiguration { digest: DIGEST }),
                "{error}"
            );
        }
        for purpose in [Purpose::Peer, Purpose::Join] {
            assert_eq!(refusal(identity(10), purpose), Refusal::DuplicateId);
            assert_eq!(refusal(identity(99), purpose), Refusal::NotAMember);
            assert_eq!(refusal(operator(), purpose), Refusal::NotAMember);
        }
        let other_mode = if own_key.is_some() { None } else { key(1) };
        let error =
            go(&address, identity(11), other_mode.as_ref(), Purpose::Peer).expect_err("no key");
        assert!(matches!(error, OpenSessionError::Refused(Refusal::KeyMode)), "{error}");
        if own_key.is_some() {
            let error =
                go(&address, identity(11), key(2).as_ref(), Purpose::Ask).expect_err("another key");
            assert!(matches!(error, OpenSessionError::WrongKey), "{error}");
        }
        let error =
            go(&address, identity(11), own_key.as_ref(), Purpose::Meet).expect_err("not so");
        assert!(matches!(error, OpenSessionError::Io(_)), "{error}");
        // None of these clients was passed to the callback, and the server is still running.
        assert!(clients.try_recv().is_err());
        assert!(go(&address, operator(), own_key.as_ref(), Purpose::Ask).is_ok());
    });
}

#[test]
fn starting_member_learns_that_group_is_running() {
    everywhere(|address, key, listener| {
        let (_server, clients) = server(listener, key.clone());
        let (mut parts, mut listeners) = group(2, key);
        parts[1].addresses[0] = address;
        // The server does not compare the view.
        parts[1].view = ViewId(9);
        let started = Instant::now();
        let error = error(parts[1].join(listeners.pop()));
        assert!(matches!(error, MeshError::Running { peer: NodeId(10) }), "{error}");
        assert!(started.elapsed() < LONG / 2);
        assert!(clients.try_recv().is_err());
    });
}

#[test]
fn client_is_refused_without_disturbing_the_meeting() {
    for is_unix in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let (parts, mut listeners) = group_at(listeners(2, is_unix.then_some(&folder)), key(1));
        let (last, first) = (listeners.pop(), listeners.pop());
        let waiting = {
            let part = parts[0].clone();
            std::thread::spawn(move || part.join(first))
        };
        let address = &parts[0].addresses[0];
        for (who, purpose) in [
            (identity(11), Purpose::Peer),
            (identity(12), Purpose::Join),
            (operator(), Purpose::Ask),
        ] {
            let error = go(address, who, key(1).as_ref(), purpose).expect_err("not yet");
            assert!(matches!(error, OpenSessionError::Refused(Refusal::NotRunning)), "{error}");
            // A client of another group does not end the meeting either, whatever identity it
            // claims to have.
            let stray = Identity { digest: 43, ..who };
            let error = go(address, stray, key(1).as_ref(), purpose).expect_err("another group");
            assert!(
                matches!(error, OpenSessionError::OtherConfiguration { digest: DIGEST }),
                "{error}"
            );
        }
        assert!(parts[1].join(last).is_ok());
        assert!(waiting.join().expect("no panic").is_ok());
    }
}

#[test]
fn listener_serves_the_meeting_then_the_control_server() {
    for is_unix in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let (parts, mut listeners) = group_at(listeners(2, is_unix.then_some(&folder)), None);
        let kept = listeners[0].try_clone().expect("a handle");
        let lives = [incarnation().expect("random"), incarnation().expect("random")];
        let meeting: Vec<_> = parts
            .iter()
            .zip(lives)
            .map(|(part, life)| {
                let (part, listener) = (part.clone(), listeners.remove(0));
                std::thread::spawn(move || {
                    part.join_as(Some(listener), Some(life)).expect("they meet")
                })
            })
            .collect();
        let meshes: Vec<Mesh<'_>> =
            meeting.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        assert!(meshes.iter().all(|mesh| mesh.incarnations() == lives));
        let mut sessions: Vec<_> = meshes.into_iter().map(Mesh::into_sessions).collect();
        assert!(sessions[0][0].is_none() && sessions[1][1].is_none());
        sessions[0][1].as_mut().expect("a peer").send(b"on we go", LONG).expect("taken");
        assert_eq!(
            sessions[1][0].as_mut().expect("a peer").receive(LONG).expect("it came"),
            b"on we go"
        );
        // A client that connects before the server is open waits.
        let coming = {
            let address = parts[0].addresses[0].clone();
            std::thread::spawn(move || go(&address, operator(), None, Purpose::Ask))
        };
        let who = Identity { incarnation: lives[0], ..identity(10) };
        let _server = ControlServer::open(kept, who, NODES, None, |_| {}).expect("a thread");
        assert_eq!(coming.join().expect("no panic").expect("let in").incarnation, lives[0]);
    }
}

#[test]
fn missing_listener_is_reported_within_time_limit() {
    everywhere(|address, key, listener| {
        // The listener is bound, but no connection is accepted.
        let error = open_session(&address, &operator(), key.as_ref(), Purpose::Ask, SHORT, &NEVER);
        assert!(matches!(error, Err(OpenSessionError::TimeUp)), "{error:?}");
        let cancelled = AtomicBool::new(true);
        let error =
            open_session(&address, &operator(), key.as_ref(), Purpose::Ask, LONG, &cancelled);
        assert!(matches!(error, Err(OpenSessionError::Cancelled)), "{error:?}");
        drop(listener);
        let started = Instant::now();
        let error = go(&address, operator(), key.as_ref(), Purpose::Ask);
        assert!(matches!(error, Err(OpenSessionError::NotThere)), "{error:?}");
        assert!(started.elapsed() < LONG / 2);
    });
}

#[test]
fn dropped_server_ends_sessions_of_its_callbacks() {
    everywhere(|address, key, listener| {
        let (sender, kept) = channel();
        let (ended, endings) = channel();
        let callback = move |mut client: Client| {
            if client.purpose == Purpose::Peer {
                return drop(sender.send(client));
            }
            drop(ended.send(client.session.receive(LONG).expect_err("nothing comes")));
        };
        let server = ControlServer::open(listener, identity(10), NODES, key.clone(), callback)
            .expect("a thread");
        let mut peer = go(&address, identity(11), key.as_ref(), Purpose::Peer).expect("let in");
        let mut kept = kept.recv_timeout(LONG).expect("handed over");
        let _asking = go(&address, operator(), key.as_ref(), Purpose::Ask).expect("let in");
        std::thread::sleep(Duration::from_millis(100));
        let started = Instant::now();
        drop(server);
        assert!(started.elapsed() < LONG / 2, "{:?}", started.elapsed());
        assert!(matches!(endings.recv_timeout(LONG), Ok(SessionError::Stopped)));
        peer.session.send(b"still here", LONG).expect("taken");
        assert_eq!(kept.session.receive(LONG).expect("it came"), b"still here");
        assert!(matches!(
            go(&address, operator(), key.as_ref(), Purpose::Ask),
            Err(OpenSessionError::NotThere)
        ));
    });
}

#[test]
fn tcp_session_can_become_a_plain_stream() {
    everywhere(|address, key, listener| {
        let (_server, clients) = server(listener, key.clone());
        let mut opened = go(&address, identity(11), key.as_ref(), Purpose::Peer).expect("let in");
        let mut client = clients.recv_timeout(LONG).expect("handed over");
        opened.session.send(b"first", LONG).expect("taken");
        assert_eq!(client.session.receive(LONG).expect("it came"), b"first");
        let connections = (opened.session.into_connection(), client.session.into_connection());
        if matches!(address, Address::Unix(_)) {
            return assert!(connections.0.is_none() && connections.1.is_none());
        }
        let (here, there) = (connections.0.expect("TCP"), connections.1.expect("TCP"));
        assert_eq!((here.cipher.is_some(), there.cipher.is_some()), (key.is_some(), key.is_some()));
        std::io::Write::write_all(&mut &here.stream, b"bytes").expect("taken");
        let mut bytes = [0; 5];
        std::io::Read::read_exact(&mut &there.stream, &mut bytes).expect("they came");
        assert_eq!(&bytes, b"bytes");
    });
}

#[test]
fn ranks_over_unix_sockets_match_the_meeting() {
    let folder = tempfile::tempdir().expect("a folder");
    let (parts, listeners) = group_at(listeners(3, Some(&folder)), None);
    assert_eq!(parts[2].own, Rank(2));
    for mesh in crate::support::join_all(parts, listeners) {
        mesh.expect("they meet");
    }
}
