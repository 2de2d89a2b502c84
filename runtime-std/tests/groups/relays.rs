//! Groups over a network whose members pass on the messages of the only sender (REL-1).

#![allow(clippy::expect_used)]

use crate::group_support::{Crowd, carriers};
use tramontane_runtime::carrier::Carrier;

const NODES: u32 = 6;

/// Starts crowds in which node 0 sends, one after the other, over each network.
fn relayed_crowds(change: impl Fn(Crowd) -> Crowd) -> impl Iterator<Item = Crowd> {
    let networks = carriers().into_iter().filter(|carrier| *carrier != Carrier::SharedMemory);
    networks.map(move |carrier| {
        let mut crowd = change(Crowd::of(carrier, NODES).relayed());
        crowd.start_all(&(0..NODES).collect::<Vec<_>>());
        crowd
    })
}

/// Every other member is a relay in one of the two trees, so each kill interrupts messages that
/// some members have and others do not.
#[test]
fn lost_relays_lose_no_messages() {
    for mut crowd in relayed_crowds(|crowd| crowd) {
        let mut sent = 0;
        for killed in 1..4 {
            for number in sent..sent + 400 {
                crowd.send(0, number);
            }
            sent += 400;
            crowd.kill(killed);
        }
        let survivors = [0, 4, 5];
        crowd.await_all_of(&survivors, &[0], sent);
        crowd.await_members(&survivors, &survivors);
    }
}

#[test]
fn logged_members_that_return_relay_again() {
    for mut crowd in relayed_crowds(|crowd| crowd.logged()) {
        for number in 0..300 {
            crowd.send(0, number);
        }
        crowd.kill(1);
        crowd.start(1);
        for number in 300..600 {
            crowd.send(0, number);
        }
        let all: Vec<u32> = (0..NODES).collect();
        crowd.await_all_of(&all, &[0], 600);
        crowd.assert_same_with_state(&all);
    }
}

/// The others can no longer receive from the sender, and the next view has no sender, so it has no
/// relays either.
#[test]
fn survivors_of_lost_sender_agree() {
    for mut crowd in relayed_crowds(|crowd| crowd) {
        for number in 0..400 {
            crowd.send(0, number);
        }
        crowd.kill(0);
        let survivors = [1, 2, 3, 4, 5];
        crowd.await_members(&survivors, &survivors);
        crowd.assert_same(&survivors);
        crowd.start(0);
        crowd.await_members(&survivors, &[1, 2, 3, 4, 5, 0]);
        let restored = crowd.messages_at(0).len();
        crowd.send(0, 1_000);
        crowd.await_delivered(&survivors, restored + 1);
        crowd.assert_same_with_state(&survivors);
    }
}
