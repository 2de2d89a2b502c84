//! Changes of views over devices whose commands take a millisecond: in virtual time, with a fake
//! device for each member.

#[path = "view_changes/members.rs"]
mod members;
#[path = "view_changes/threads.rs"]
mod threads;

use members::{BLOCK_BYTES, ChangingGroup, Cost, MS};
use tramontane_core::fabric::{Blocks as _, Channel, Token, Way};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_verbs::Limits;
use tramontane_verbs::fake::{CommandKind, Profile, ResetMeans};

/// Returns a device whose commands take a millisecond.
fn slow_commands() -> Profile {
    Profile { command_ns: MS, ..Profile::strict() }
}

/// Time limit for any view in these tests.
const PATIENCE: u64 = 60_000 * MS;

/// Changes from the previous view to one with these members, while messages flow.
fn change(group: &mut ChangingGroup, from: u64, processes: &[usize]) {
    let to = from + 1;
    group.prepare(to, processes);
    group.until("a view", PATIENCE, |group| group.is_ready(to, processes));
    group.go_on_in(to, processes);
    group.retire(from);
    group.assert_carried(to, processes);
}

fn print(what: &str, members: usize, cost: &Cost) {
    let Cost { steps, steps_with_commands, commands_in_step_max, commands, .. } = cost;
    let each = commands / u64::try_from(members).expect("few");
    println!(
        "{what}, {members} members: {each} commands a member; {steps_with_commands} of {steps} \
         steps asked the \
         kernel, at most {commands_in_step_max} times; {} ms in all",
        cost.ns / MS
    );
}

/// Performs a join, a kill and a leave: views of `most` members and one less.
fn three_changes(most: usize, limits: &Limits) -> Vec<Cost> {
    let all: Vec<usize> = (0..most).collect();
    let mut group = ChangingGroup::new(most, limits, |_| slow_commands());
    group.prepare(1, &all[1..]);
    group.until("the first view", PATIENCE, |group| group.is_ready(1, &all[1..]));
    group.go_on_in(1, &all[1..]);
    let mut costs = Vec::new();
    // One member joins.
    group.begin_to_count();
    change(&mut group, 1, &all);
    costs.push(group.count());
    print("one joins", most, costs.last().expect("one"));
    // One member is killed.
    group.begin_to_count();
    group.kill(most - 1);
    let survivors = most - 1;
    group.until("the losses", PATIENCE, |group| {
        let told = group.members.iter().flatten().filter(|member| !member.losses.is_empty());
        told.count() == survivors
    });
    group.cut_who_was_lost();
    change(&mut group, 2, &all[..survivors]);
    costs.push(group.count());
    print("one is killed", survivors, costs.last().expect("one"));
    // One member leaves.
    group.begin_to_count();
    change(&mut group, 3, &all[1..survivors]);
    group.leave(0);
    costs.push(group.count());
    print("one leaves", survivors - 1, costs.last().expect("one"));
    costs
}

#[test]
fn view_change_step_issues_at_most_one_command() {
    const MEMBERS: u64 = 64;
    let costs = three_changes(64, &Limits::default());
    for cost in &costs {
        assert!(cost.commands_in_step_max <= 1, "{cost:?}");
        assert!(cost.commands <= MEMBERS * (12 * MEMBERS + 16), "{cost:?}");
    }
    let [joined, killed, left] = &costs[..] else { panic!("three changes") };
    // Each member checks its port before a view, and each survivor seals the dead member's rows.
    assert_eq!((joined.steps_with_commands, left.steps_with_commands), (MEMBERS, MEMBERS - 2));
    assert!(killed.steps_with_commands < 2 * MEMBERS, "one more at each survivor: {killed:?}");
}

/// One member's kernel takes a second to look up each path.
#[test]
fn slow_path_lookups_delay_no_other_member() {
    let all: Vec<usize> = (0..6).collect();
    let mut group = ChangingGroup::new(6, &Limits::default(), |process| Profile {
        ready_to_receive_ns: if process == 0 { 1000 * MS } else { 0 },
        ..slow_commands()
    });
    let is_ready = |group: &ChangingGroup, of: &[usize]| {
        let pairs = of.iter().flat_map(|one| of.iter().map(move |other| [*one, *other]));
        pairs.filter(|[one, other]| one < other).all(|pair| group.are_ready(1, &all, pair))
    };
    group.prepare(1, &all);
    group.until("the others", 200 * MS, |group| is_ready(group, &all[1..]));
    assert!(!group.are_ready(1, &all, [0, 1]));
    group.until("the slow one", 20_000 * MS, |group| is_ready(group, &all));
    group.go_on_in(1, &all);
    group.assert_carried(1, &all);
    assert!(group.cost.commands_in_step_max <= 1);
}

