//! Atomic multicast over TCP: three members that all send deliver the same messages, unencrypted,
//! with a key, and through full sockets.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;

use rustix::net::sockopt;
use tramontane_core::ids::SubgroupId;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, DescriptionBuilder, Messages, start};
use xxhash_rust::xxh3::Xxh3;

use crate::fixed_support::{Meeting, PATIENCE};

const MEMBERS: u32 = 3;
const EACH: u64 = 3_000;
const TOTAL: u64 = EACH * MEMBERS as u64;

/// Returns a message whose length and bytes follow from the sender and the number.
fn message(node: u64, number: u64, longest: u64) -> Vec<u8> {
    let length = (number * 7919 + node * 31) % (longest - 15) + 16;
    let mut bytes = vec![
        u8::try_from((node + number) % 251).expect("a byte");
        usize::try_from(length).expect("short")
    ];
    bytes[..8].copy_from_slice(&node.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn group(window: u32, longest: u32) -> DescriptionBuilder {
    Description::builder("over-tcp").nodes(MEMBERS).window(window).message_max(longest)
}

/// Runs three members that send, and that deliver the same messages. Each member checks every
/// message against what was sent.
fn run(meeting: &Meeting, group: DescriptionBuilder, longest: u32) {
    let ended = meeting.run(group, MEMBERS, |own, description, options| {
        let (done, digest) = mpsc::channel();
        let (mut hash, mut count, mut next) = (Xxh3::new(), 0, [0_u64; MEMBERS as usize]);
        let application = move |messages: &mut Messages<'_, '_>| {
            for delivered in messages {
                let node = delivered.sender.get();
                let next = &mut next[usize::try_from(node).expect("small")];
                let sent = message(node.into(), *next, longest.into());
                assert_eq!(delivered.payload, sent, "from {node}");
                *next += 1;
                hash.update(&delivered.place.0.to_le_bytes());
                hash.update(delivered.payload);
                count += 1;
                if count == TOTAL {
                    let _ = done.send(hash.digest128());
                }
            }
        };
        let running = start(description, options, application).expect("it starts");
        let mut sender = running.sender_of(SubgroupId(0)).expect("all send");
        for number in 0..EACH {
            let bytes = message(own.into(), number, longest.into());
            sender.send(&bytes, PATIENCE).expect("it is sent");
        }
        let digest = digest.recv_timeout(PATIENCE).expect("all is delivered");
        // The handle is dropped once all members have everything, so that no member misses the
        // first one to close.
        (digest, running)
    });
    let digests: Vec<u128> = ended.into_iter().map(|(digest, _)| digest).collect();
    assert_eq!(digests, [digests[0]; MEMBERS as usize]);
}

#[test]
fn unencrypted_members_deliver_the_same_messages() {
    run(&Meeting::new(Carrier::Tcp, MEMBERS), group(100, 2_048), 2_048);
}

#[test]
fn encrypted_members_deliver_the_same_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    std::fs::write(&key, "03".repeat(32)).expect("written");
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&key, mode).expect("set");
    run(&Meeting::new(Carrier::Tcp, MEMBERS), group(100, 2_048).key_file(key), 2_048);
}

/// A window does not fit into the sockets, because accepted connections inherit the listener's
/// buffers.
#[test]
fn full_sockets_do_not_change_deliveries() {
    const SOCKET_BYTES: usize = 128 << 10;
    let meeting = Meeting::new(Carrier::Tcp, MEMBERS);
    for listener in &meeting.listeners {
        sockopt::set_socket_recv_buffer_size(listener, SOCKET_BYTES).expect("set");
        sockopt::set_socket_send_buffer_size(listener, SOCKET_BYTES).expect("set");
    }
    run(&meeting, group(600, 10_240), 10_240);
}
