//! Tests of order in flight, of requests in flight when a connection is closed, and of loss.

use super::super::{Fault, Link, PortProfile};
use super::*;

fn cut(two: &Two, from: usize, to: usize, is_cut: bool) {
    let link = Link { is_cut, ..Link::default() };
    let [from, to] = [from, to].map(|index| two.devices[index].clone());
    two.network.inject(Fault::Link { from, to, link });
}

/// Travel times differ, but nothing overtakes.
#[test]
fn jitter_does_not_reorder_a_connection() {
    let mut two = Two::new(Profile { jitter_ns: 100_000, ..Profile::strict() });
    let source = two.b.target(0);
    for name in 0..30 {
        let is_read = name % 2 == 0;
        let operation = if is_read { Operation::Read(source) } else { Operation::Write(source) };
        two.a.post(name, operation, Some((0, 8))).expect("room");
    }
    two.run(4 * MS);
    assert_eq!(two.a.completed(), (0..30).map(|name| (name, 0)).collect::<Vec<_>>());
    assert_eq!(two.network.counts().sent_again, 0);
}

#[test]
fn port_never_exceeds_its_bandwidth() {
    let mut two = Two::new(Profile { bytes_per_us: 1, ..Profile::strict() });
    two.write(1, 0, 1000);
    two.write(2, 0, 1000);
    two.network.run_until(MS + 4_000);
    assert_eq!(two.a.completed(), [(1, 0)]);
    two.network.run_until(2 * MS + 3_999);
    assert_eq!(two.a.completed(), []);
    two.network.run_until(2 * MS + 4_000);
    assert_eq!(two.a.completed(), [(2, 0)]);
}

#[test]
fn receiver_requests_missing_packets_before_timeout() {
    let mut two = Two::new(Profile::strict());
    for round in 0..3 {
        two.write(3 * round, 0, 8);
        cut(&two, 0, 1, true);
        two.write(3 * round + 1, 0, 8);
        cut(&two, 0, 1, false);
        two.write(3 * round + 2, 0, 8);
        two.run(100_000);
    }
    assert_eq!(two.a.completed(), (0..9).map(|name| (name, 0)).collect::<Vec<_>>());
}

#[test]
fn lost_read_response_is_requested_again() {
    let mut two = Two::new(Profile::strict());
    two.b.fill(0, &[4; 8]);
    let source = two.b.target(0);
    cut(&two, 1, 0, true);
    two.a.post(1, Operation::Read(source), Some((64, 8))).expect("room");
    two.run(3_000);
    cut(&two, 1, 0, false);
    two.write(2, 128, 8);
    two.run(100_000);
    assert_eq!((two.a.completed(), two.a.look(64, 8)), (vec![(1, 0), (2, 0)], vec![4; 8]));
}

#[test]
fn acknowledgement_lost_at_downed_port_is_repeated() {
    let mut two = Two::new(Profile::strict());
    two.write(1, 0, 8);
    two.run(3_000);
    two.network.inject(Fault::PortDown(two.devices[0].clone(), 1));
    two.run(2_000);
    two.network.inject(Fault::PortUp(two.devices[0].clone(), 1));
    two.run(MS);
    assert_eq!(two.a.completed(), []);
    two.run(10 * MS);
    assert_eq!((two.a.completed(), two.network.counts().seen_twice), (vec![(1, 0)], 1));
}

#[test]
fn receiver_not_ready_retries_restart_after_success() {
    let mut two = Two::new(Profile::strict());
    let target = two.b.target(0);
    for name in 0..4 {
        two.a.post(name, Operation::WriteWithImmediate(target, 0), None).expect("room");
        two.run(2 * MS);
        two.b.pair.post_receive(name, None).expect("room");
        two.run(MS);
        assert_eq!(two.a.completed(), [(name, 0)]);
    }
    assert!(two.network.counts().not_ready > 6);
}

#[test]
fn message_above_port_maximum_is_a_local_error() {
    let port = PortProfile { message_bytes_max: 100, ..PortProfile::default() };
    let mut two = Two::new(Profile { ports: vec![port], ..Profile::strict() });
    two.write(1, 0, 100);
    two.write(2, 0, 101);
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, 0), (2, 1)]);
}

#[test]
fn stale_acknowledgement_does_not_complete_new_requests() {
    let mut two = Two::new(Profile { latency_ns: MS, ..Profile::strict() });
    two.write(1, 0, 8);
    two.network.run_until(MS + 1);
    two.a.pair.reset().expect("from any state");
    two.b.pair.reset().expect("from any state");
    two.connect(FULL);
    two.write(2, 0, 8);
    two.network.run_until(2 * MS + 1);
    assert_eq!(two.a.completed(), []);
    two.network.run_until(3 * MS + 1);
    assert_eq!(two.a.completed(), [(2, 0)]);
}

