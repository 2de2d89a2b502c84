//! Members meet over TCP: what works, and each way in which it does not, told apart.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_mesh::{Lifeline, MESSAGE_MAX, Mesh, MeshError, MeshOptions, Refusal, SharedKey, Sign};

static NEVER: AtomicBool = AtomicBool::new(false);

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(600);

/// One member's part, to be changed before it is used.
#[derive(Clone)]
struct Part {
    own: Rank,
    members: Vec<NodeId>,
    addresses: Vec<SocketAddr>,
    view: ViewId,
    digest: u64,
    key: Option<SharedKey>,
    time_limit: Duration,
}

impl Part {
    fn join(&self, listener: Option<TcpListener>) -> Result<Mesh<'static>, MeshError> {
        Mesh::join(MeshOptions {
            own: self.own,
            // What a mesh borrows lives as long as the flag that ends it: here for ever.
            members: self.members.clone().leak(),
            addresses: self.addresses.clone().leak(),
            listener,
            view: self.view,
            digest: self.digest,
            key: self.key.clone(),
            allow_clear: false,
            time_limit: self.time_limit,
            cancel: &NEVER,
        })
    }
}

/// A group of so many, each with a socket that listens already.
fn group(members: u16, key: Option<SharedKey>) -> (Vec<Part>, Vec<TcpListener>) {
    let listeners: Vec<TcpListener> =
        (0..members).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let addresses: Vec<SocketAddr> =
        listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
    let ids: Vec<NodeId> = (0..members).map(|rank| NodeId(u32::from(rank) + 10)).collect();
    let part = |own| Part {
        own: Rank(own),
        members: ids.clone(),
        addresses: addresses.clone(),
        view: ViewId(1),
        digest: 42,
        key: key.clone(),
        time_limit: LONG,
    };
    ((0..members).map(part).collect(), listeners)
}

fn key(byte: u8) -> Option<SharedKey> {
    Some(SharedKey::from_bytes([byte; 32]))
}

/// Lets all of these join at once.
fn join_all(parts: Vec<Part>, listeners: Vec<TcpListener>) -> Vec<Result<Mesh<'static>, MeshError>> {
    let joining: Vec<_> = parts
        .into_iter()
        .zip(listeners)
        .map(|(part, listener)| std::thread::spawn(move || part.join(Some(listener))))
        .collect();
    joining.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

fn joined(members: u16, key: Option<SharedKey>) -> Vec<Mesh<'static>> {
    let (parts, listeners) = group(members, key);
    join_all(parts, listeners).into_iter().map(|mesh| mesh.expect("they meet")).collect()
}

fn lifelines(members: u16, key: Option<SharedKey>) -> Vec<Vec<Option<Lifeline>>> {
    joined(members, key).into_iter().map(|mesh| mesh.into_lifelines(Duration::from_secs(3))).collect()
}

fn error(mesh: Result<Mesh<'static>, MeshError>) -> MeshError {
    mesh.expect_err("they must not meet")
}

