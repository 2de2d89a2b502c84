//! Atomic multicast over TCP: three members, all of which send, deliver the same.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use tramontane_control::SharedKey;
use tramontane_core::ids::{Rank, SubgroupId};
use tramontane_core::multicast::Batch;
use tramontane_runtime::configuration::GroupConfiguration;
use tramontane_runtime::member::{FIXED_VIEW, Member, Memory, Polled, Settings, Stopped};
use tramontane_runtime::tcp::{self, Tcp, TcpOptions, meet};
use xxhash_rust::xxh3::Xxh3;

const MEMBERS: u16 = 3;
const PATIENCE: Duration = Duration::from_secs(20);
const EACH: u64 = 3_000;
const TOTAL: u64 = EACH * MEMBERS as u64;

fn key() -> Option<SharedKey> {
    Some(SharedKey::from_bytes([3; 32]))
}

/// Sockets that listen, and where.
fn listeners(count: u16) -> (Vec<TcpListener>, Vec<SocketAddr>) {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let addresses =
        listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
    (listeners, addresses)
}

fn member(
    group: &GroupConfiguration,
    own: Rank,
    addresses: &[SocketAddr],
    listener: TcpListener,
    key: Option<SharedKey>,
    socket_bytes: Option<usize>,
) -> Member<Tcp> {
    let options = TcpOptions {
        addresses,
        terms: 0,
        listener: Some(listener),
        view: FIXED_VIEW,
        key,
        allow_clear: false,
        time_limit: PATIENCE,
        cancel: &AtomicBool::new(false),
        settings: tcp::Settings { socket_bytes, ..tcp::Settings::default() },
    };
    group
        .with_layout(|layout| {
            let (fabric, rows) = meet(layout, own, options).expect("they meet");
            Member::open(layout, own, Memory::new(rows), fabric, &Settings::default())
                .expect("it opens")
        })
        .expect("a group")
}

/// A message whose length and bytes follow from who sent it and when.
fn message(rank: u64, number: u64, longest: u64) -> Vec<u8> {
    let length = (number * 7919 + rank * 31) % (longest - 15) + 16;
    let mut bytes = vec![
        u8::try_from((rank + number) % 251).expect("a byte");
        usize::try_from(length).expect("short")
    ];
    bytes[..8].copy_from_slice(&rank.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Starts a member that digests what it delivers, and checks each message against what was sent.
fn start(member: Member<Tcp>, longest: u64) -> (Polled, mpsc::Receiver<u128>) {
    let (done, digest) = mpsc::channel();
    let (mut hash, mut count, mut next) = (Xxh3::new(), 0, [0_u64; MEMBERS as usize]);
    let application = move |batch: &mut Batch<'_>| {
        for delivered in batch {
            let rank = delivered.rank.index();
            assert_eq!(delivered.payload, message(rank as u64, next[rank], longest), "from {rank}");
            next[rank] += 1;
            hash.update(&delivered.place.0.to_le_bytes());
            hash.update(delivered.payload);
            count += 1;
            if count == TOTAL {
                let _ = done.send(hash.digest128());
            }
        }
    };
    (member.spawn(application).expect("a thread"), digest)
}

/// Three members send and deliver; gives each one's digest.
fn run(
    window: u32,
    longest: u32,
    key: Option<SharedKey>,
    socket_bytes: Option<usize>,
) -> Vec<u128> {
    let group = GroupConfiguration::single(MEMBERS, MEMBERS, window, longest);
    let (listeners, addresses) = listeners(MEMBERS);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..MEMBERS)
            .map(Rank)
            .zip(listeners)
            .map(|(own, listener)| {
                let (group, addresses, key) = (&group, &addresses, key.clone());
                scope.spawn(move || {
                    let member = member(group, own, addresses, listener, key, socket_bytes);
                    let (running, digest) = start(member, longest.into());
                    let sender = running.sender(SubgroupId(0)).expect("all send");
                    for number in 0..EACH {
                        let bytes = message(u64::from(own.0), number, longest.into());
                        sender.send(&bytes, PATIENCE).expect("it is sent");
                    }
                    let digest = digest.recv_timeout(PATIENCE).expect("all is delivered");
                    assert!(running.settle(PATIENCE));
                    (digest, running)
                })
            })
            .collect();
        let ended: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        // All have all: who closes first is lost to nobody who still waits for it.
        ended
            .into_iter()
            .map(|(digest, running)| {
                drop(running);
                digest
            })
            .collect()
    })
}

#[track_caller]
fn assert_same(digests: &[u128]) {
    assert_eq!(digests.len(), usize::from(MEMBERS));
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:x?}");
}

#[test]
fn members_deliver_the_same_in_clear() {
    assert_same(&run(100, 2_048, None, None));
}

#[test]
fn members_deliver_the_same_with_a_key() {
    assert_same(&run(100, 2_048, key(), None));
}

#[test]
fn members_deliver_the_same_through_full_sockets() {
    // A window does not fit.
    assert_same(&run(50, 10_240, None, Some(128 << 10)));
}

#[test]
fn a_group_that_rests_sleeps_and_wakes() {
    let group = GroupConfiguration::single(MEMBERS, MEMBERS, 8, 64);
    let (listeners, addresses) = listeners(MEMBERS);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..MEMBERS)
            .map(Rank)
            .zip(listeners)
            .map(|(own, listener)| {
                let (group, addresses) = (&group, &addresses);
                scope.spawn(move || {
                    let member = member(group, own, addresses, listener, None, None);
                    let (said, heard) = mpsc::channel();
                    let running = member
                        .spawn(move |batch: &mut Batch<'_>| {
                            for delivered in batch {
                                let _ = said.send(delivered.payload.to_vec());
                            }
                        })
                        .expect("a thread");
                    let sender = running.sender(SubgroupId(0)).expect("all send");
                    for round in 0..20_u16 {
                        // Each in turn breaks the silence in which all sleep.
                        if round % MEMBERS == own.0 {
                            std::thread::sleep(Duration::from_millis(30));
                            sender.send(&round.to_le_bytes(), PATIENCE).expect("it is sent");
                        }
                        let delivered = heard.recv_timeout(PATIENCE).expect("it wakes");
                        assert_eq!(delivered, round.to_le_bytes());
                    }
                    assert!(running.settle(PATIENCE));
                    std::thread::sleep(Duration::from_millis(50));
                    let before = running.writes();
                    std::thread::sleep(Duration::from_millis(300));
                    assert_eq!(running.writes(), before, "a group that rests posts nothing");
                    running
                })
            })
            .collect();
        let running: Vec<Polled> =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        let stopped: Vec<Option<Stopped>> = running.iter().map(Polled::stopped).collect();
        assert!(stopped.iter().all(Option::is_none), "{stopped:?}");
    });
}
