//! Tests of states, numbers and the traffic of a connection.

use super::*;
use crate::adapter::QueuePairState;

#[test]
fn write_completes_after_one_round_trip() {
    let mut two = Two::new(Profile::strict());
    two.a.fill(64, &[7; 5000]);
    two.write(1, 64, 5000);
    assert_eq!(two.network.next_at(), Some(2_000));
    two.network.run_until(1_999);
    assert_eq!(two.b.look(64, 5000), [0; 5000]);
    two.network.run_until(2_000);
    assert_eq!(two.b.look(64, 5000), [7; 5000]);
    assert_eq!(two.a.completed(), []);
    two.network.run_until(4_000);
    assert_eq!(two.a.completed(), [(1, 0)]);
    assert_eq!(two.network.next_at(), None, "no timer is left");
}

#[test]
fn reads_fetch_bytes_and_sends_report_length() {
    let mut two = Two::new(Profile::strict());
    two.b.fill(100, &[5; 300]);
    let source = two.b.target(100);
    two.a.post(1, Operation::Read(source), Some((1000, 300))).expect("room");
    let into = Some((&*two.b.region, 4096, 512));
    two.b.pair.post_receive(9, into).expect("room");
    two.a.fill(2000, &[6; 77]);
    two.a.post(2, Operation::Send, Some((2000, 77))).expect("room");
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, 0), (2, 0)]);
    assert_eq!(two.a.look(1000, 300), [5; 300]);
    assert_eq!(two.b.look(4096, 78), [&[6; 77][..], &[0]].concat());
    let received = two.b.completions();
    assert_eq!((received[0].name, received[0].status, received[0].bytes), (9, 0, 77));
}

#[test]
fn reads_in_flight_are_bounded() {
    let mut two = Two::new(Profile::strict());
    let source = two.b.target(0);
    for name in 0..9 {
        two.a.post(name, Operation::Read(source), Some((0, 8))).expect("room");
    }
    two.network.run_until(4_000);
    assert_eq!(two.a.completed().len(), 4);
    two.network.run_until(12_000);
    assert_eq!(two.a.completed().len(), 5);
}

#[test]
fn immediate_write_consumes_a_receive() {
    let mut two = Two::new(Profile::strict());
    two.b.pair.post_receive(3, None).expect("room");
    two.a.fill(0, &[1; 40]);
    let target = two.b.target(0);
    two.a.post(1, Operation::WriteWithImmediate(target, 77), Some((0, 40))).expect("room");
    two.run(MS);
    let received = two.b.completions();
    assert_eq!((received[0].name, received[0].immediate, received[0].bytes), (3, Some(77), 40));
    assert_eq!(two.b.look(0, 40), [1; 40]);
}

#[test]
fn only_defined_state_transitions_succeed() {
    let mut two = Two::unconnected(1, Profile::strict());
    let route = two.a.route_to(&two.b, 100);
    let target = two.b.target(0);
    let post = |end: &mut FakeEnd| end.post(1, Operation::Write(target), Some((0, 8))).is_ok();
    assert_eq!(two.a.pair.state(), QueuePairState::Reset);
    assert!(two.a.pair.connect(&route).is_err() && two.a.pair.start(&TIMES).is_err());
    assert!(two.a.pair.post_receive(1, None).is_err());
    assert!(two.a.pair.initialise(9, 0, FULL).is_err(), "there is no such port");
    two.a.pair.initialise(1, 0, FULL).expect("from RESET");
    two.a.pair.post_receive(1, None).expect("from INIT on");
    assert!(!post(&mut two.a) && two.a.pair.start(&TIMES).is_err());
    let wide = Route { reads_max: 17, ..route };
    assert!(two.a.pair.connect(&wide).is_err(), "more reads than the device has");
    two.a.pair.connect(&route).expect("from INIT");
    assert!(!post(&mut two.a) && two.a.pair.initialise(1, 0, FULL).is_err());
    two.a.pair.start(&TIMES).expect("from RTR");
    assert!(post(&mut two.a) && two.a.pair.start(&TIMES).is_err());
    assert_eq!(two.a.pair.state(), QueuePairState::ReadyToSend);
    // There is no answer, so the request finally fails.
    two.run(100 * MS);
    assert_eq!(two.a.pair.state(), QueuePairState::Error);
    assert_eq!(two.a.completed(), [(1, 12), (1, 5)], "the write, and the receive");
    assert!(two.a.pair.initialise(1, 0, FULL).is_err());
    assert!(post(&mut two.a), "what is posted in ERROR is flushed");
    two.a.pair.post_receive(2, None).expect("flushed too");
    assert_eq!(two.a.completed(), [(1, 5), (2, 5)]);
    two.a.pair.reset().expect("from any state");
    two.a.pair.initialise(1, 0, FULL).expect("from RESET");
}

