//! Tests of each unexpected behaviour that is permitted to a device.

use super::super::{InlineGrant, Keys, Placement, ResetMeans, SevenRetries};
use super::*;
use crate::adapter::QueuePairState;
use crate::devices::DataInOrder;

/// The interval at which placement is checked.
const TICK: u64 = 500;

#[test]
fn writes_may_be_placed_in_any_order() {
    let placement = Placement::WritesReordered;
    let mut two = Two::new(Profile { placement, ..Profile::strict() });
    let mut overtaken = 0;
    for round in 1..20 {
        two.a.fill(0, &[round; BYTES]);
        two.write(1, 0, 256);
        two.write(2, 4096, 256);
        for _ in 0..60 {
            two.run(TICK);
            let (first, second) = (two.b.look(0, 256), two.b.look(4096, 256));
            overtaken += u32::from(first != [round; 256] && second == [round; 256]);
            assert!(first.iter().all(|byte| *byte == first[0]), "each write at once");
        }
        assert_eq!(two.b.look(0, 256), [round; 256]);
    }
    assert!(overtaken > 0);
    assert!(two.network.counts().placed_out_of_order > 0);
}

#[test]
fn bytes_of_a_write_may_be_reordered() {
    let placement = Placement::BytesReordered;
    let mut two = Two::new(Profile { placement, ..Profile::strict() });
    two.a.fill(0, &[1; 1024]);
    two.write(1, 0, 1024);
    let (mut torn, mut later_first) = (0, 0);
    for _ in 0..60 {
        two.run(TICK);
        let lines: Vec<bool> = two.b.look(0, 1024).chunks(64).map(|line| line[0] == 1).collect();
        torn += u32::from(lines.contains(&true) && lines.contains(&false));
        later_first += u32::from(lines.is_sorted_by_key(|is_there| !is_there));
        assert!(two.b.look(0, 1024).chunks(64).all(|line| line.iter().all(|it| *it == line[0])));
    }
    assert!(torn > 0 && later_first < 60);
    assert_eq!(two.b.look(0, 1024), [1; 1024]);
}

#[test]
fn completion_waits_for_visibility_unless_disabled() {
    for completes_before_visible in [false, true] {
        let profile = Profile {
            placement: Placement::BytesReordered,
            placement_delay_ns: MS,
            completes_before_visible,
            ..Profile::strict()
        };
        let mut two = Two::new(profile);
        two.a.fill(0, &[1; 1024]);
        two.write(1, 0, 1024);
        while two.a.completed().is_empty() {
            let at = two.network.next_at().expect("something is under way");
            two.network.run_until(at);
        }
        assert_eq!(two.b.look(0, 1024) == [1; 1024], !completes_before_visible);
        two.run(2 * MS);
        assert_eq!(two.b.look(0, 1024), [1; 1024]);
    }
}

#[test]
fn immediate_value_arrives_after_all_earlier_writes() {
    for placement in [Placement::InOrder, Placement::WritesReordered, Placement::BytesReordered] {
        let profile = Profile {
            placement,
            placement_delay_ns: MS,
            completes_before_visible: true,
            ..Profile::strict()
        };
        let mut two = Two::new(profile);
        two.b.pair.post_receive(9, None).expect("room");
        two.a.fill(0, &[1; 4096]);
        two.write(1, 0, 1024);
        two.write(2, 1024, 1024);
        let target = two.b.target(2048);
        two.a.post(3, Operation::WriteWithImmediate(target, 1), Some((2048, 100))).expect("room");
        while two.b.completed().is_empty() {
            let at = two.network.next_at().expect("something is under way");
            two.network.run_until(at);
        }
        assert_eq!(two.b.look(0, 2148), [1; 2148], "{placement:?}");
    }
}

#[test]
fn read_sees_earlier_writes() {
    let profile = Profile {
        placement: Placement::BytesReordered,
        placement_delay_ns: MS,
        completes_before_visible: true,
        ..Profile::strict()
    };
    let mut two = Two::new(profile);
    two.a.fill(0, &[1; 1024]);
    two.write(1, 0, 1024);
    let source = two.b.target(0);
    two.a.post(2, Operation::Read(source), Some((4096, 1024))).expect("room");
    two.run(MS / 2);
    assert_eq!(two.a.look(4096, 1024), [1; 1024]);
}

#[test]
fn retransmission_rereads_content_on_late_reading_device() {
    let mut two = Two::new(Profile { late_read_ns: MS, ..Profile::strict() });
    two.a.fill(0, &[1; 64]);
    let target = two.b.target(0);
    two.a.post(1, Operation::Write(target), Some((0, 64))).expect("room");
    let inline = two.b.target(64);
    two.a.post_inline(2, Operation::Write(inline), Some((0, 64)), true).expect("room");
    two.a.fill(0, &[2; 64]);
    two.run(3 * MS);
    assert_eq!(two.b.look(0, 64), [2; 64]);
    assert_eq!(two.b.look(64, 64), [1; 64], "what goes inline is read at the post");
    assert_eq!(two.network.counts().read_late, 1);
    two.network.inject(super::super::Fault::PortDown(two.devices[1].clone(), 1));
    two.write(3, 0, 64);
    two.run(2 * MS);
    two.a.fill(0, &[3; 64]);
    two.network.inject(super::super::Fault::PortUp(two.devices[1].clone(), 1));
    two.run(20 * MS);
    assert_eq!(two.b.look(0, 64), [3; 64]);
}

