//! Long histories of groups of replicas and of clients: correct ones, and histories in which a
//! group swaps two messages.

use tramontane_conformance::check::CheckId;

use crate::forgetting::{OutcomeKind, broken, judged, kinds};
use crate::good_history::shards::{Shards, write};

/// One replica of each group comes back in mid-stream with its group's state.
const SHARDS: Shards = Shards {
    deliveries: 20_000,
    groups: 8,
    replicas: 3,
    clients: 20,
    kills: true,
    exchanged: None,
};

/// The last group, as a set.
const LAST: u64 = 1 << (SHARDS.groups - 1);

/// Numbers of messages that a judge holds before it forgets any.
const HELD: [usize; 3] = [usize::MAX, 16, 0];

fn history(shards: &Shards) -> Vec<u8> {
    let mut text = Vec::new();
    write(shards, &mut text).expect("memory takes everything");
    text
}

/// Returns two messages of two clients that are consecutive in the last group. Their other groups,
/// and the messages between them, satisfy `wanted`.
fn pair(wanted: impl Fn(u64, u64, &[u64]) -> bool) -> (u64, u64) {
    let is_for_last = |message: &u64| SHARDS.groups_of(*message) & LAST != 0;
    let others = |message: u64| SHARDS.groups_of(message) & !LAST;
    let half = SHARDS.messages() / 2;
    let found = (half..SHARDS.messages()).filter(is_for_last).find_map(|one| {
        let other = (one + 1..SHARDS.messages()).find(is_for_last)?;
        let between: Vec<u64> = (one + 1..other).map(others).collect();
        let clients = u64::from(SHARDS.clients);
        (one % clients != other % clients && wanted(others(one), others(other), &between))
            .then_some((one, other))
    });
    found.expect("there are such two")
}

#[test]
fn correct_long_history_passes_with_any_memory_limit() {
    let history = history(&SHARDS);
    for messages in HELD {
        let verdict = judged(&history, messages).expect("it keeps its rules");
        assert_eq!(broken(&verdict), [], "holding {messages}");
        let said = kinds(&verdict);
        for check in [
            CheckId::IntegrityOnce,
            CheckId::IntegrityAddressee,
            CheckId::Validity,
            CheckId::Agreement,
            CheckId::UniformAgreement,
            CheckId::TotalOrder,
            CheckId::PrefixOrder,
            CheckId::AcyclicOrder,
        ] {
            assert!(said.contains(&(check, OutcomeKind::Held)), "{check}, holding {messages}");
        }
    }
}

#[test]
fn order_contradicted_by_another_group_is_found() {
    let exchanged = Some(pair(|one, other, _| one & other != 0));
    assert_acyclic_order_is_broken(&Shards { exchanged, ..SHARDS });
}

#[test]
fn order_contradicted_by_three_groups_is_found() {
    let in_between = |one: u64, other: u64, between: &[u64]| {
        between.iter().any(|groups| groups & one != 0 && groups & other != 0)
    };
    let exchanged =
        Some(pair(|one, other, between| one & other == 0 && in_between(one, other, between)));
    assert_acyclic_order_is_broken(&Shards { exchanged, ..SHARDS });
}

#[test]
fn unobservable_reordering_is_not_reported() {
    // There is no message between these two, and no other group gets both.
    let exchanged = Some(pair(|one, other, between| one & other == 0 && between.is_empty()));
    let verdict = judged(&history(&Shards { exchanged, ..SHARDS }), usize::MAX);
    assert_eq!(broken(&verdict.expect("it keeps its rules")), []);
}

fn assert_acyclic_order_is_broken(shards: &Shards) {
    let history = history(shards);
    for messages in HELD {
        let verdict = judged(&history, messages).expect("it keeps its rules");
        assert_eq!(broken(&verdict), [CheckId::AcyclicOrder], "holding {messages}");
    }
}