#[test]
fn silent_peer_is_abandoned_and_requests_flushed() {
    let mut two = Two::new(Profile::strict());
    two.b.pair.reset().expect("from any state");
    two.a.pair.post_receive(50, None).expect("room");
    (1..4).for_each(|name| two.write(name, 0, 8));
    let each = 4096_u64 << 10;
    two.network.run_until(4 * each - 1);
    assert_eq!(two.a.completed(), []);
    two.network.run_until(4 * each);
    assert_eq!(two.a.completed(), [(1, 12), (2, 5), (3, 5), (50, 5)]);
    assert_eq!(two.network.counts().sent_again, 3);
    assert_eq!(two.network.next_at(), None);
}

#[test]
fn missing_receive_is_retried_then_fails_sender() {
    let mut two = Two::new(Profile::strict());
    let target = two.b.target(0);
    two.a.post(1, Operation::WriteWithImmediate(target, 5), None).expect("room");
    two.run(2 * MS);
    assert_eq!((two.a.completed(), two.b.completed()), (vec![], vec![]));
    two.b.pair.post_receive(9, None).expect("room");
    two.run(MS);
    assert_eq!((two.a.completed(), two.b.completed()), (vec![(1, 0)], vec![(9, 0)]));
    two.a.post(2, Operation::WriteWithImmediate(target, 5), None).expect("room");
    two.run(10 * MS);
    assert_eq!(two.a.completed(), [(2, 13)]);
    assert_eq!(two.b.pair.state(), QueuePairState::ReadyToSend, "the receiver lives");
}

#[test]
fn too_small_receive_buffer_breaks_the_connection() {
    let mut two = Two::new(Profile::strict());
    let into = Some((&*two.b.region, 0, 10));
    two.b.pair.post_receive(9, into).expect("room");
    two.a.post(1, Operation::Send, Some((0, 11))).expect("room");
    two.run(MS);
    assert_eq!((two.a.completed(), two.b.completed()), (vec![(1, 9)], vec![(9, 1)]));
    assert_eq!(two.b.look(0, 16), [0; 16]);
}

#[test]
fn packets_with_wrong_sequence_number_are_ignored() {
    let mut two = Two::unconnected(1, Profile::strict());
    two.a.fill(0, &[1; 8]);
    // One number is ahead of the expected number, and the other looks like a repetition.
    for (name, expected) in [(1, 90), (2, 9_000)] {
        two.a.pair.reset().expect("from any state");
        two.a.connect(&two.b, FULL, &SendTimes { first_packet: 100, ..TIMES });
        let route = two.b.route_to(&two.a, expected);
        two.b.pair.reset().expect("from any state");
        two.b.pair.initialise(1, 0, FULL).expect("from RESET");
        two.b.pair.connect(&route).expect("from INIT");
        two.write(name, 0, 8);
        two.run(100 * MS);
        assert_eq!(two.a.completed(), [(name, 12)]);
        assert_eq!(two.b.look(0, 8), [0; 8]);
    }
}

#[test]
fn reconnected_pair_ignores_earlier_packets() {
    let mut two = Two::new(Profile { latency_ns: 10 * MS, ..Profile::strict() });
    two.a.fill(0, &[1; 8]);
    two.write(1, 0, 8);
    two.a.pair.reset().expect("from any state");
    two.b.pair.reset().expect("from any state");
    let times = SendTimes { first_packet: 5_000, ..TIMES };
    two.a.connect(&two.b, FULL, &times);
    two.b.connect(&two.a, FULL, &times);
    two.run(100 * MS);
    assert_eq!((two.a.completed(), two.b.look(0, 8)), (vec![], vec![0; 8]));
    two.write(2, 0, 8);
    two.network.inject(super::super::Fault::Link {
        from: two.devices[0].clone(),
        to: two.devices[1].clone(),
        link: super::super::Link::default(),
    });
    two.run(100 * MS);
    assert_eq!(two.b.look(0, 8), [1; 8]);
}

