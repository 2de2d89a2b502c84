//! A reader's observations and their order.

use tramontane_core::fabric::{Fabric as _, Write};
use tramontane_verbs::Limits;
use tramontane_verbs::fake::Placement;

use super::bench::{A, B, ConnectedPair, VIEW, by_updates, content, guard, promised, reordering};

/// A long message in a slot, followed by its counter, and a cell that guards nothing.
const SLOTS: usize = 4;
const SLOT_BYTES: usize = 2048;
const COUNTER: usize = SLOT_BYTES - 8;
const HEARTBEAT: usize = SLOTS * SLOT_BYTES;
/// Cells that are repeatedly posted as content, in short and long pieces.
const COLUMNS: usize = HEARTBEAT + 64;
const COLUMNS_BYTES: usize = 1024;

/// The first violation.
#[derive(Debug, PartialEq, Eq)]
enum Breach {
    /// A counter was visible before its complete message.
    Torn { round: u64 },
    /// A cell appeared to shrink.
    Shrank { offset: usize },
    /// The final content is not what was posted last.
    Stale { offset: usize },
}

fn fill(round: u64) -> u8 {
    u8::try_from(round % 251 + 1).expect("a byte")
}

/// A sends rounds, each of a message with its counter, a heartbeat and columns; while B observes
/// all the time. Returns B's first forbidden observation.
fn hunt(placement: Placement, limits: &Limits, seed: u64, rounds: u64) -> Option<Breach> {
    let mut pair = ConnectedPair::new(reordering(placement), limits, seed);
    let (mut sent, mut counters) = (0, [0_u64; SLOTS]);
    let mut cells = vec![0_u64; COLUMNS_BYTES / 8 + 1];
    for _ in 0..rounds * 400 {
        let is_free = sent < SLOTS as u64 || counters[slot(sent)] >= sent + 1 - SLOTS as u64;
        if sent < rounds && is_free && send(&mut pair, sent + 1) {
            sent += 1;
        }
        pair.pass(700);
        pair.a.poll();
        pair.b.poll();
        if let Some(breach) = look(&pair, &mut counters, &mut cells) {
            return Some(breach);
        }
        if sent == rounds && counters[slot(rounds - 1)] == rounds {
            break;
        }
    }
    pair.settle();
    look(&pair, &mut counters, &mut cells).or_else(|| {
        let cells = (0..SLOTS).map(|slot| slot * SLOT_BYTES + COUNTER);
        let all = cells.chain([HEARTBEAT, COLUMNS, COLUMNS + COLUMNS_BYTES - 8]);
        let stale = |offset: &usize| pair.b.seen(A, *offset) != pair.a.rows_cell(*offset);
        all.into_iter().find(stale).map(|offset| Breach::Stale { offset })
    })
}

fn slot(round: u64) -> usize {
    usize::try_from(round).expect("small") % SLOTS
}

fn send(pair: &mut ConnectedPair, round: u64) -> bool {
    let start = slot(round - 1) * SLOT_BYTES;
    pair.a.store(start, &[fill(round); COUNTER]);
    pair.a.publish(start + COUNTER, round);
    pair.a.publish(HEARTBEAT, round);
    for at in (0..COLUMNS_BYTES).step_by(8) {
        pair.a.publish(COLUMNS + at, round);
    }
    let message = [content(start, COUNTER), guard(start + COUNTER, 8)];
    let mut list = message.to_vec();
    list.push(content(HEARTBEAT, 24));
    if round.is_multiple_of(3) {
        list.push(content(COLUMNS, COLUMNS_BYTES));
    }
    until_posted(pair, &list)
}

fn until_posted(pair: &mut ConnectedPair, list: &[Write]) -> bool {
    for _ in 0..10_000 {
        if pair.a.post(B, list).is_ok() {
            return true;
        }
        pair.pass(500);
        pair.a.poll();
        pair.b.poll();
    }
    panic!("no room ever comes");
}

