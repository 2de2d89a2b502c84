//! The cost of updates, compared with writes whose order the devices keep.

use tramontane_core::fabric::Write;
use tramontane_verbs::fake::Profile;
use tramontane_verbs::{Counters, Limits};

use super::bench::{A, B, ConnectedPair, by_updates, content, guard, promised};

const LISTS: u64 = 1000;

/// Returns the counters of both members after a number of lists, each posted after the previous
/// content was processed.
fn counted(limits: &Limits, list: impl Fn(usize) -> Vec<Write>) -> (Counters, Counters) {
    let mut pair = ConnectedPair::new(Profile::strict(), limits, 1);
    for round in 0..LISTS {
        let list = list(usize::try_from(round).expect("small") % 4);
        while pair.a.post(B, &list).is_err() {
            pair.pass(10_000);
            pair.b.poll();
            pair.pass(10_000);
            pair.a.poll();
        }
        pair.pass(10_000);
        pair.b.poll();
        // Like an acknowledgement, this reports what has been processed.
        if round % 4 == 3 {
            assert_eq!(pair.b.post(A, &[guard(0, 8)]), Ok(()));
        }
        pair.pass(10_000);
        pair.a.poll();
    }
    (*pair.a.fabric.counters(), *pair.b.fabric.counters())
}

fn print(what: &str, (a, b): &(Counters, Counters)) {
    let requests = a.notices_sent + a.updates + a.writes_alone();
    println!(
        "{what}: {} lists of {} writes and {} B; requests {}, doorbells {}, signalled {}, updates \
         {} of {} B, at the peer \
         {} receives",
        a.lists,
        a.writes,
        a.bytes,
        requests,
        a.doorbells,
        a.signalled,
        a.updates,
        a.update_bytes,
        b.updates_taken
    );
}

trait Alone {
    fn writes_alone(&self) -> u64;
}

impl Alone for Counters {
    /// Returns the separate writes, if the test knows them.
    fn writes_alone(&self) -> u64 {
        if self.updates == 0 { self.writes } else { self.bytes / 2000 }
    }
}

#[test]
fn list_costs_one_doorbell_and_one_update_receive() {
    // A message of 2,000 B, its counter, and a frontier.
    let long = |slot: usize| {
        vec![content(slot * 2048, 2000), guard(slot * 2048 + 2040, 8), guard(10_240, 16)]
    };
    let usual = counted(&promised(), long);
    print("long, by the device", &usual);
    let updates = counted(&by_updates(), long);
    print("long, by updates", &updates);
    assert_eq!((usual.0.writes, usual.0.updates, usual.1.updates_taken), (3000, 0, 0));
    assert_eq!((usual.0.doorbells, usual.0.lists), (LISTS, LISTS));
    assert_eq!((updates.0.doorbells, updates.0.updates), (LISTS, LISTS));
    assert_eq!(updates.1.updates_taken, LISTS, "one receive a list");
    assert_eq!(updates.0.update_bytes, LISTS * (16 + 2 * 10 + 8 + 16));
    assert_eq!(updates.0.inline, 0, "the update is inline, and no write is");
}

#[test]
fn update_contains_short_messages() {
    let short =
        |slot: usize| vec![content(slot * 2048, 56), guard(slot * 2048 + 56, 8), guard(10_240, 16)];
    let usual = counted(&promised(), short);
    print("short, by the device", &usual);
    let updates = counted(&by_updates(), short);
    print("short, by updates", &updates);
    assert_eq!(updates.0.update_bytes, LISTS * (16 + 3 * 10 + 56 + 8 + 16));
    assert_eq!((updates.0.updates, updates.0.doorbells), (LISTS, LISTS));
    assert!(updates.0.signalled < usual.0.signalled, "fewer requests a list");
}
