//! Memory windows of type 2.

use super::*;
use crate::adapter::{Bind, MemoryWindow};

/// B binds a window to a part of its memory; gives what A is to name.
fn bind(two: &mut Two, window: &mut MemoryWindow, offset: usize, length: usize) -> Target {
    let End { pair, region, buffers, .. } = &mut two.b;
    let access = Access::REMOTE_WRITE | Access::REMOTE_READ;
    let mut list = SendList::new(buffers);
    let key = list.push_bind(11, window, &Bind { region, offset, length, access });
    list.signal_last();
    pair.post(list).expect("room");
    Target { key: key.expect("inside"), ..two.b.target(offset) }
}

fn invalidate(two: &mut Two, window: &MemoryWindow) {
    let mut list = SendList::new(&mut two.b.buffers);
    assert!(list.push_invalidate(12, window));
    list.signal_last();
    two.b.pair.post(list).expect("room");
}

#[test]
fn a_window_opens_a_part_under_a_key_of_its_own_until_the_key_is_taken_back() {
    let mut two = Two::new(Profile::strict());
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    let first = bind(&mut two, &mut window, 1024, 64);
    assert_eq!(two.b.completed(), [(11, 0)], "nothing was posted before it");
    assert_ne!(first.key, two.b.region.remote_key());
    two.a.fill(0, &[1; 64]);
    two.a.post(1, Operation::Write(first), Some((0, 64))).expect("room");
    two.run(MS);
    assert_eq!((two.a.completed(), two.b.look(1024, 64)), (vec![(1, 0)], vec![1; 64]));
    invalidate(&mut two, &window);
    let second = bind(&mut two, &mut window, 2048, 64);
    assert_eq!(two.b.completed(), [(12, 0), (11, 0)]);
    assert_ne!(first.key, second.key);
    two.a.post(2, Operation::Write(second), Some((0, 64))).expect("room");
    two.a.post(3, Operation::Write(first), Some((0, 64))).expect("room");
    two.run(MS);
    assert_eq!(two.a.completed(), [(2, 0), (3, 10)]);
    assert_eq!(two.b.look(2048, 64), [1; 64]);
}

#[test]
fn a_window_ends_where_it_was_bound_to_end() {
    let mut two = Two::new(Profile::strict());
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    let target = bind(&mut two, &mut window, 1024, 64);
    two.a.post(1, Operation::Write(target), Some((0, 65))).expect("room");
    two.run(MS);
    assert_eq!(two.a.completed(), [(1, 10)]);
}

#[test]
fn a_window_works_on_no_other_queue_pair() {
    let mut two = Two::new(Profile::strict());
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    let target = bind(&mut two, &mut window, 0, 64);
    // Another connection, at B's end in the same domain.
    let mut third = End::new(&two.devices[0]);
    let pair = QueuePair::new(&two.b.domain, &two.b.queue, LIMITS).expect("a queue pair");
    let first = std::mem::replace(&mut two.b.pair, pair);
    third.connect(&two.b, FULL, &TIMES);
    two.b.connect(&third, FULL, &TIMES);
    third.post(1, Operation::Write(target), Some((0, 8))).expect("room");
    two.run(MS);
    assert_eq!(third.completed(), [(1, 10)]);
    drop(first);
}

#[test]
fn a_window_that_is_bound_cannot_be_bound_again() {
    let mut two = Two::new(Profile::strict());
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    bind(&mut two, &mut window, 0, 64);
    bind(&mut two, &mut window, 64, 64);
    assert_eq!(two.b.completed(), [(11, 0), (11, 6)]);
}

#[test]
fn a_key_that_is_none_cannot_be_taken_back() {
    let mut two = Two::new(Profile::strict());
    let window = MemoryWindow::new(&two.b.domain).expect("a window");
    invalidate(&mut two, &window);
    assert_eq!(two.b.completed(), [(12, 2)]);
}

#[test]
fn a_region_must_allow_windows() {
    let mut two = Two::new(Profile::strict());
    let pages = Arc::new(Pages::new(BYTES).expect("memory"));
    let access = FULL - Access::BIND_WINDOWS;
    let region = MemoryRegion::new(&two.b.domain, &pages, BYTES, access).expect("a region");
    two.b.region = Arc::new(region);
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    bind(&mut two, &mut window, 0, 64);
    assert_eq!(two.b.completed(), [(11, 6)]);
}

#[test]
fn a_window_is_free_again_once_its_queue_pair_ends() {
    let mut two = Two::new(Profile::strict());
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    bind(&mut two, &mut window, 0, 64);
    assert_eq!(two.b.completed(), [(11, 0)]);
    two.b.pair = QueuePair::new(&two.b.domain, &two.b.queue, LIMITS).expect("a queue pair");
    two.b.connect(&two.a, FULL, &TIMES);
    bind(&mut two, &mut window, 0, 64);
    assert_eq!(two.b.completed(), [(11, 0)]);
}

#[test]
fn a_bind_is_executed_once_whatever_is_sent_again_before_it() {
    let mut two = Two::new(Profile::strict());
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    let device = two.devices[0].clone();
    two.network.inject(super::super::Fault::PortDown(device.clone(), 1));
    let target = two.a.target(0);
    two.b.post(1, Operation::Write(target), Some((0, 8))).expect("room");
    bind(&mut two, &mut window, 0, 64);
    two.run(MS);
    two.network.inject(super::super::Fault::PortUp(device, 1));
    two.run(10 * MS);
    assert_eq!(two.b.completed(), [(1, 0), (11, 0)]);
}

#[test]
fn what_was_acknowledged_lands_before_the_key_is_taken_back() {
    let profile = Profile {
        placement: super::super::Placement::WritesReordered,
        placement_delay_ns: 100 * MS,
        completes_before_visible: true,
        ..Profile::strict()
    };
    let mut two = Two::new(profile);
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    let target = bind(&mut two, &mut window, 0, 64);
    two.a.fill(0, &[1; 64]);
    two.a.post(1, Operation::Write(target), Some((0, 64))).expect("room");
    two.run(10_000);
    assert_eq!((two.a.completed(), two.b.look(0, 64)), (vec![(1, 0)], vec![0; 64]));
    invalidate(&mut two, &window);
    assert_eq!(two.b.look(0, 64), [1; 64]);
}

#[test]
fn a_bind_completes_after_what_was_posted_before() {
    let mut two = Two::new(Profile::strict());
    let mut window = MemoryWindow::new(&two.b.domain).expect("a window");
    let target = two.a.target(0);
    two.b.post(1, Operation::Write(target), Some((0, 8))).expect("room");
    bind(&mut two, &mut window, 0, 64);
    two.b.post(2, Operation::Write(target), Some((0, 8))).expect("room");
    assert_eq!(two.b.completed(), []);
    two.run(MS);
    assert_eq!(two.b.completed(), [(1, 0), (11, 0), (2, 0)]);
}