fn look(pair: &ConnectedPair, counters: &mut [u64; SLOTS], cells: &mut [u64]) -> Option<Breach> {
    for (slot, counter) in counters.iter_mut().enumerate() {
        let start = slot * SLOT_BYTES;
        let seen = pair.b.seen(A, start + COUNTER);
        pair.b.fabric.observe_barrier();
        if seen < *counter {
            return Some(Breach::Shrank { offset: start + COUNTER });
        }
        let is_torn = || pair.b.bytes(A, start, COUNTER).iter().any(|byte| *byte != fill(seen));
        // The owner writes the next message into a slot only after this one has been seen.
        if seen > *counter && is_torn() {
            return Some(Breach::Torn { round: seen });
        }
        *counter = seen;
    }
    let offsets = (COLUMNS..COLUMNS + COLUMNS_BYTES).step_by(8).chain([HEARTBEAT]);
    for (offset, cell) in offsets.zip(cells) {
        let seen = pair.b.seen(A, offset);
        if seen < *cell {
            return Some(Breach::Shrank { offset });
        }
        *cell = seen;
    }
    None
}

impl super::bench::ConnectedMember {
    fn rows_cell(&self, offset: usize) -> u64 {
        use tramontane_core::fabric::ViewRows as _;
        self.rows.row().cell(offset).expect("a cell").load()
    }
}

const BOTH: [Placement; 2] = [Placement::WritesReordered, Placement::BytesReordered];

#[test]
fn guard_overtakes_content_if_order_promise_is_false() {
    for placement in BOTH {
        let found = (0..4).filter_map(|seed| hunt(placement, &promised(), seed, 100));
        let found: Vec<Breach> = found.collect();
        println!("{placement:?}: {found:?}");
        assert!(found.iter().any(|breach| matches!(breach, Breach::Torn { .. })), "{found:?}");
    }
}

#[test]
fn updates_never_show_guards_early() {
    for placement in BOTH {
        for seed in 0..10 {
            let limits = match seed % 3 {
                0 => by_updates(),
                1 => Limits { depth: 64, signal_every: 3, ..by_updates() },
                _ => Limits { inline_bytes_max: Some(0), ..by_updates() },
            };
            assert_eq!(hunt(placement, &limits, seed, 100), None, "{placement:?}, seed {seed}");
        }
    }
}

#[test]
fn parts_of_a_list_become_visible_in_order() {
    let mut pair = ConnectedPair::new(reordering(Placement::BytesReordered), &by_updates(), 1);
    let list = [guard(0, 8), content(64, 4000), guard(8, 8), content(8192, 200), guard(16, 24)];
    for round in 1..=50_u64 {
        for offset in [0, 8, 16, 24, 32] {
            pair.a.publish(offset, round);
        }
        pair.a.store(64, &[fill(round); 4000]);
        pair.a.store(8192, &[fill(round); 200]);
        until_posted(&mut pair, &list);
        while pair.b.seen(A, 16) != round {
            pair.pass(200);
            pair.b.poll();
            if pair.b.seen(A, 8) == round || pair.b.seen(A, 16) == round {
                assert_eq!(pair.b.seen(A, 0), round);
                assert_eq!(pair.b.bytes(A, 64, 4000), [fill(round); 4000]);
            }
            if pair.b.seen(A, 16) == round {
                assert_eq!(pair.b.bytes(A, 8192, 200), [fill(round); 200]);
            }
        }
    }
}

#[test]
fn updates_are_applied_before_arming_or_sleeping() {
    let mut pair = ConnectedPair::new(reordering(Placement::WritesReordered), &by_updates(), 2);
    for round in 1..=20_u64 {
        pair.a.publish(0, 2 * round - 1);
        until_posted(&mut pair, &[guard(0, 8)]);
        pair.pass(1_000_000);
        assert_ne!(pair.b.seen(A, 0), 2 * round - 1, "nobody polled");
        let armed = pair.b.fabric.arm();
        assert_eq!(pair.b.seen(A, 0), 2 * round - 1, "it armed, and may look once more");
        pair.pass(1_000_000);
        pair.a.poll();
        pair.a.publish(0, 2 * round);
        until_posted_by_a(&mut pair, &[guard(0, 8)]);
        pair.pass(1_000_000);
        let woken = !armed || pair.b.fabric.sleep(std::time::Duration::ZERO);
        assert!(woken, "a post rings who sleeps");
        assert_eq!(pair.b.seen(A, 0), 2 * round, "it is woken, and looks");
        pair.b.fabric.disarm();
        pair.settle();
    }
}

/// Retries until A's post is accepted, without a step of B.
fn until_posted_by_a(pair: &mut ConnectedPair, list: &[Write]) {
    for _ in 0..1000 {
        if pair.a.fabric.post(VIEW, B, list, None).is_ok() {
            return;
        }
        pair.pass(1000);
        pair.a.poll();
    }
    panic!("no room ever comes");
}
