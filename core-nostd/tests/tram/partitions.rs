//! Groups in which one replica is usually cut off, in turns chosen by a seed, while clients reach
//! some of the others. Leaders change between turns, and the posts of the previous leader land in
//! the middle of a turn, or not at all.

use tramontane_core::ids::{ClientNumber, Rank};
use tramontane_core::tram::ReplicaId;

use super::calm::some_groups;
use super::faults::seeds;
use super::judge::{missing, safety};
use super::world::{Settings, World};

/// Lets some replicas of each group, and some clients, communicate for a while.
fn one_turn(world: &mut World) {
    let mut replicas = Vec::new();
    for group in world.overlay.all().iter() {
        let away = Rank(world.random.below(4) as u16);
        let all =
            (0..world.overlay.replicas(group)).map(|rank| ReplicaId { group, rank: Rank(rank) });
        replicas.extend(all.filter(|id| id.rank != away));
    }
    let clients: Vec<ClientNumber> =
        (0..world.settings.clients).map(ClientNumber).filter(|_| world.random.chance(60)).collect();
    world.allow_only(&replicas, &clients);
    for _ in 0..world.random.below(4) {
        let client = ClientNumber(world.random.below(usize::from(world.settings.clients)) as u16);
        let (groups, length) = (some_groups(world), world.random.below(60));
        let _ = world.multicast(client, groups, length);
    }
    // A turn is sometimes long enough for another leader to decide, and often ends before that.
    let actions = world.random.below(4_000);
    world.run(actions);
    if world.random.chance(10) {
        let ids = world.ids();
        let id = ids[world.random.below(ids.len())];
        if world.may_crash(id) {
            world.crash_replica(id);
            world.start_replica(id, false);
        }
    }
}

fn turns(seed: u64, references_from: u32, places_percent: usize) -> u32 {
    let parents: &[Option<u16>] = if seed.is_multiple_of(3) { &[None, Some(0)] } else { &[None] };
    let answer_max = if seed.is_multiple_of(2) { 0 } else { 20 };
    let limits = Settings { clients: 3, log_entries: 8, answer_max, ..Settings::default() };
    let settings = Settings { seed, references_from, places_percent, ..limits };
    let mut world = World::new(parents, 3, settings);
    world.run(3_000);
    for _ in 0..25 {
        one_turn(&mut world);
    }
    world.network.borrow_mut().heal();
    let is_over = world.run_until(1_000_000, |world| missing(world).is_empty());
    assert_eq!(safety(&world), Vec::<String>::new(), "seed {seed}");
    assert!(is_over, "seed {seed}: {:?}", missing(&world));
    world.leaders
}

#[test]
fn leader_changes_lose_no_decision() {
    let leaders: u32 = seeds(15).map(|seed| turns(seed, 0, 0)).sum();
    eprintln!("{leaders} leaders");
    assert!(leaders > 75);
}

#[test]
fn leader_changes_lose_no_payload() {
    let leaders: u32 = seeds(15).map(|seed| turns(seed, 30, 0)).sum();
    eprintln!("{leaders} leaders");
    assert!(leaders > 75);
}

/// TRM-3: writes complete before they are visible, and are lost if their right is revoked first.
#[test]
fn leader_changes_lose_no_decision_before_visibility() {
    for references_from in [0, 30] {
        let leaders: u32 = seeds(15).map(|seed| turns(seed, references_from, 20)).sum();
        eprintln!("{leaders} leaders");
        assert!(leaders > 75);
    }
}

/// TRM-1: the parent also tells a deposed leader how many positions the group has decided. Its
/// successor may have put another message at a position that the deposed leader has not decided.
#[test]
fn deposed_leader_keeps_successors_order() {
    turns(17_959_880_000_256, 0, 20);
}
