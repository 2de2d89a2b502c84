//! A group's cells with checks: a cell with a flipped bit counts as not yet written, and ends the
//! group after a given number of steps unless it has been repaired by then.

use super::member::*;
use tramontane_core::check::{Checks, STEPS_UNREADABLE};
use tramontane_core::fabric::LossCause;
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{Cause, Failure, Outcome};

/// A member's cells: the member is ready for seven steps, has not failed, and closes a group
/// without messages.
const SAID: [u64; 4] = [7, 0, 1, 0];

fn sealed() -> [[u64; 4]; 4] {
    let mut rows = [[0; 4]; 4];
    rows[0] = SAID.map(|value| Checks::On.seal(value));
    rows
}

#[test]
fn persistently_flipped_cell_bit_ends_the_group() {
    for bit in 0..4 * 64 {
        with_checks(Checks::On, Algorithm::Chain, sealed(), |mut group, fabric, messages, say| {
            let (place, value) = (bit / 64, sealed()[0][bit / 64]);
            say(ROOT, place, value ^ 1 << (bit % 64));
            for step in 1..STEPS_UNREADABLE {
                assert!(!group.step(fabric, messages).is_idle(), "bit {bit}, step {step}");
                assert_eq!(group.outcome(), None, "bit {bit}, step {step}");
            }
            group.step(fabric, messages);
            let cause = Cause::Lost(LossCause::Misbehaved);
            let failed = Outcome::Failed(Failure { member: ROOT, cause });
            assert_eq!(group.outcome(), Some(failed), "bit {bit}");
        });
    }
}

#[test]
fn repaired_cell_is_read_and_group_continues() {
    with_checks(Checks::On, Algorithm::Chain, sealed(), |mut group, fabric, messages, say| {
        say(ROOT, 2, sealed()[0][2] ^ 1 << 40);
        for _ in 1..STEPS_UNREADABLE {
            group.step(fabric, messages);
        }
        say(ROOT, 2, sealed()[0][2]);
        group.step(fabric, messages);
        say(ROOT, 3, Checks::On.seal(1));
        group.step(fabric, messages);
        assert_eq!(group.outcome(), Some(Outcome::Closed));
    });
}

/// Another group may already use the memory of a group that has ended.
#[test]
fn cells_of_an_ended_group_are_not_read() {
    with_checks(Checks::On, Algorithm::Chain, sealed(), |mut group, fabric, messages, say| {
        group.lost(VIEW, ROOT, LossCause::Left);
        group.step(fabric, messages);
        let outcome = group.outcome();
        assert!(matches!(outcome, Some(Outcome::Failed(_))), "{outcome:?}");
        (0..8).for_each(|_| _ = group.step(fabric, messages));
        say(OTHER, 0, 12345);
        for _ in 0..STEPS_UNREADABLE {
            assert!(group.step(fabric, messages).is_idle());
        }
        assert_eq!(group.outcome(), outcome);
    });
}