#[test]
fn strict_device_reads_content_only_when_posting() {
    let mut two = Two::new(Profile::strict());
    two.network.inject(super::super::Fault::PortDown(two.devices[1].clone(), 1));
    two.a.fill(0, &[1; 64]);
    two.write(1, 0, 64);
    two.a.fill(0, &[2; 64]);
    two.run(2 * MS);
    two.network.inject(super::super::Fault::PortUp(two.devices[1].clone(), 1));
    two.run(20 * MS);
    assert_eq!(two.b.look(0, 64), [1; 64]);
}

#[test]
fn device_may_ignore_access_flags() {
    let mut two = Two::unconnected(1, Profile { ignores_access_flags: true, ..Profile::strict() });
    two.connect(Access::empty());
    two.a.fill(0, &[1; 8]);
    two.write(1, 0, 8);
    two.run(MS);
    assert_eq!((two.a.completed(), two.b.look(0, 8)), (vec![(1, 0)], vec![1; 8]));
    assert_eq!(two.network.counts().flags_ignored, 1);
}

#[test]
fn reset_may_revoke_access_only_upon_reconnection() {
    let mut two = Two::new(Profile { reset: ResetMeans::NothingRevoked, ..Profile::strict() });
    two.b.pair.reset().expect("from any state");
    assert_eq!(two.b.pair.state(), QueuePairState::Reset);
    two.a.fill(0, &[1; 8]);
    two.write(1, 0, 8);
    two.run(MS);
    assert_eq!((two.a.completed(), two.b.look(0, 8)), (vec![(1, 0)], vec![1; 8]));
    let route = two.b.route_to(&two.a, 9_000);
    two.b.pair.initialise(1, 0, FULL).expect("from RESET");
    two.b.pair.connect(&route).expect("from INIT");
    two.write(2, 64, 8);
    two.run(100 * MS);
    assert_eq!((two.a.completed(), two.b.look(64, 8)), (vec![(2, 12)], vec![0; 8]));
}

#[test]
fn first_reset_may_only_flush_requests() {
    let mut two = Two::new(Profile { reset: ResetMeans::Error, ..Profile::strict() });
    two.b.pair.post_receive(7, None).expect("room");
    two.b.pair.reset().expect("from any state");
    assert_eq!(two.b.pair.state(), QueuePairState::Error);
    assert_eq!(two.b.completed(), [(7, 5)]);
    assert!(two.b.pair.initialise(1, 0, FULL).is_err());
    two.b.pair.reset().expect("from any state");
    two.b.pair.initialise(1, 0, FULL).expect("from RESET");
}

#[test]
fn completions_may_survive_a_reset() {
    for keeps_completions in [false, true] {
        let mut two = Two::new(Profile { keeps_completions, ..Profile::strict() });
        two.write(1, 0, 8);
        two.run(MS);
        two.a.pair.reset().expect("from any state");
        let expected: &[(u64, u32)] = if keeps_completions { &[(1, 0)] } else { &[] };
        assert_eq!(two.a.completed(), expected);
    }
}

#[test]
fn granted_inline_size_matches_the_profile() {
    let granted = |inline, asked| {
        let network = Network::new(1, Clock::Virtual);
        let device = network.add_device(Profile { inline, ..Profile::strict() });
        let context = open(device.as_str()).expect("it is there");
        let domain = ProtectionDomain::new(&context).expect("a domain");
        let queue = CompletionQueue::new(&context, 8).expect("a queue");
        let limits = QueuePairLimits { inline_bytes_max: asked, ..LIMITS };
        QueuePair::new(&domain, &queue, limits).ok().map(|pair| pair.inline_bytes_max())
    };
    let all = |inline| [0, 100, 512, 513].map(|asked| granted(inline, asked));
    assert_eq!(all(InlineGrant::AsAsked), [Some(0), Some(100), Some(512), None]);
    assert_eq!(all(InlineGrant::RoundedUp), [Some(0), Some(128), Some(512), None]);
    assert_eq!(all(InlineGrant::Less), [Some(0), Some(100), Some(256), Some(256)]);
}

#[test]
fn inline_write_above_granted_size_is_refused() {
    let mut two = Two::new(Profile::strict());
    let target = two.b.target(0);
    let mut post =
        |bytes| two.a.post_inline(1, Operation::Write(target), Some((0, bytes)), true).is_ok();
    assert_eq!([post(128), post(129)], [true, false]);
}