#[test]
fn members_meet_and_exchange_with_and_without_a_key() {
    for key in [None, key(1)] {
        for members in [1, 2, 5] {
            let talking: Vec<_> = joined(members, key.clone())
                .into_iter()
                .enumerate()
                .map(|(own, mut mesh)| {
                    std::thread::spawn(move || {
                        for round in 0..3 {
                            let heard = mesh.exchange(|to| format!("{own} {to} {round}").into_bytes());
                            for (from, heard) in heard.expect("all are there").into_iter().enumerate() {
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
fn messages_may_be_long_and_not_longer() {
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
fn a_late_member_is_waited_for() {
    let (parts, listeners) = group(3, key(1));
    let joining: Vec<_> = parts
        .into_iter()
        .zip(listeners)
        .enumerate()
        .map(|(index, (part, listener))| {
            std::thread::spawn(move || {
                if index == 0 {
                    // Not even its port is open at first.
                    let address = listener.local_addr().expect("an address");
                    drop(listener);
                    std::thread::sleep(Duration::from_millis(300));
                    return part.join(Some(TcpListener::bind(address).expect("the port again")));
                }
                part.join(Some(listener))
            })
        })
        .collect();
    for thread in joining {
        assert!(thread.join().expect("no panic").is_ok());
    }
}

#[test]
fn who_is_missing_is_named() {
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
    assert!(started.elapsed() < SHORT * 4, "{:?}", started.elapsed());
}

#[test]
fn another_key_is_told_at_both_ends() {
    let (mut parts, listeners) = group(2, key(1));
    parts[1].key = key(2);
    parts[0].time_limit = SHORT;
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
fn a_key_at_one_end_alone_is_told_at_both() {
    for (first, second) in [(key(1), None), (None, key(1))] {
        let (mut parts, listeners) = group(2, None);
        parts[0].key = first;
        parts[1].key = second;
        parts[0].time_limit = SHORT;
        let mut results = join_all(parts, listeners).into_iter();
        let accepting = error(results.next().expect("two"));
        let is_told = matches!(accepting, MeshError::Missing { refused: Some((_, Refusal::KeyMode)), .. });
        assert!(is_told, "{accepting}");
        let connecting = error(results.next().expect("two"));
        assert!(matches!(connecting, MeshError::KeyMode { peer: NodeId(10), .. }), "{connecting}");
    }
}

#[test]
fn another_configuration_or_view_is_told_at_both_ends_with_whose_it_is() {
    let (mut parts, listeners) = group(2, key(1));
    parts[1].digest = 43;
    for (mesh, peer) in join_all(parts, listeners).into_iter().zip([NodeId(11), NodeId(10)]) {
        let error = error(mesh);
        assert!(matches!(error, MeshError::WrongDigest { peer: told } if told == peer), "{error}");
    }
    let (mut parts, listeners) = group(2, None);
    parts[0].view = ViewId(2);
    for (mesh, peer) in join_all(parts, listeners).into_iter().zip([NodeId(11), NodeId(10)]) {
        let error = error(mesh);
        assert!(matches!(error, MeshError::WrongView { peer: told } if told == peer), "{error}");
    }
}

#[test]
fn a_second_process_with_one_id_is_told_so() {
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
    // The same id, another process, another port.
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let double = error(parts[2].join(Some(other)));
    assert!(matches!(double, MeshError::DuplicateId { id: NodeId(12), .. }), "{double}");
    // Member 11 never came: the others are not disturbed by the double.
    for thread in [waiting, original] {
        let error = error(thread.join().expect("no panic"));
        assert!(matches!(&error, MeshError::Missing { missing, .. } if *missing == [NodeId(11)]), "{error}");
    }
}

#[test]
fn a_member_that_died_while_starting_may_come_again() {
    let (parts, mut listeners) = group(3, None);
    let (last, middle, first) =
        (listeners.pop().expect("3"), listeners.pop().expect("2"), listeners.pop().expect("1"));
    let waiting = {
        let part = parts[0].clone();
        std::thread::spawn(move || part.join(Some(first)))
    };
    let mut short = parts[2].clone();
    short.time_limit = SHORT;
    // It gives up, since 11 is not there, and its connections close.
    let early = error(short.join(Some(last.try_clone().expect("a handle"))));
    assert!(matches!(early, MeshError::Missing { .. }), "{early}");
    let others = join_all(vec![parts[1].clone(), parts[2].clone()], vec![middle, last]);
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    assert!(waiting.join().expect("no panic").is_ok());
}

#[test]
fn another_program_or_version_is_told_apart() {
    // Somebody answers who is no member at all.
    let (parts, mut listeners) = group(2, None);
    let stranger = listeners.swap_remove(0);
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = stranger.accept().expect("a connection");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("written");
        // It is closed with what was not read, which resets it.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let connecting = error(parts[1].join(listeners.pop()));
    assert!(matches!(connecting, MeshError::WrongVersion { .. }), "{connecting}");
    answering.join().expect("no panic");
}

#[test]
fn strangers_disturb_nobody() {
    let (parts, mut listeners) = group(2, key(1));
    let address = parts[0].addresses[0];
    let waiting = {
        let (part, listener) = (parts[0].clone(), listeners.swap_remove(0));
        std::thread::spawn(move || part.join(Some(listener)))
    };
    // Garbage, half a word, silence; the last three more often than are let in at once.
    let mut held = Vec::new();
    for index in 0..40_u8 {
        let mut stream = TcpStream::connect(address).expect("it listens");
        match index % 4 {
            0 => drop(stream.write_all(&[0xff; 4096])),
            1 => drop(stream.write_all(b"tram")),
            2 => {
                let mut preamble = *b"tramontn\x01\x00\x01\x00\x00\x00\x00\x00";
                drop(stream.write_all(&preamble));
                preamble.fill(0xff);
                // A handshake of the greatest length, and nothing in it.
                drop(stream.write_all(&preamble));
            }
            _ => {}
        }
        held.push(stream);
    }
    drop(held.split_off(20));
    std::thread::sleep(Duration::from_millis(200));
    let (part, listener) = (parts[1].clone(), listeners.pop());
    assert!(part.join(listener).is_ok());
    assert!(waiting.join().expect("no panic").is_ok());
}

#[test]
fn what_is_wrong_at_once_is_told_at_once() {
    let (parts, listeners) = group(2, None);
    let mut part = parts[0].clone();
    part.addresses[1] = SocketAddr::from(([192, 0, 2, 1], 9));
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
    part.addresses[0] = SocketAddr::from(([192, 0, 2, 1], 9));
    part.key = key(1);
    let elsewhere = error(part.join(None));
    assert!(matches!(elsewhere, MeshError::Listen { .. }), "{elsewhere}");
}

#[test]
fn a_wait_can_be_ended() {
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
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn lifelines_tell_who_left_from_who_is_gone() {
    for key in [None, key(1)] {
        let mut all = lifelines(3, key);
        let mut look = |from: usize, of: usize, expected: Sign| {
            let until = Instant::now() + Duration::from_secs(5);
            let line = all[from][of].as_mut().expect("another member");
            let mut sign = line.look();
            while sign != expected && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
                sign = line.look();
            }
            assert_eq!(sign, expected, "{from} of {of}");
        };
        look(0, 1, Sign::Alive);
        look(1, 2, Sign::Alive);
        for line in all[1].iter_mut().flatten() {
            line.leave();
        }
        all[2].clear();
        let mut see = |of: usize, expected: Sign| {
            let line = all[0][of].as_mut().expect("another member");
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!((line.look(), line.look()), (expected, expected));
        };
        see(1, Sign::Left);
        see(2, Sign::Gone);
    }
}

#[test]
fn a_peer_that_goes_in_the_middle_is_named() {
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
