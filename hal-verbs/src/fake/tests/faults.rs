//! Tests of faults and their consequences.

use super::super::{Fault, Link};
use super::*;
use crate::adapter::{AsyncEvent, QueuePairState};

fn link(two: &Two, from: usize, to: usize, link: Link) -> Fault {
    Fault::Link { from: two.devices[from].clone(), to: two.devices[to].clone(), link }
}

#[test]
fn killed_process_loses_newest_objects_first() {
    let mut two = Two::unconnected(1, Profile::strict());
    two.connect(FULL);
    let pages = Arc::new(Pages::new(64).expect("memory"));
    let newest = MemoryRegion::new(&two.b.domain, &pages, 64, FULL).expect("a region");
    let target = Target { address: newest.address(), key: newest.remote_key() };
    let context = two.network.contexts(&two.devices[1])[0];
    two.network.inject_at(10_000, Fault::Kill { context, oldest_first: false, step_ns: 5_000 });
    two.network.run_until(9_000);
    assert_eq!(two.b.pair.state(), QueuePairState::ReadyToSend);
    // The region is destroyed at 10 us, the queue pair at 15 us: between these times, the queue
    // pair still answers.
    two.network.run_until(10_500);
    two.a.post(1, Operation::Write(target), Some((0, 8))).expect("room");
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, 10)]);
    assert!(two.network.counts().killed_objects >= 4);
    assert_eq!(two.b.pair.state(), QueuePairState::Unknown, "its calls fail");
}

#[test]
fn killed_process_may_lose_oldest_objects_first() {
    let mut two = Two::new(Profile::strict());
    let context = two.network.contexts(&two.devices[1])[0];
    let target = two.b.target(0);
    two.network.inject(Fault::Kill { context, oldest_first: true, step_ns: MS });
    // The completion queue is the oldest, followed by the region.
    two.a.post(1, Operation::Write(target), Some((0, 8))).expect("room");
    two.run(100_000);
    assert_eq!(two.a.completed(), [(1, 0)]);
    two.run(MS);
    two.a.post(2, Operation::Write(target), Some((0, 8))).expect("room");
    two.run(100_000);
    assert_eq!(two.a.completed(), [(2, 10)]);
}

#[test]
fn killed_process_may_lose_all_objects_at_once() {
    let mut two = Two::new(Profile::strict());
    let context = two.network.contexts(&two.devices[1])[0];
    let before = two.network.objects();
    two.network.inject(Fault::Kill { context, oldest_first: false, step_ns: 0 });
    assert_eq!(two.network.objects(), before - 3, "the context is still in the process's hands");
    two.write(1, 0, 8);
    two.run(100 * MS);
    assert_eq!(two.a.completed(), [(1, 12)]);
}

#[test]
fn fatal_device_reports_flushes_and_refuses_calls() {
    let mut two = Two::new(Profile::strict());
    two.write(1, 0, 8);
    two.network.inject(Fault::DeviceFatal(two.devices[0].clone()));
    assert_eq!(two.a.context.take_event(), Some(AsyncEvent::DeviceFatal));
    let mut batch = [Completion::default(); BATCH];
    assert_eq!(two.a.queue.take(&mut batch).expect("what was flushed"), 1);
    assert_eq!((batch[0].name, batch[0].status), (1, 5));
    assert!(two.a.queue.take(&mut batch).is_err());
    assert!(two.a.pair.reset().is_err() && two.a.context.port(1).is_err());
    assert!(ProtectionDomain::new(&two.a.context).is_err());
    assert!(open(two.devices[0].as_str()).is_err());
    assert_eq!(two.b.context.take_event(), None);
}

#[test]
fn short_port_loss_is_reported_and_traffic_resumes() {
    let mut two = Two::new(Profile::strict());
    two.network.inject(Fault::PortDown(two.devices[1].clone(), 1));
    assert_eq!(two.b.context.take_event(), Some(AsyncEvent::PortError(1)));
    assert_eq!(two.b.context.port(1).expect("a port").state, 1);
    two.a.fill(0, &[1; 8]);
    two.write(1, 0, 8);
    two.run(5 * MS);
    assert_eq!(two.b.look(0, 8), [0; 8]);
    two.network.inject(Fault::PortUp(two.devices[1].clone(), 1));
    assert_eq!(two.b.context.take_event(), Some(AsyncEvent::PortActive(1)));
    two.run(5 * MS);
    assert_eq!((two.a.completed(), two.b.look(0, 8)), (vec![(1, 0)], vec![1; 8]));
}