#[test]
fn reset_drops_posted_receives() {
    let mut two = Two::new(Profile::strict());
    two.b.pair.post_receive(1, None).expect("room");
    two.a.pair.reset().expect("from any state");
    two.b.pair.reset().expect("from any state");
    two.connect(FULL);
    let target = two.b.target(0);
    two.a.post(1, Operation::WriteWithImmediate(target, 0), None).expect("room");
    two.run(10 * MS);
    assert_eq!((two.a.completed(), two.b.completed()), (vec![(1, 13)], vec![]));
}

#[test]
fn stale_completions_free_no_queue_slots() {
    let mut two = Two::new(Profile { keeps_completions: true, ..Profile::strict() });
    let target = two.b.target(0);
    (0..64).for_each(|name| two.a.post(name, Operation::Write(target), None).expect("room"));
    two.run(MS);
    two.a.pair.reset().expect("from any state");
    two.b.pair.reset().expect("from any state");
    two.connect(FULL);
    (0..64).for_each(|name| two.a.post(name, Operation::Write(target), None).expect("room"));
    assert_eq!(two.a.completed().len(), 64, "of before");
    assert!(two.a.post(64, Operation::Write(target), None).is_err());
}

#[test]
fn acknowledged_writes_land_before_destruction() {
    let profile = Profile {
        placement: super::super::Placement::BytesReordered,
        placement_delay_ns: 100 * MS,
        completes_before_visible: true,
        ..Profile::strict()
    };
    let ends: [fn(&mut FakeEnd); 3] = [
        |end| {
            let pages = Arc::new(Pages::new(8).expect("memory"));
            let other = MemoryRegion::new(&end.domain, &pages, 8, FULL).expect("a region");
            drop(std::mem::replace(&mut end.region, Arc::new(other)));
        },
        |end| end.pair.reset().expect("from any state"),
        |end| end.pair = QueuePair::new(&end.domain, &end.queue, LIMITS).expect("a queue pair"),
    ];
    for end in ends {
        let mut two = Two::new(profile.clone());
        let pages = Arc::clone(two.b.region.pages());
        two.a.fill(0, &[1; 1024]);
        two.write(1, 0, 1024);
        two.run(10_000);
        assert_eq!(two.a.completed(), [(1, 0)]);
        assert_ne!(two.b.look(0, 1024), [1; 1024]);
        end(&mut two.b);
        let mut bytes = [0; 1024];
        pages.row().read(0, &mut bytes).expect("inside");
        assert_eq!(bytes, [1; 1024]);
    }
}

#[test]
fn queue_pair_on_another_port_receives_nothing() {
    let ports = vec![PortProfile::default(), PortProfile::default()];
    let mut two = Two::unconnected(1, Profile { ports, ..Profile::strict() });
    two.a.connect(&two.b, FULL, &TIMES);
    let route = Route { port: 2, ..two.b.route_to(&two.a, 100) };
    two.b.pair.initialise(2, 0, FULL).expect("from RESET");
    two.b.pair.connect(&route).expect("from INIT");
    two.write(1, 0, 8);
    two.run(100 * MS);
    assert_eq!(two.a.completed(), [(1, 12)]);
}

#[test]
fn write_to_unreachable_address_times_out() {
    let mut two = Two::new(Profile::strict());
    let remote_gid = two.b.context.gid(1, 0).expect("an address");
    let route = Route { remote_gid, ..two.a.route_to(&two.b, 100) };
    two.a.pair.reset().expect("from any state");
    two.a.pair.initialise(1, 0, FULL).expect("from RESET");
    two.a.pair.connect(&route).expect("from INIT");
    two.a.pair.start(&TIMES).expect("from RTR");
    two.write(1, 0, 8);
    two.run(100 * MS);
    assert_eq!(two.a.completed(), [(1, 12)]);
}

/// In real time, a sleeping thread wakes although the device is not called.
#[test]
fn completion_descriptor_becomes_readable_without_device_calls() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let network = Network::new(1, Clock::Real);
    let devices =
        [0; 2].map(|_| network.add_device(Profile { latency_ns: MS, ..Profile::strict() }));
    let [mut a, mut b] = devices.each_ref().map(FakeEnd::new);
    a.connect(&b, FULL, &TIMES);
    b.connect(&a, FULL, &TIMES);
    a.queue.notify().expect("it works");
    let target = b.target(0);
    // By then, the network's own thread most likely has no event to wait for.
    std::thread::sleep(std::time::Duration::from_millis(20));
    a.post(1, Operation::Write(target), None).expect("room");
    let mut descriptors = [PollFd::new(&a.queue, PollFlags::IN)];
    let most = Timespec { tv_sec: 30, tv_nsec: 0 };
    assert_eq!(poll(&mut descriptors, Some(&most)), Ok(1));
    assert_eq!(a.completed(), [(1, 0)]);
}