#[test]
fn fake_network_counts_command_time() {
    let profile = Profile { command_ns: 1_000, ready_to_receive_ns: 50_000, ..Profile::strict() };
    let network = Network::new(1, Clock::Virtual);
    let device = network.add_device(profile);
    let mut end = FakeEnd::new(&device);
    let context = network.contexts(&device)[0];
    // The commands for a domain, a completion queue, a registration and a queue pair.
    assert_eq!(network.take_command_ns(context), 4_000);
    assert_eq!(network.take_command_ns(context), 0);
    let route = end.route_to(&end, 0);
    // Two ports and an address are queried.
    assert_eq!(network.take_command_ns(context), 3_000);
    end.pair.initialise(1, 0, FULL).expect("from RESET");
    end.pair.connect(&route).expect("from INIT");
    assert_eq!(network.take_command_ns(context), 52_000);
    let counted = network.commands(context);
    let own = counted.iter().filter(|one| one.thread == std::thread::current().id());
    assert_eq!(own.map(|one| one.count).sum::<u64>(), 4 + 3 + 2);
    assert_eq!(network.now_ns(), 0, "nothing else comes of it");
}

#[test]
fn device_may_raise_and_stretch_timeouts() {
    let lost_after = |profile: Profile| {
        let mut two = Two::new(profile);
        two.b.pair.reset().expect("from any state");
        two.write(1, 0, 8);
        while two.a.completed().is_empty() {
            let at = two.network.next_at().expect("a timer");
            two.network.run_until(at);
        }
        two.network.now_ns()
    };
    let each = |exponent: u32| 4096_u64 << exponent;
    assert_eq!(lost_after(Profile::strict()), 4 * each(10));
    let floor = Profile { timeout_exponent_min: 16, ..Profile::strict() };
    assert_eq!(lost_after(floor), 4 * each(16));
    let stretched = lost_after(Profile { timeout_stretch_max: 4, ..Profile::strict() });
    assert!(stretched > 4 * each(10) && stretched <= 16 * each(10), "{stretched}");
}

#[test]
fn seven_retries_may_mean_endless_retries() {
    for (seven_retries, completed) in
        [(SevenRetries::Seven, vec![(1, 12)]), (SevenRetries::ForEver, vec![])]
    {
        let mut two = Two::unconnected(1, Profile { seven_retries, ..Profile::strict() });
        two.a.connect(&two.b, FULL, &SendTimes { retries: 7, ..TIMES });
        two.write(1, 0, 8);
        let each = 4096_u64 << 10;
        two.network.run_until(8 * each - 1);
        assert_eq!(two.a.completed(), []);
        two.network.run_until(1_000 * each);
        assert_eq!(two.a.completed(), completed);
    }
}

#[test]
fn profile_determines_whether_keys_are_reused() {
    let keys = |keys| {
        let network = Network::new(1, Clock::Virtual);
        let device = network.add_device(Profile { keys, ..Profile::strict() });
        let context = open(device.as_str()).expect("it is there");
        let domain = ProtectionDomain::new(&context).expect("a domain");
        let pages = Arc::new(Pages::new(64).expect("memory"));
        (0..257)
            .map(|_| MemoryRegion::new(&domain, &pages, 64, FULL).expect("room").remote_key())
            .collect::<Vec<_>>()
    };
    let consecutive = keys(Keys::Consecutive);
    assert!(consecutive.is_sorted_by(|one, next| one < next));
    let drawn = keys(Keys::Drawn);
    assert!(!drawn.is_sorted() && drawn[0] != consecutive[0]);
    let reused = keys(Keys::Reused);
    assert_eq!(reused[0], reused[256], "the lowest byte has come round");
    assert!(reused.iter().all(|key| key >> 8 == reused[0] >> 8));
    assert_ne!(reused[0], reused[1]);
}

#[test]
fn device_reports_the_configured_order() {
    for data_in_order in [DataInOrder::Yes, DataInOrder::No, DataInOrder::NotKnown] {
        let two = Two::new(Profile { data_in_order, ..Profile::strict() });
        assert_eq!(two.a.pair.data_in_order(), data_in_order);
    }
}

#[test]
fn seeds_cover_every_permitted_device_behaviour() {
    let drawn: Vec<Profile> = (0..100).map(Profile::drawn).collect();
    assert_eq!(drawn[3], Profile::drawn(3));
    let some = |of: &dyn Fn(&Profile) -> bool| {
        let count = drawn.iter().filter(|profile| of(profile)).count();
        assert!((10..=90).contains(&count), "{count}");
    };
    some(&|profile| profile.placement == Placement::InOrder);
    some(&|profile| profile.placement == Placement::BytesReordered);
    some(&|profile| profile.completes_before_visible);
    some(&|profile| profile.late_read_ns > 0);
    some(&|profile| profile.ignores_access_flags);
    some(&|profile| profile.reset == ResetMeans::NothingRevoked);
    some(&|profile| profile.reset == ResetMeans::Error);
    some(&|profile| profile.keeps_completions);
    some(&|profile| profile.inline == InlineGrant::Less);
    some(&|profile| profile.command_ns > 0);
    some(&|profile| profile.ready_to_receive_ns > 0);
    some(&|profile| profile.timeout_exponent_min > 0);
    some(&|profile| profile.seven_retries == SevenRetries::ForEver);
    some(&|profile| profile.keys == Keys::Reused);
    some(&|profile| profile.data_in_order == DataInOrder::No);
}
