//! A fabric that refuses for once what it is asked for, and a host that has no rows of a link for
//! once. Both are free to: what is refused is tried again at a later step.

use super::faults::{REFERENCES_FROM, faulty_run, settings_of, shape_of, thirty_faults};
use super::judge::safety;
use super::world::{Settings, World};

/// Half of the seeds with references.
fn settings(seed: u64) -> Settings {
    let references_from = if seed.is_multiple_of(2) { REFERENCES_FROM } else { 0 };
    Settings { references_from, ..settings_of(seed) }
}

/// TRM-8: posts, reads, grants and their withdrawal are refused, peers are not ready yet, and
/// events come that mean nothing to anybody.
#[test]
fn what_a_fabric_refuses_now_and_then_is_not_lost() {
    let mut refusals = 0;
    for seed in 1..20 {
        let (parents, replicas) = shape_of(seed);
        let settings = Settings { refuses: 20, ..settings(seed) };
        refusals += faulty_run(parents, replicas, settings).refusals;
    }
    assert!(refusals > 1_000, "{refusals}");
}

/// Where a host has no rows of an attached link, nothing is read or written there. Messages may
/// wait for ever; none is doubled, reordered or made up.
#[test]
fn a_link_without_rows_harms_no_order() {
    let mut delivered = 0;
    for seed in 1..20 {
        let (parents, replicas) = shape_of(seed);
        let mut world = World::new(parents, replicas, Settings { hides: 10, ..settings(seed) });
        thirty_faults(&mut world);
        world.run(20_000);
        assert_eq!(safety(&world), Vec::<String>::new(), "seed {seed}");
        delivered += world.ever.len();
    }
    assert!(delivered > 200, "{delivered}");
}
