//! Members meet and exchange messages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{LONG, MemberSettings, SHORT, error, group, join_all, joined, key};
use tramontane_control::{Address, Listener, MESSAGE_MAX, Mesh, MeshError, MeshOptions};
use tramontane_core::ids::NodeId;

#[test]
fn members_exchange_messages_with_or_without_key() {
    for key in [None, key(1)] {
        for members in [1, 2, 5] {
            let talking: Vec<_> = joined(members, key.clone())
                .into_iter()
                .enumerate()
                .map(|(own, mut mesh)| {
                    std::thread::spawn(move || {
                        for round in 0..3 {
                            let heard =
                                mesh.exchange(|to| format!("{own} {to} {round}").into_bytes());
                            for (from, heard) in
                                heard.expect("all are there").into_iter().enumerate()
                            {
                                let said = format!("{from} {own} {round}");
                                let expected = if from == own { String::new() } else { said };
                                assert_eq!(String::from_utf8(heard).expect("text"), expected);
                            }
                            mesh.barrier().expect("all are there");
                        }
                    })
                })
                .collect();
            talking.into_iter().for_each(|thread| thread.join().expect("no panic"));
        }
    }
}

#[test]
fn overlong_messages_are_refused() {
    for key in [None, key(1)] {
        let talking: Vec<_> = joined(2, key)
            .into_iter()
            .map(|mut mesh| {
                std::thread::spawn(move || {
                    let heard = mesh.exchange(|_| vec![9; MESSAGE_MAX]).expect("all are there");
                    assert!(heard.iter().any(|heard| *heard == vec![9; MESSAGE_MAX]));
                    let error = mesh.exchange(|_| vec![9; MESSAGE_MAX + 1]).expect_err("too long");
                    assert!(matches!(error, MeshError::TooLong { .. }), "{error}");
                })
            })
            .collect();
        talking.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}

#[test]
fn meeting_waits_for_a_late_member() {
    let (parts, listeners) = group(3, key(1));
    let joining: Vec<_> = parts
        .into_iter()
        .zip(listeners)
        .enumerate()
        .map(|(index, (part, listener))| {
            std::thread::spawn(move || {
                if index == 0 {
                    // At first, even the address's port is closed.
                    let address = listener.address().clone();
                    drop(listener);
                    std::thread::sleep(Duration::from_millis(300));
                    return part.join(Some(bind_again(&address)));
                }
                part.join(Some(listener))
            })
        })
        .collect();
    for thread in joining {
        assert!(thread.join().expect("no panic").is_ok());
    }
}

/// The port may briefly have been given to another process's connection in the meantime.
fn bind_again(address: &Address) -> Listener {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match Listener::bind(address) {
            Ok(listener) => return listener,
            Err(error) => assert!(Instant::now() < until, "the port again: {error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn error_names_missing_members() {
    let (mut parts, mut listeners) = group(4, None);
    parts.truncate(2);
    listeners.truncate(2);
    parts.iter_mut().for_each(|part| part.time_limit = SHORT);
    let started = Instant::now();
    for mesh in join_all(parts, listeners) {
        match error(mesh) {
            MeshError::Missing { missing, .. } => assert_eq!(missing, [NodeId(12), NodeId(13)]),
            other => panic!("{other}"),
        }
    }
    assert!(started.elapsed() < LONG / 2, "{:?}", started.elapsed());
}

/// Any of the three members may fail: some members connect to it, and it connects to others.
#[test]
fn member_that_died_while_starting_can_restart() {
    for dying in 0..3 {
        let (late, waiting) = ((dying + 1) % 3, (dying + 2) % 3);
        let (parts, listeners) = group(3, None);
        let join = |member: usize, time_limit| {
            let part = MemberSettings { time_limit, ..parts[member].clone() };
            let listener = listeners[member].try_clone().expect("a handle");
            std::thread::spawn(move || part.join(Some(listener)))
        };
        let first = join(waiting, LONG);
        // The member gives up because another one is missing, and its connections are closed.
        let early = error(join(dying, SHORT).join().expect("no panic"));
        assert!(matches!(early, MeshError::Missing { .. }), "{dying}: {early}");
        let (second, third) = (join(dying, LONG), join(late, LONG));
        // A member that ends its connections is missing again at those that still wait for others.
        let all_met = [first, second, third].map(|member| member.join().expect("no panic"));
        assert!(all_met.iter().all(Result::is_ok), "{dying} came again: {all_met:?}");
    }
}

#[test]
fn meeting_wait_can_be_cancelled() {
    let cancel = AtomicBool::new(false);
    let (parts, mut listeners) = group(2, None);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let part = &parts[1];
        let (listener, cancel) = (listeners.pop(), &cancel);
        drop(listeners);
        let waiting = scope.spawn(move || {
            let mesh = Mesh::join(MeshOptions {
                own: part.own,
                members: &part.members,
                addresses: &part.addresses,
                listener,
                incarnation: None,
                view: part.view,
                digest: part.digest,
                key: None,
                allow_clear: false,
                time_limit: LONG,
                cancel,
            });
            assert!(matches!(mesh, Err(MeshError::Cancelled)), "{mesh:?}");
        });
        std::thread::sleep(Duration::from_millis(200));
        cancel.store(true, Ordering::Relaxed);
        waiting.join().expect("no panic");
    });
    assert!(started.elapsed() < LONG / 2);
}

#[test]
fn error_names_peer_that_leaves_during_exchange() {
    let mut meshes = joined(3, key(1)).into_iter();
    let (mut first, second) = (meshes.next().expect("3"), meshes.next().expect("2"));
    let third = meshes.next().expect("1");
    drop(second);
    let others = std::thread::spawn(move || {
        let mut third = third;
        third.barrier()
    });
    let error = first.barrier().expect_err("one is gone");
    assert!(matches!(error, MeshError::PeerGone { peer: NodeId(11) }), "{error}");
    assert!(others.join().expect("no panic").is_err());
}
