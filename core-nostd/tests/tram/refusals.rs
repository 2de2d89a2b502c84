//! A fabric that sometimes refuses a call, and a host that sometimes lacks the rows of a link. Both
//! are allowed: a refused call is retried in a later step.

use super::faults::{REFERENCES_FROM, faulty_run, settings_of, shape_of, thirty_faults};
use super::judge::{missing, safety};
use super::world::{Settings, World};
use tramontane_core::ids::{ClientNumber, GroupId};
use tramontane_core::tram::LinkId;

/// Half of the seeds use references.
fn settings(seed: u64) -> Settings {
    let references_from = if seed.is_multiple_of(2) { REFERENCES_FROM } else { 0 };
    Settings { references_from, ..settings_of(seed) }
}

/// TRM-8: posts, reads, grants and revocations are refused, peers are not ready yet, and
/// meaningless events arrive.
#[test]
fn refused_calls_lose_no_message() {
    let mut refusals = 0;
    for seed in 1..20 {
        let (parents, replicas) = shape_of(seed);
        let settings = Settings { refuses: 20, ..settings(seed) };
        refusals += faulty_run(parents, replicas, settings).refusals;
    }
    assert!(refusals > 1_000, "{refusals}");
}

/// If a host lacks the rows of an attached link, nothing is read or written on that link. Messages
/// may wait indefinitely, but none is duplicated, reordered or invented.
#[test]
fn missing_link_rows_never_break_the_order() {
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

/// TRM-3: writes of peers land in the middle of a process's step, so a row or a log may change
/// before the process has read the rest of it. A mixture must have no effect.
#[test]
fn rows_changing_during_a_step_cause_no_violation() {
    let mut reached = 0;
    for seed in 1..40 {
        let (parents, replicas) = shape_of(seed);
        let settings = Settings { lands_within: 30, ..settings(seed) };
        reached += faulty_run(parents, replicas, settings).leaders;
    }
    assert!(reached > 40, "{reached}");
}

/// TRM-3: lists to a log, and reads from one, are no longer than the fabric accepts; the remaining
/// data goes with the next list or read. The network of these tests checks this.
#[test]
fn log_transfers_never_exceed_the_fabric_limit() {
    for seed in 1..16 {
        let (parents, replicas) = shape_of(seed);
        // Either several entries fit in a list, or a list has room for an entry's header but not
        // for the payload after another payload.
        let write_bytes_max = if seed % 3 == 1 { 280 } else { 640 };
        let settings = Settings { write_bytes_max, payload_max: 100, ..settings(seed) };
        let mut world = World::new(parents, replicas, settings);
        thirty_faults(&mut world);
        world.network.borrow_mut().heal();
        for id in world.ids() {
            if !world.replicas.contains_key(&id) {
                world.start_replica(id, false);
            }
        }
        let is_over = world.run_until(3_000_000, |world| missing(world).is_empty());
        assert_eq!(safety(&world), Vec::<String>::new(), "seed {seed}");
        assert!(is_over, "seed {seed}: {:?}", missing(&world));
    }
}

/// A client is about to leave, and has no rows of any replica, so none has shown it that its
/// registration is closed.
#[test]
fn client_without_replica_rows_has_not_left() {
    let mut world = World::new(&[None, Some(0)], 3, Settings::default());
    let number = ClientNumber(0);
    world.multicast(number, world.overlay.all(), 8).expect("there is room");
    world.leave(number);
    assert!(world.run_until(400_000, |world| world.has_left(number)));
    let running = world.clients.get_mut(&number).expect("it runs");
    running.memory.hide(100, &mut world.random);
    assert!(!world.has_left(number));
    world.clients.get_mut(&number).expect("it runs").memory.show();
    assert!(world.has_left(number));
}

/// A client restarts and leaves at once. Until its group has met it, replicas show the registration
/// of its earlier incarnation, open or closed. The group has not taken its messages yet, so they
/// would be lost if the client left now.
#[test]
fn client_stays_until_group_knows_its_incarnation() {
    const OPENED: usize = 8;
    let mut world = World::new(&[None], 3, Settings::default());
    let number = ClientNumber(0);
    assert!(world.run_until(200_000, |world| world.leader(GroupId(0)).is_some()));
    world.crash_client(number);
    world.start_client(number);
    world.allow_only(&[], &[]);
    world.multicast(number, world.overlay.all(), 8).expect("there is room");
    world.leave(number);
    world.step_client(number);
    for (shown, has_left) in [(1 << 1, false), (1 << 1 | 1, false), (2 << 1, true)] {
        for link in 0..3 {
            world.poke_client(number, LinkId(link), OPENED, shown);
        }
        assert_eq!(world.has_left(number), has_left, "{shown}");
    }
}
