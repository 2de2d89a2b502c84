//! Senders that pause while they have nothing to send (Spindle III-B).

#![allow(clippy::expect_used, clippy::panic)]

use std::cell::Cell;
use std::time::Duration;

use crate::group_support::{Crowd, PATIENCE, carriers, message, send_large};
use tramontane_runtime::carrier::Carrier;

const ALL: [u32; 3] = [0, 1, 2];

fn await_senders(crowd: &Crowd, nodes: &[u32], senders: &[u32]) {
    for node in nodes {
        let senders_at = || crowd.running(*node).status().subgroups[0].senders.clone();
        crowd.await_that(&format!("{senders:?} send"), || senders_at() == senders);
    }
}

#[test]
fn idle_senders_pause_until_their_next_message() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3).pausing(100);
        crowd.start_all(&ALL);
        await_senders(&crowd, &ALL, &[]);
        // Messages sent by a call that waits, by one that does not, and by one for large numbers.
        crowd.send(2, 0);
        crowd.await_all_of(&ALL, &[2], 1);
        await_senders(&crowd, &ALL, &[]);
        let mut sender = crowd.sender(1);
        assert!(sender.try_reserve(16).is_err(), "it pauses");
        crowd.await_that("it has a slot", || crowd.sender(1).try_reserve(16).is_ok());
        drop(sender.reserve_run(3, PATIENCE).expect("it sends now"));
        await_senders(&crowd, &ALL, &[1]);
        crowd.send(1, 0);
        crowd.await_all_of(&ALL, &[1, 2], 1);
        // A member that joins sends at first.
        crowd.kill(0);
        crowd.await_members(&[1, 2], &[1, 2]);
        crowd.start(0);
        crowd.send(0, 0);
        crowd.await_all_of(&ALL, &ALL, 1);
        crowd.assert_same_with_state(&ALL);
    }
}

/// The others pause meanwhile. Looks at an idle sender do not disturb it.
#[test]
fn busy_sender_does_not_pause() {
    let mut crowd = Crowd::of(Carrier::SharedMemory, 3).pausing(1_000);
    crowd.start_all(&ALL);
    let sent = Cell::new(0);
    let send = || {
        crowd.send(0, sent.replace(sent.get() + 1));
        std::thread::sleep(Duration::from_millis(10));
    };
    crowd.await_that("the others pause", || {
        send();
        crowd.running(0).status().subgroups[0].senders == [0]
    });
    let view = crowd.running(0).status().view;
    (0..150).for_each(|_| send());
    assert_eq!(crowd.running(0).status().view, view);
    crowd.await_all_of(&ALL, &[0], sent.get());
}

/// Each node sends with breaks that are shorter or longer than the time after which it pauses, so
/// that messages are under way in many changes of the senders. Each message arrives once.
#[test]
fn messages_survive_changes_of_senders() {
    const MESSAGES: u64 = 120;
    for crowd in [Crowd::of(Carrier::Tcp, 3), Crowd::with_large(Carrier::SharedMemory, 3, 20_000)] {
        let mut crowd = crowd.pausing(15);
        crowd.start_all(&ALL);
        std::thread::scope(|scope| {
            for node in ALL {
                let mut sender = crowd.sender(node);
                scope.spawn(move || {
                    let mut random = 0x9e37_79b9_u64.wrapping_mul(u64::from(node) + 1);
                    for number in 0..MESSAGES {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        if (random >> 33).is_multiple_of(8) {
                            std::thread::sleep(Duration::from_millis((random >> 40) % 40));
                        }
                        if sender.large_max().is_some() && number % 7 == 3 {
                            send_large(&mut sender, node, number, 15_000, PATIENCE)
                                .expect("it is sent");
                        } else {
                            sender.send(&message(node, number), PATIENCE).expect("it is sent");
                        }
                    }
                });
            }
        });
        crowd.await_all_of(&ALL, &ALL, MESSAGES);
        crowd.assert_same(&ALL);
        let views = crowd.running(0).status().view;
        assert!(views > 5, "only {views} views");
        crowd.leave(2);
        crowd.await_members(&[0, 1], &[0, 1]);
    }
}

/// A member sends at about the time at which it pauses, and then leaves.
#[test]
fn leaving_sender_delivers_all_sent_before_pause() {
    let mut crowd = Crowd::of(Carrier::SharedMemory, 3).pausing(15);
    crowd.start_all(&ALL);
    for number in 0..30 {
        let mut sender = crowd.sender(2);
        std::thread::sleep(Duration::from_millis(15 + number % 16));
        let sent = sender.send(&message(2, number), PATIENCE / 12);
        assert!(sent.is_ok(), "{number}: {:?} {:#?}", sent.err(), crowd.running(2).status());
        crowd.leave(2);
        crowd.await_delivered(&[0, 1], usize::try_from(number).expect("small") + 1);
        crowd.start(2);
    }
    crowd.assert_same_with_state(&ALL);
}

/// The subgroup is relayed in the views with one sender only.
#[test]
fn members_relay_for_only_active_sender() {
    let mut crowd = Crowd::of(Carrier::Tcp, 4).relayed().pausing(50).with_senders(&[0, 1]);
    let all = [0, 1, 2, 3];
    crowd.start_all(&all);
    for (round, sent) in [(0, 0), (1, 200), (2, 400)] {
        for number in sent..sent + 200 {
            crowd.send(0, number);
            if number % 50 == 0 && round != 1 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        crowd.send(1, round);
        crowd.await_all_of(&all, &[0], sent + 200);
        await_senders(&crowd, &all, &[]);
    }
    crowd.await_all_of(&all, &[1], 3);
    crowd.assert_same(&all);
}
