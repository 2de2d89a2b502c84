//! Incompatible members. Both ends can tell the kinds of mismatch apart.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{DIGEST, SHORT, error, group, join_all, key, listener};
use tramontane_control::{MeshError, Refusal};
use tramontane_core::ids::{NodeId, Rank, ViewId};

#[test]
fn both_ends_report_a_key_mismatch() {
    let (mut parts, listeners) = group(2, key(1));
    parts[1].key = key(2);
    // A different process may have a member's address, so both members keep trying until their time
    // limit.
    parts.iter_mut().for_each(|part| part.time_limit = SHORT);
    let mut results = join_all(parts, listeners).into_iter();
    match error(results.next().expect("two")) {
        MeshError::Missing { missing, refused: Some((_, Refusal::Key)), .. } => {
            assert_eq!(missing, [NodeId(11)]);
        }
        other => panic!("{other}"),
    }
    let second = error(results.next().expect("two"));
    assert!(matches!(second, MeshError::WrongKey { peer: NodeId(10), .. }), "{second}");
}

#[test]
fn both_ends_report_key_configured_on_only_one() {
    for (first, second) in [(key(1), None), (None, key(1))] {
        let (mut parts, listeners) = group(2, None);
        parts[0].key = first;
        parts[1].key = second;
        parts.iter_mut().for_each(|part| part.time_limit = SHORT);
        let mut results = join_all(parts, listeners).into_iter();
        let accepting = error(results.next().expect("two"));
        let is_told =
            matches!(accepting, MeshError::Missing { refused: Some((_, Refusal::KeyMode)), .. });
        assert!(is_told, "{accepting}");
        let connecting = error(results.next().expect("two"));
        assert!(matches!(connecting, MeshError::KeyMode { peer: NodeId(10), .. }), "{connecting}");
    }
}

#[test]
fn both_ends_report_mismatched_configuration_or_view() {
    let (mut parts, listeners) = group(2, key(1));
    parts[1].digest = 43;
    let others = [(NodeId(11), 43), (NodeId(10), DIGEST)];
    for (mesh, other) in join_all(parts, listeners).into_iter().zip(others) {
        let error = error(mesh);
        assert!(
            matches!(error, MeshError::WrongDigest { peer, digest } if (peer, digest) == other),
            "{error}"
        );
    }
    let (mut parts, listeners) = group(2, None);
    parts[0].view = ViewId(2);
    for (mesh, peer) in join_all(parts, listeners).into_iter().zip([NodeId(11), NodeId(10)]) {
        let error = error(mesh);
        assert!(matches!(error, MeshError::WrongView { peer: told } if told == peer), "{error}");
    }
}

/// The members of a restarting group meet in a view that the node is not in.
#[test]
fn outsider_learns_that_the_view_differs() {
    let (parts, mut listeners) = group(3, None);
    let Ok([mut member, _, mut outside]) = <[_; 3]>::try_from(parts) else { panic!("three") };
    outside.time_limit = SHORT;
    (member.view, member.time_limit) = (ViewId(2), Duration::from_secs(3));
    member.members.truncate(2);
    member.addresses.truncate(2);
    let (last, first) = (listeners.pop(), listeners.swap_remove(0));
    let meeting = std::thread::spawn(move || member.join(Some(first)));
    let refused = error(outside.join(last));
    assert!(matches!(refused, MeshError::WrongView { peer: NodeId(10) }), "{refused}");
    // The visitor does not disturb the member, which still waits for the other one.
    let error = error(meeting.join().expect("no panic"));
    let waited = matches!(&error, MeshError::Missing { missing, .. } if *missing == [NodeId(11)]);
    assert!(waited, "{error}");
}

#[test]
fn second_process_with_the_same_id_is_refused() {
    let (parts, mut listeners) = group(3, key(1));
    let (last, first) = (listeners.pop().expect("three"), listeners.swap_remove(0));
    let waiting = {
        let mut part = parts[0].clone();
        part.time_limit = Duration::from_secs(3);
        std::thread::spawn(move || part.join(Some(first)))
    };
    let original = {
        let mut part = parts[2].clone();
        part.time_limit = Duration::from_secs(3);
        std::thread::spawn(move || part.join(Some(last)))
    };
    std::thread::sleep(Duration::from_millis(500));
    // The same id, used by another process at another port.
    let other = listener();
    let double = error(parts[2].join(Some(other)));
    assert!(matches!(double, MeshError::DuplicateId { id: NodeId(12), .. }), "{double}");
    // Member 11 never started, so the duplicate does not disturb the others.
    for thread in [waiting, original] {
        let error = error(thread.join().expect("no panic"));
        assert!(
            matches!(&error, MeshError::Missing { missing, .. } if *missing == [NodeId(11)]),
            "{error}"
        );
    }
}

#[test]
fn other_programs_and_versions_are_distinguished() {
    // The program that answers is not a member.
    let (mut parts, mut listeners) = group(2, None);
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    parts[1].addresses[0] = stranger.local_addr().expect("an address").into();
    let address = stranger.local_addr().expect("an address");
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let answering = std::thread::spawn(move || {
        while let Ok((mut stream, _)) = stranger.accept() {
            if over.load(Ordering::Relaxed) {
                return;
            }
            // The other end may have closed the connection.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            // The connection is closed with unread bytes, which resets it.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    parts[1].time_limit = SHORT;
    let connecting = error(parts[1].join(listeners.pop()));
    assert!(matches!(connecting, MeshError::WrongVersion { .. }), "{connecting}");
    is_over.store(true, Ordering::Relaxed);
    drop(TcpStream::connect(address));
    answering.join().expect("no panic");
}

#[test]
fn local_errors_are_reported_without_waiting() {
    let (parts, listeners) = group(2, None);
    let mut part = parts[0].clone();
    part.addresses[1] = SocketAddr::from(([192, 0, 2, 1], 9)).into();
    assert!(matches!(error(part.join(None)), MeshError::KeyNeeded { .. }));
    let mut part = parts[0].clone();
    part.own = Rank(2);
    assert!(matches!(error(part.join(None)), MeshError::Addresses { .. }));
    let mut part = parts[0].clone();
    part.members[1] = part.members[0];
    assert!(matches!(error(part.join(None)), MeshError::DuplicateId { id: NodeId(10), .. }));
    let in_use = error(parts[0].join(None));
    assert!(matches!(in_use, MeshError::AddressInUse { .. }), "{in_use}");
    drop(listeners);
    let mut part = parts[0].clone();
    part.addresses[0] = SocketAddr::from(([192, 0, 2, 1], 9)).into();
    part.key = key(1);
    let elsewhere = error(part.join(None));
    assert!(matches!(elsewhere, MeshError::Listen { .. }), "{elsewhere}");
}