#[test]
fn kill_during_view_change_loses_only_that_peer() {
    let (all, survivors) = ([0, 1, 2, 3], [0, 1, 2]);
    for after in 0..100 {
        let mut group = ChangingGroup::new(4, &Limits::default(), |_| slow_commands());
        group.prepare(1, &all);
        group.until("the first view", PATIENCE, |group| group.is_ready(1, &all));
        group.go_on_in(1, &all);
        group.prepare(2, &all);
        (0..after).for_each(|_| group.round());
        group.kill(3);
        group.until("the losses", PATIENCE, |group| {
            let mut there = group.members.iter().flatten();
            there.all(|member| member.is_told_of_loss(1))
        });
        group.cut_who_was_lost();
        group.retire(2);
        group.prepare(3, &survivors);
        group.until("a view without it", PATIENCE, |group| group.is_ready(3, &survivors));
        group.go_on_in(3, &survivors);
        group.retire(1);
        group.assert_carried(3, &survivors);
        for member in group.members.iter().flatten() {
            assert!(member.was_told_once(), "{after}: {:?}", member.losses);
        }
        assert!(group.cost.commands_in_step_max <= 1, "{after}: {:?}", group.cost);
        group.end();
        assert_eq!(group.network.objects(), 0, "{after}: something is left");
    }
}

#[test]
fn device_failure_during_setup_loses_peers_once() {
    let all = [0, 1, 2];
    for after in 0..80 {
        let mut group = ChangingGroup::new(3, &Limits::default(), |_| slow_commands());
        group.prepare(1, &all);
        (0..after).for_each(|_| group.round());
        group.fail_device(0);
        group.until("the losses", PATIENCE, |group| {
            let member = group.members[0].as_ref().expect("it is there");
            member.losses.len() >= 2
        });
        (0..20).for_each(|_| group.round());
        let member = group.members[0].as_ref().expect("it is there");
        assert_eq!(member.losses.len(), 2, "{after}: {:?}", member.losses);
        assert!(member.was_told_once(), "{after}: {:?}", member.losses);
        group.cut_who_was_lost();
        group.retire(1);
        group.end();
        assert_eq!(group.network.objects(), 0, "{after}: something is left");
    }
}

#[test]
fn exceeding_device_limit_loses_only_affected_peers() {
    let all = [0, 1, 2, 3];
    // This member's row, the messages about blocks, and three copies.
    for (regions, lost) in [(0, 3), (1, 3), (2, 3), (3, 2), (4, 1), (5, 0)] {
        let mut group = ChangingGroup::new(4, &Limits::default(), |process| {
            let mut profile = slow_commands();
            if process == 0 {
                profile.limits.memory_regions_max = regions;
            }
            profile
        });
        group.prepare(1, &all);
        (0..200).for_each(|_| group.round());
        let member = group.members[0].as_ref().expect("it is there");
        assert_eq!(member.losses.len(), lost, "{regions}: {:?}", member.losses);
        assert!(member.was_told_once(), "{regions}: {:?}", member.losses);
        let ready = all[1..].iter().filter(|peer| group.are_ready(1, &all, [0, **peer])).count();
        assert_eq!(ready, 3 - lost, "{regions}");
        group.cut_who_was_lost();
        group.retire(1);
        group.end();
        assert_eq!(group.network.objects(), 0, "{regions}: something is left");
    }
}

/// A list of members that is replaced with another under the same view.
#[test]
fn abandoned_view_is_rebuilt_with_other_members() {
    let (all, others) = ([0, 1, 2, 3], [0, 1, 2]);
    let mut usual = ChangingGroup::new(4, &Limits::default(), |_| slow_commands());
    usual.prepare(1, &others);
    usual.until("the view", PATIENCE, |group| group.is_ready(1, &others));
    for after in 0..40 {
        let mut group = ChangingGroup::new(4, &Limits::default(), |_| slow_commands());
        group.prepare(1, &all);
        (0..after).for_each(|_| group.round());
        group.give_up(1);
        group.prepare(1, &others);
        group.until("the other view", PATIENCE, |group| group.is_ready(1, &others));
        group.until("the end of what was given up", PATIENCE, |group| {
            group.network.objects() == usual.network.objects()
        });
        group.go_on_in(1, &others);
        group.assert_carried(1, &others);
        assert!(group.cost.commands_in_step_max <= 1);
        group.end();
        assert_eq!(group.network.objects(), 0, "{after}: something is left");
    }
}

