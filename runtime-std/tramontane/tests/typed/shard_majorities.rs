//! A client of several groups, one of which loses its majority.

use tramontane::shards::Destinations;
use tramontane::typed::NoAnswers;

use crate::shards::{FIRST, SECOND, TallyShards, both};
use crate::support::PATIENCE;

/// The commands for the dead group fill the client's window. All commands for the other group are
/// applied once, in their order.
#[test]
fn dead_group_does_not_block_its_client() {
    const WINDOW: u32 = 8;
    let mut shards = TallyShards::start_with(|description| description.client_window = WINDOW);
    let client = shards.connect();
    for rank in [1, 2] {
        shards.replicas.remove(&(SECOND.0, rank)).expect("it runs").close();
    }
    let (first, second) = (Destinations::of(FIRST), Destinations::of(SECOND));
    let lost: Vec<_> =
        (0..WINDOW).map(|number| client.propose(second, format!("lost {number}"))).collect();
    let living: Vec<_> =
        (0..3 * WINDOW).map(|number| client.propose(first, number.to_string())).collect();
    for call in lost {
        let why = call.wait(PATIENCE).expect_err("the group has no majority");
        assert!(matches!(&why, NoAnswers::NoMajority { group, .. } if group == "g2"), "{why}");
    }
    for (number, call) in (0_u64..).zip(living) {
        let answers = call.wait(PATIENCE).expect("the group has a majority");
        assert_eq!(answers[&FIRST], (FIRST.0, number + 1, number.to_string()));
    }
    let why = client.propose(both(), "refused".to_owned()).wait(PATIENCE).expect_err("down");
    let is_named = matches!(
        &why,
        NoAnswers::NotSentWithoutMajority { group, .. } if group == "g2"
    );
    assert!(is_named, "{why}");
    shards.await_commands(FIRST.0, u64::from(3 * WINDOW));
}
