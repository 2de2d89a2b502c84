//! Larger groups under random schedules, with each form of batching and posting.

use tramontane_core::fabric::Promises;
use tramontane_core::multicast::Switches;
use tramontane_core::node::Options;

use super::GroupPair;
use super::nodes::{NodeAction, Setup, with_nodes};
use crate::explorer::Model;
use crate::group::Scope;

/// Random numbers determined by a seed.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Steps nodes and lands writes until everything is delivered everywhere.
fn run(seed: u64) -> Result<usize, String> {
    let mut random = SeededRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (members, window) = (2 + random.below(2), 1 + random.below(3));
    let senders = 1 + random.below(members);
    let messages: Vec<u8> = (0..senders).map(|_| random.below(9) as u8).collect();
    let scope = Scope::completing(members, window, &messages);
    let switches = Switches::from_bits_truncate(random.below(32) as u8) | Switches::NULLS;
    let messages_max = if random.below(2) == 0 { u32::MAX } else { 1 + random.below(2) as u32 };
    let address = if random.below(2) == 0 { Promises::ADDRESS_ORDER } else { Promises::empty() };
    let setup = Setup {
        options: Options { switches, messages_max, ..Options::default() },
        promises: address | Promises::WRITE_ORDER,
    };
    let commits_of_ten: Vec<usize> = (0..members).map(|_| 1 + random.below(9)).collect();
    with_nodes(&scope, setup, |nodes| {
        let mut pair = GroupPair { scope: &scope, nodes, state: scope.start() };
        let (mut actions, mut idle) = (0, 0);
        for _ in 0..20_000 {
            let member = random.below(members);
            let writer = random.below(members);
            let what = if writer == member {
                let commits = random.below(10) < commits_of_ten[member];
                NodeAction::Step { member, commits }
            } else {
                NodeAction::Land { reader: member, writer }
            };
            let said = |wrong| format!("{wrong}\nseed {seed}, {scope:?}, {setup:?}");
            let mut taken = pair.follow(what).map_err(said)?;
            if taken.is_none() && writer == member {
                // There is nothing to commit, or no room.
                taken = pair.follow(NodeAction::Step { member, commits: false }).map_err(said)?;
            }
            let taken = taken.map_or(0, |taken| taken.len());
            actions += taken;
            idle = if taken == 0 { idle + 1 } else { 0 };
            if idle > 300 && pair.nodes.is_committed() {
                pair.scope.check_end(&pair.state).map_err(said)?;
                return Ok(actions);
            }
        }
        Err(format!("seed {seed} does not come to an end: {scope:?}"))
    })
}

fn runs(seeds: std::ops::Range<u64>) {
    let mut actions = 0;
    for seed in seeds.clone() {
        actions += run(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    println!("{} runs, {actions} actions of the model", seeds.end - seeds.start);
    assert!(actions > 10 * (seeds.end - seeds.start) as usize);
}

#[test]
fn random_schedules_match_the_group_model() {
    runs(0..200);
}

#[test]
#[ignore = "ten thousand runs: .ci/full"]
fn many_random_schedules_match_the_group_model() {
    runs(1_000..11_000);
}