#[test]
fn peer_disconnected_during_setup_writes_nothing() {
    let all = [0, 1, 2];
    for after in 0..80 {
        let mut group = ChangingGroup::new(3, &Limits::default(), |_| slow_commands());
        group.prepare(1, &all);
        group.go_on_in(1, &all);
        (0..after).for_each(|_| group.round());
        group.cut(0, 1, 1);
        let seen = group.seen(0, 1, 1);
        group.until("the other pairs", PATIENCE, |group| {
            group.are_ready(1, &all, [0, 2]) && group.are_ready(1, &all, [1, 2])
        });
        (0..50).for_each(|_| group.round());
        assert_eq!(group.seen(0, 1, 1), seen, "{after}: it wrote after the cut");
        assert!(group.seen(0, 1, 2) > 0, "{after}: the other did");
        assert!(group.cost.commands_in_step_max <= 1);
        group.retire(1);
        group.end();
        assert_eq!(group.network.objects(), 0, "{after}: something is left");
    }
}

/// Other connections wait their turn, but the cut peer's does not.
#[test]
fn disconnected_peer_cannot_write_while_workers_are_busy() {
    let all = [0, 1, 2];
    for reset in [ResetMeans::Reset, ResetMeans::NothingRevoked, ResetMeans::Error] {
        let profile = |_| Profile { reset, ..slow_commands() };
        let mut group = ChangingGroup::new(3, &Limits::default(), profile);
        group.prepare(1, &all);
        group.until("the view", PATIENCE, |group| group.is_ready(1, &all));
        group.go_on_in(1, &all);
        group.assert_carried(1, &all);
        (2..8).for_each(|view| group.prepare(view, &all));
        group.cut(0, 1, 1);
        let seen = group.seen(0, 1, 1);
        // By the member's next step, it would be too late.
        group.pause(0, 20 * MS);
        for _ in 0..200 {
            group.round();
            assert_eq!(group.seen(0, 1, 1), seen, "{reset:?}: it wrote after the cut");
        }
        assert!(group.seen(0, 1, 2) > seen, "{reset:?}: the other did");
        assert!(group.cost.commands_in_step_max <= 1);
    }
}

/// Its connection for blocks ends separately: until then, the memory for its writes must stay
/// valid.
#[test]
fn late_block_of_disconnected_peer_finds_valid_memory() {
    let all = [0, 1, 2];
    let way = |peer| Way { view: ViewId(1), channel: Channel(0), peer: Rank(peer) };
    let mut group = ChangingGroup::new(3, &Limits::default(), |_| slow_commands());
    group.prepare(1, &all);
    group.until("the view", PATIENCE, |group| group.is_ready(1, &all));
    group.with_blocks(0, |fabric, memory| {
        fabric.post_receive(way(1), memory.area(0), BLOCK_BYTES, Token(1)).expect("room");
    });
    (0..20).for_each(|_| group.round());
    let registered = group.commands_of(0, CommandKind::Deregister);
    (2..8).for_each(|view| group.prepare(view, &all));
    group.cut(0, 1, 1);
    group.pause(0, 5 * MS);
    group.with_blocks(1, |fabric, memory| {
        fabric.send(way(0), memory.area(0), BLOCK_BYTES, 7, Token(2)).expect("room");
    });
    (0..400).for_each(|_| group.round());
    assert_eq!(group.network.counts().refused, 0);
    assert!(group.commands_of(0, CommandKind::Deregister) > registered, "in the end it goes");
}

#[test]
fn each_step_seals_one_of_several_losses() {
    let (all, survivors) = ([0, 1, 2, 3, 4], [0, 1, 2]);
    let mut group = ChangingGroup::new(5, &Limits::default(), |_| slow_commands());
    group.prepare(1, &all);
    group.until("the view", PATIENCE, |group| group.is_ready(1, &all));
    group.go_on_in(1, &all);
    group.assert_carried(1, &all);
    group.begin_to_count();
    group.kill(3);
    group.kill(4);
    group.until("the losses", PATIENCE, |group| {
        group.members.iter().flatten().all(|member| member.losses.len() == 2)
    });
    group.cut_who_was_lost();
    let cost = group.count();
    assert_eq!((cost.commands_in_step_max, cost.steps_with_commands), (1, 6), "{cost:?}");
    change(&mut group, 1, &survivors);
}

#[test]
fn staging_memory_is_registered_once_per_domain() {
    let registered = |limits: &Limits| {
        let all: Vec<usize> = (0..5).collect();
        let mut group = ChangingGroup::new(5, limits, |_| slow_commands());
        group.prepare(1, &all);
        group.until("the view", PATIENCE, |group| group.is_ready(1, &all));
        group.go_on_in(1, &all);
        group.assert_carried(1, &all);
        group.commands_of(0, CommandKind::Register)
    };
    // This member's row, four copies, and the messages about blocks; and the staging memory of rows
    // and blocks.
    assert_eq!(registered(&Limits::default()), 6);
    assert_eq!(registered(&Limits { inline_bytes_max: Some(0), ..Limits::default() }), 8);
    // Messages are sent inline, but the longest guards are not.
    assert_eq!(registered(&Limits { inline_bytes_max: Some(48), ..Limits::default() }), 7);
}
