//! Receipts for the levels that a message reaches, which can be queried, waited for and awaited.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Level, Logged, NotLogged, NotReached, Receipt};
use tramontane_runtime::member::Stopped;

use crate::awaited_slots::block_on;
use crate::group_support::{Crowd, PATIENCE, carriers, message};

fn crowd(carrier: Carrier) -> Crowd {
    let mut crowd = Crowd::of(carrier, 3).logged();
    crowd.start_all(&[0, 1, 2]);
    crowd
}

#[test]
fn durable_everywhere_implies_every_lower_level() {
    for carrier in carriers() {
        let crowd = crowd(carrier);
        let mut sender = crowd.logged_sender(1);
        for number in 0..50 {
            let receipt = sender.send(&message(1, number), PATIENCE).expect("it is sent");
            assert!(receipt.accepted().is_reached());
            if number % 2 == 0 {
                let all = receipt.durable_everywhere().wait(PATIENCE).expect("disks take it");
                assert_eq!(all.ordinal(), receipt.ordinal());
            } else {
                block_on(receipt.durable_everywhere()).expect("disks take it");
            }
            let lower = [
                receipt.delivered().is_reached(),
                receipt.durable_here().is_reached(),
                receipt.durable_majority().is_reached(),
            ];
            assert_eq!(lower, [true; 3], "{receipt:?}");
        }
    }
}

/// Waiting for durability without a log is prevented: the logged sender is refused.
#[test]
fn logged_sender_is_refused_in_unlogged_subgroup() {
    let mut crowd = Crowd::of(Carrier::SharedMemory, 2);
    crowd.start_all(&[0, 1]);
    let refused = crowd.sender(0).logged().expect_err("it is not logged");
    assert_eq!(refused, NotLogged(SubgroupId(0)));
    let receipt = crowd.send(0, 0);
    receipt.delivered().wait(PATIENCE).expect("delivery is told all the same");
}

/// Waits for a level in a thread, and in a task.
fn waits<L: Level>(
    receipt: &Receipt<Logged>,
    at: impl Fn(&Receipt<Logged>) -> tramontane_runtime::group::At<L>,
) -> (Result<(), NotReached>, Result<(), Stopped>) {
    let (waited, awaited) = (at(receipt), at(receipt));
    std::thread::scope(|scope| {
        let waited = scope.spawn(|| waited.wait(PATIENCE).map(|_| ()));
        let awaited = scope.spawn(|| block_on(awaited).map(|_| ()));
        (waited.join().expect("it ends"), awaited.join().expect("it ends"))
    })
}

#[test]
fn stopped_member_ends_all_receipt_waits() {
    for carrier in carriers() {
        let mut crowd = crowd(carrier);
        let first = crowd.logged_sender(0).send(&message(0, 0), PATIENCE).expect("it is sent");
        first.durable_everywhere().wait(PATIENCE).expect("disks take it");
        let told = Arc::clone(&crowd.told[&1]);
        // The application is slow, so nothing further is delivered everywhere.
        let busy = told.lock().expect("nobody panics");
        crowd.logged_sender(0).send(&message(0, 1), PATIENCE).expect("it is sent");
        let calls = crowd.calls(1);
        crowd.await_call(1, calls.max(2));
        let open = crowd.logged_sender(0).send(&message(0, 2), PATIENCE).expect("it is sent");
        assert_eq!(
            open.durable_here().wait(Duration::from_millis(5)).expect_err("it is not delivered"),
            NotReached::TimedOut(Duration::from_millis(5))
        );
        let stopped = (Err(NotReached::Stopped(Stopped::Closed)), Err(Stopped::Closed));
        std::thread::scope(|scope| {
            let ends = [
                scope.spawn(|| waits(&open, Receipt::delivered)),
                scope.spawn(|| waits(&open, Receipt::durable_here)),
                scope.spawn(|| waits(&open, Receipt::durable_majority)),
                scope.spawn(|| waits(&open, Receipt::durable_everywhere)),
            ];
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(crowd.close(0).0, Stopped::Closed);
            for end in ends {
                assert_eq!(end.join().expect("it ends"), stopped, "{carrier:?}");
            }
        });
        drop(busy);
        // Levels already reported remain known, and all other waits end at once.
        assert!(first.durable_everywhere().is_reached());
        assert_eq!(waits(&open, Receipt::durable_here), stopped);
        assert_eq!(waits(&open, Receipt::accepted), (Ok(()), Ok(())));
    }
}

/// Abandoned tasks leave nothing behind that would prevent others from waking.
#[test]
fn abandoned_waits_do_not_block_others() {
    let crowd = crowd(Carrier::SharedMemory);
    std::thread::scope(|scope| {
        for node in 0..3 {
            let mut sender = crowd.logged_sender(node);
            scope.spawn(move || {
                let mut waits = Vec::new();
                for number in 0..200 {
                    let receipt = sender.send(&message(node, number), PATIENCE).expect("sent");
                    let mut given_up = Box::pin(receipt.durable_majority());
                    let _ = given_up.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    waits.push(receipt.durable_majority());
                }
                // The last wait is dropped first.
                while let Some(wait) = waits.pop() {
                    block_on(wait).expect("a majority takes it");
                }
            });
        }
    });
}
