//! Blocks between real processes, one of which is killed in the middle of a copy, at either end.
//!
//! A "role" is a test that does nothing unless the program was started again to play it.

use std::path::Path;

use crate::support::blocks::{carrier, received, sent, way};
use crate::support::{RoleProcess, SharedFolder, VIEW, role, say, wait_for_release};
use tramontane_core::fabric::{Blocks as _, ErrorKind, Event, HostFabric as _, LossCause};
use tramontane_core::ids::Rank;
use tramontane_shared_memory::Root;

const MIB: usize = 1 << 20;

/// The size of the blocks in these tests. A poll copies one piece of a block.
const BYTES: usize = 32 * MIB;

/// Arguments: the folder, the group. Sends one block to member 0 as member 1 of 3, and keeps
/// running.
#[test]
fn role_sender() {
    let Some(arguments) = role() else { return };
    let mut member = carrier(&Root::under(Path::new(&arguments[0])), &arguments[1], 3, 1, BYTES);
    for piece in 0..BYTES / MIB {
        member.memory.write(piece * MIB, &vec![piece as u8 + 1; MIB]).expect("inside");
    }
    say("JOINED");
    wait_for_release();
    member.send(way(0, 0), 0, BYTES, 1).expect("posted");
    say("SENT");
    std::thread::park();
}

/// Arguments: the folder, the group. Takes part of a block from member 0 as member 1 of 3, and
/// keeps running.
#[test]
fn role_receiver() {
    let Some(arguments) = role() else { return };
    let mut member = carrier(&Root::under(Path::new(&arguments[0])), &arguments[1], 3, 1, BYTES);
    member.receive(way(0, 0), 0, BYTES, 1).expect("posted");
    say("JOINED");
    wait_for_release();
    for _ in 0..BYTES / MIB {
        assert_eq!(member.fabric.poll_block(), None);
    }
    say("COPYING");
    std::thread::park();
}

/// Arguments: the folder, the group. Joins as member 2 of 3, and takes one block from member 0.
#[test]
fn role_bystander() {
    let Some(arguments) = role() else { return };
    let mut member = carrier(&Root::under(Path::new(&arguments[0])), &arguments[1], 3, 2, BYTES);
    member.receive(way(0, 0), 0, BYTES, 1).expect("posted");
    say("JOINED");
    assert_eq!(member.next_block(), received(way(0, 0), 1, BYTES));
    assert!(member.bytes(0, BYTES).iter().all(|byte| *byte == 3));
    say("RECEIVED");
    wait_for_release();
}

/// Starts members 1 and 2, and joins as member 0.
fn with_roles(
    place: &SharedFolder,
    group: &str,
    first: &str,
) -> (crate::support::blocks::Carrier, RoleProcess, RoleProcess) {
    let arguments = format!("{} {group}", place.path().display());
    let mut one = RoleProcess::start(module_path!(), first, &arguments);
    let mut two = RoleProcess::start(module_path!(), "role_bystander", &arguments);
    let member = carrier(&place.root(), group, 3, 0, BYTES);
    one.expect("JOINED");
    two.expect("JOINED");
    (member, one, two)
}

/// Asserts that the bystander receives its block, independently of the other member.
fn assert_goes_on(member: &mut crate::support::blocks::Carrier, bystander: &mut RoleProcess) {
    member.memory.write(0, &vec![3; BYTES]).expect("inside");
    member.send(way(0, 2), 0, BYTES, 9).expect("posted");
    assert_eq!(member.next_block(), sent(way(0, 2), 9));
    bystander.expect("RECEIVED");
}

#[test]
fn block_memory_of_killed_sender_stays_readable() {
    let place = SharedFolder::new();
    let (mut member, mut sender, mut bystander) = with_roles(&place, "sender", "role_sender");
    member.receive(way(0, 1), 0, BYTES, 1).expect("posted");
    sender.release();
    sender.expect("SENT");
    for _ in 0..BYTES / MIB {
        assert_eq!(member.fabric.poll_block(), None, "a piece of several");
    }
    sender.kill();
    // No member has checked whether the sender is alive, and its memory is unchanged.
    assert_eq!(member.next_block(), received(way(0, 1), 1, BYTES));
    for piece in 0..BYTES / MIB {
        assert!(
            member.bytes(piece * MIB, MIB).iter().all(|byte| *byte == piece as u8 + 1),
            "MiB {piece}"
        );
    }
    assert!(member.fabric.check_peers());
    let lost = Event::PeerLost { view: VIEW, peer: Rank(1), cause: LossCause::Exited };
    assert_eq!(member.events(), [lost]);
    assert_eq!(member.receive(way(0, 1), 0, BYTES, 1), Err(ErrorKind::PeerLost));
    assert_goes_on(&mut member, &mut bystander);
    bystander.wait();
    drop(member);
    place.assert_empty();
}

#[test]
fn blocks_of_lost_sender_are_not_reported() {
    let place = SharedFolder::new();
    let (mut member, mut sender, mut bystander) = with_roles(&place, "lost", "role_sender");
    member.receive(way(0, 1), 0, BYTES, 1).expect("posted");
    sender.release();
    sender.expect("SENT");
    assert_eq!(member.fabric.poll_block(), None);
    sender.kill();
    assert!(member.fabric.check_peers());
    assert!(matches!(member.events().as_slice(), [Event::PeerLost { peer: Rank(1), .. }]));
    assert_goes_on(&mut member, &mut bystander);
}

#[test]
fn receiver_killed_during_copy_leaves_sender_unharmed() {
    let place = SharedFolder::new();
    let (mut member, mut receiver, mut bystander) = with_roles(&place, "receiver", "role_receiver");
    member.send(way(0, 1), 0, BYTES, 1).expect("posted");
    receiver.release();
    receiver.expect("COPYING");
    receiver.kill();
    assert_eq!(member.events(), []);
    assert!(member.fabric.check_peers());
    assert!(matches!(member.events().as_slice(), [Event::PeerLost { peer: Rank(1), .. }]));
    assert_goes_on(&mut member, &mut bystander);
    bystander.wait();
    drop(member);
    place.assert_empty();
}
