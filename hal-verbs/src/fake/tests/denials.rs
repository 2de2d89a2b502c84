//! Tests that forbidden requests are not executed, and that they break the connection at both ends.

use super::*;
use crate::adapter::{AsyncEvent, QueuePairState};

/// A posts a forbidden request, followed by others. The first must complete with a status, all
/// others and B's receives must be flushed, and B's memory must be unchanged.
#[track_caller]
fn assert_denied(mut two: Two, operation: Operation, length: usize, status: u32) {
    two.a.fill(0, &[9; BYTES]);
    two.b.pair.post_receive(70, None).expect("room");
    let range = (length > 0).then_some((0, length));
    two.a.post(1, operation, range).expect("room");
    two.write(2, 0, 8);
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, status), (2, 5)]);
    assert_eq!(two.b.completed(), [(70, 5)]);
    assert_eq!(two.b.look(0, BYTES), [0; BYTES]);
    let states = [&two.a, &two.b].map(|end| end.pair.state());
    assert_eq!(states, [QueuePairState::Error; 2]);
    let event = AsyncEvent::QueuePairError(two.b.pair.number());
    assert_eq!(two.b.context.take_event(), Some(event));
    assert_eq!(two.a.context.take_event(), None);
    assert_eq!(two.network.counts().refused, 1);
}

#[test]
fn write_with_mismatched_key_is_denied() {
    let two = Two::new(Profile::strict());
    let target = Target { key: two.b.region.remote_key() + 1, ..two.b.target(0) };
    assert_denied(two, Operation::Write(target), 8, 10);
}

#[test]
fn out_of_bounds_access_is_denied() {
    let two = Two::new(Profile::strict());
    let target = two.b.target(BYTES - 7);
    assert_denied(two, Operation::Write(target), 8, 10);
    let two = Two::new(Profile::strict());
    let target = Target { address: two.b.region.address() - 1, ..two.b.target(0) };
    assert_denied(two, Operation::Write(target), 8, 10);
    let two = Two::new(Profile::strict());
    let target = Target { address: u64::MAX, ..two.b.target(0) };
    assert_denied(two, Operation::Write(target), 8, 10);
}

#[test]
fn region_of_another_domain_is_denied() {
    let two = Two::new(Profile::strict());
    let other = ProtectionDomain::new(&two.b.context).expect("a domain");
    let pages = Arc::new(Pages::new(BYTES).expect("memory"));
    let region = MemoryRegion::new(&other, &pages, BYTES, FULL).expect("a region");
    let target = Target { address: region.address(), key: region.remote_key() };
    assert_denied(two, Operation::Write(target), 8, 10);
}

#[test]
fn write_to_read_only_region_is_denied() {
    let two = Two::new(Profile::strict());
    let pages = Arc::new(Pages::new(BYTES).expect("memory"));
    let access = Access::LOCAL_WRITE | Access::REMOTE_READ;
    let region = MemoryRegion::new(&two.b.domain, &pages, BYTES, access).expect("a region");
    let target = Target { address: region.address(), key: region.remote_key() };
    assert_denied(two, Operation::Write(target), 8, 10);
}

#[test]
fn write_to_deregistered_memory_is_denied() {
    let two = Two::new(Profile::strict());
    let pages = Arc::new(Pages::new(BYTES).expect("memory"));
    let region = MemoryRegion::new(&two.b.domain, &pages, BYTES, FULL).expect("a region");
    let target = Target { address: region.address(), key: region.remote_key() };
    drop(region);
    assert_denied(two, Operation::Write(target), 8, 10);
}

#[test]
fn queue_pair_permissions_are_enforced() {
    let connected = |access| {
        let mut two = Two::unconnected(1, Profile::strict());
        two.connect(access);
        two
    };
    let two = connected(Access::REMOTE_READ);
    let target = two.b.target(0);
    assert_denied(two, Operation::Write(target), 8, 9);
    let two = connected(Access::REMOTE_READ);
    let target = two.b.target(0);
    assert_denied(two, Operation::WriteWithImmediate(target, 1), 0, 9);
    let two = connected(Access::REMOTE_WRITE);
    let target = two.b.target(0);
    assert_denied(two, Operation::Read(target), 8, 9);
}

#[test]
fn writes_before_a_denied_one_complete() {
    let mut two = Two::new(Profile::strict());
    two.a.fill(0, &[1; 8]);
    two.write(1, 0, 8);
    let wrong = Target { key: 1, ..two.b.target(64) };
    two.a.post(2, Operation::Write(wrong), Some((0, 8))).expect("room");
    two.write(3, 128, 8);
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, 0), (2, 10), (3, 5)]);
    assert_eq!((two.b.look(0, 8), two.b.look(128, 8)), (vec![1; 8], vec![0; 8]));
}

#[test]
fn empty_request_succeeds_with_any_key() {
    let mut two = Two::new(Profile::strict());
    let nowhere = Target { address: 0, key: 0 };
    two.a.post(1, Operation::Write(nowhere), None).expect("room");
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, 0)]);
}

#[test]
fn local_access_error_follows_earlier_completions() {
    let mut two = Two::new(Profile::strict());
    let pages = Arc::new(Pages::new(BYTES).expect("memory"));
    let read_only = MemoryRegion::new(&two.a.domain, &pages, BYTES, Access::empty());
    let read_only = read_only.expect("a region");
    two.write(1, 0, 8);
    let source = two.b.target(0);
    let mut list = SendList::new(&mut two.a.buffers);
    assert!(list.push(2, Operation::Read(source), Some((&read_only, 0, 8)), false));
    two.a.pair.post(list).expect("room");
    two.write(3, 0, 8);
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, 0), (2, 4), (3, 5)]);
    assert_eq!(two.b.pair.state(), QueuePairState::ReadyToSend, "the peer is not concerned");
}

#[test]
fn remote_write_permission_requires_local_write() {
    let two = Two::new(Profile::strict());
    let pages = Arc::new(Pages::new(BYTES).expect("memory"));
    assert!(MemoryRegion::new(&two.a.domain, &pages, BYTES, Access::REMOTE_WRITE).is_err());
}