#[test]
fn changed_address_is_reported_and_becomes_unreachable() {
    let changes: [fn(DeviceName) -> Fault; 2] = [
        |device| Fault::Gid {
            device,
            port: 1,
            index: 1,
            address: "::ffff:10.9.9.9".parse().expect("one"),
        },
        |device| Fault::Gid { device, port: 1, index: 1, address: std::net::Ipv6Addr::UNSPECIFIED },
    ];
    for change in changes {
        let mut two = Two::new(Profile::strict());
        two.network.inject(change(two.devices[1].clone()));
        assert_eq!(two.b.context.take_event(), Some(AsyncEvent::GidChange(1)));
        two.write(1, 0, 8);
        two.run(100 * MS);
        assert_eq!(two.a.completed(), [(1, 12)]);
    }
    let port = super::super::PortProfile {
        link_layer: crate::devices::LinkLayer::InfiniBand,
        ..Default::default()
    };
    let mut two = Two::new(Profile { ports: vec![port], ..Profile::strict() });
    two.network.inject(Fault::Lid(two.devices[1].clone(), 1, 999));
    assert_eq!(two.b.context.take_event(), Some(AsyncEvent::LidChange(1)));
    assert_eq!(two.b.context.port(1).expect("a port").lid, 999);
    two.write(1, 0, 8);
    two.run(100 * MS);
    assert_eq!(two.a.completed(), [(1, 12)]);
}

#[test]
fn partition_key_and_mtu_changes_are_reported() {
    let two = Two::new(Profile::strict());
    two.network.inject(Fault::Pkey(two.devices[0].clone(), 1));
    two.network.inject(Fault::Mtu(two.devices[0].clone(), 1, 1024));
    assert_eq!(two.a.context.take_event(), Some(AsyncEvent::PkeyChange(1)));
    assert_eq!(two.a.context.take_event(), Some(AsyncEvent::SubnetManager(1)));
    assert_eq!(two.a.context.port(1).expect("a port").mtu_active, 3);
}

#[test]
fn path_with_small_mtu_drops_long_writes() {
    let mut two = Two::new(Profile::strict());
    two.network.inject(link(&two, 0, 1, Link { mtu_bytes: 1024, ..Link::default() }));
    two.write(1, 0, 1024);
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, 0)]);
    two.write(2, 0, 1025);
    two.run(100 * MS);
    assert_eq!(two.a.completed(), [(2, 12)]);
    assert!(two.network.counts().too_long >= 4);
}

#[test]
fn link_can_be_broken_in_one_direction() {
    for (from, to) in [(0, 1), (1, 0)] {
        let mut two = Two::new(Profile::strict());
        two.network.inject(link(&two, from, to, Link { is_cut: true, ..Link::default() }));
        two.a.fill(0, &[1; 8]);
        two.write(1, 0, 8);
        two.run(100 * MS);
        assert_eq!(two.a.completed(), [(1, 12)]);
        // If only the answers are lost, the write lands.
        assert_eq!(two.b.look(0, 8) == [1; 8], from == 1);
        assert_eq!(two.network.counts().seen_twice, if from == 1 { 3 } else { 0 });
    }
}

#[test]
fn lost_requests_are_resent_once_in_order() {
    let lossy = Link { loss_per_million: 100_000, ..Link::default() };
    let (mut sent_again, mut seen_twice) = (0, 0);
    for seed in 0..10 {
        let mut two = Two::seeded(seed, Profile::strict());
        two.network.inject(link(&two, 0, 1, lossy));
        two.network.inject(link(&two, 1, 0, lossy));
        let target = two.b.target(0);
        for value in 0..15_u32 {
            two.b.pair.post_receive(value.into(), None).expect("room");
            let operation = Operation::WriteWithImmediate(target, value);
            two.a.post(value.into(), operation, None).expect("room");
        }
        two.run(1_000 * MS);
        let came: Vec<_> = two.b.completions().iter().map(|one| one.immediate).collect();
        assert_eq!(came, (0..15).map(Some).collect::<Vec<_>>(), "each once");
        assert_eq!(two.a.completed(), (0..15).map(|name| (name, 0)).collect::<Vec<_>>());
        sent_again += two.network.counts().sent_again;
        seen_twice += two.network.counts().seen_twice;
    }
    assert!(sent_again > 0 && seen_twice > 0);
}

#[test]
fn slow_link_delays_messages() {
    let mut two = Two::new(Profile::strict());
    two.network.inject(link(&two, 0, 1, Link { delay_ns: MS, ..Link::default() }));
    two.write(1, 0, 8);
    two.network.run_until(MS);
    assert_eq!(two.a.completed(), []);
    two.network.run_until(MS + 4_000);
    assert_eq!(two.a.completed(), [(1, 0)]);
}

#[test]
fn open_devices_keep_working_after_network_handle_drops() {
    let Two { network, devices, mut a, b } = Two::new(Profile::strict());
    let second = network.clone();
    drop(network);
    assert!(super::super::is_registered(devices[0].as_str()));
    drop(second);
    assert!(!super::super::is_registered(devices[0].as_str()));
    assert!(open(devices[0].as_str()).is_err());
    let target = b.target(0);
    a.post(1, Operation::Write(target), Some((0, 8))).expect("room");
}