#[test]
fn queue_pair_ignores_packets_from_third_device() {
    let two = Two::new(Profile::strict());
    let mut third = FakeEnd::new(&two.devices[0]);
    third.connect(&two.b, FULL, &TIMES);
    third.fill(0, &[9; 8]);
    let target = two.b.target(0);
    third.post(1, Operation::Write(target), Some((0, 8))).expect("room");
    two.run(100 * MS);
    assert_eq!((third.completed(), two.b.look(0, 8)), (vec![(1, 12)], vec![0; 8]));
}

#[test]
fn infiniband_routes_by_local_identifier() {
    let port = super::super::PortProfile {
        link_layer: crate::devices::LinkLayer::InfiniBand,
        ..Default::default()
    };
    let mut two = Two::new(Profile { ports: vec![port], ..Profile::strict() });
    two.a.fill(0, &[3; 8]);
    two.write(1, 0, 8);
    two.run(MS);
    assert_eq!((two.a.completed(), two.b.look(0, 8)), (vec![(1, 0)], vec![3; 8]));
    let route = Route { remote_lid: 0, ..two.a.route_to(&two.b, 100) };
    two.a.pair.reset().expect("from any state");
    two.a.pair.initialise(1, 0, FULL).expect("from RESET");
    two.a.pair.connect(&route).expect("from INIT");
    two.a.pair.start(&TIMES).expect("from RTR");
    two.write(2, 0, 8);
    two.run(100 * MS);
    assert_eq!(two.a.completed(), [(2, 12)]);
}

#[test]
fn polling_a_completion_frees_send_queue_slots() {
    let mut two = Two::new(Profile::strict());
    let target = two.b.target(0);
    for name in 0..64 {
        two.a.post(name, Operation::Write(target), None).expect("room");
    }
    assert!(two.a.post(64, Operation::Write(target), None).is_err());
    two.run(MS);
    assert!(two.a.post(64, Operation::Write(target), None).is_err(), "nothing was taken");
    assert_eq!(two.a.completed().len(), 64);
    two.a.post(64, Operation::Write(target), None).expect("room");
}

#[test]
fn overflowing_completion_queue_fails_its_queue_pairs() {
    let network = Network::new(1, Clock::Virtual);
    let device = network.add_device(Profile::strict());
    let (mut a, mut b) = (FakeEnd::with(&device, LIMITS, 2), FakeEnd::new(&device));
    a.connect(&b, FULL, &TIMES);
    b.connect(&a, FULL, &TIMES);
    let target = b.target(0);
    (0..3).for_each(|name| a.post(name, Operation::Write(target), None).expect("room"));
    network.run_until(MS);
    assert!(a.queue.take(&mut [Completion::default(); BATCH]).is_err());
    assert_eq!(a.pair.state(), QueuePairState::Error);
    let event = crate::adapter::AsyncEvent::CompletionQueueError(a.queue.id());
    assert_eq!(a.context.take_event(), Some(event));
    assert_eq!(network.counts().overruns, 1);
}

#[test]
fn completion_event_is_reported_once_per_arming() {
    let mut two = Two::new(Profile::strict());
    two.write(1, 0, 8);
    two.run(MS);
    assert!(!two.a.queue.take_event(), "nobody asked");
    two.a.queue.notify().expect("it works");
    assert!(!two.a.queue.take_event(), "what came before says nothing");
    two.write(2, 0, 8);
    two.write(3, 0, 8);
    two.run(MS);
    assert!(two.a.queue.take_event());
    assert!(!two.a.queue.take_event());
}

#[test]
fn seed_determines_the_simulated_network_run() {
    let run = |seed| {
        let profile = Profile {
            jitter_ns: 5_000,
            placement: super::super::Placement::BytesReordered,
            completes_before_visible: true,
            ..Profile::strict()
        };
        let mut two = Two::seeded(seed, profile);
        two.network.inject(super::super::Fault::Link {
            from: two.devices[0].clone(),
            to: two.devices[1].clone(),
            link: super::super::Link { loss_per_million: 200_000, ..Default::default() },
        });
        let mut moments = Vec::new();
        for name in 0..30 {
            two.a.fill(0, &[u8::try_from(name).expect("small"); 1000]);
            two.write(name, 0, 1000);
            while let Some(at) = two.network.next_at() {
                two.network.run_until(at);
                moments.push(at);
            }
        }
        (moments, two.b.look(0, 1000), two.network.counts())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).0, run(6).0);
    assert!(run(5).2.lost > 0 && run(5).2.sent_again > 0);
}
