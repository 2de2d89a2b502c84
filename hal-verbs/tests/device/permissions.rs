//! The right to write to a region: refused, granted, revoked, denied.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric, Kind, PermissionEvent, Permissions, Region, Token, Write,
};
use tramontane_verbs::Limits;

use super::group::{GroupShape, VIEW};
use super::{A, B, OpenMember, drain, guard, pair, seen, settle, store, wait_for};

const LOG: Region = Region(5);
const OTHER: Region = Region(6);
const BYTES: usize = 1 << 20;

const SOON: Duration = Duration::from_secs(10);

fn shape() -> GroupShape {
    let limits = Limits { loss_time: Duration::from_millis(300), ..Limits::default() };
    GroupShape { regions: vec![(LOG, BYTES), (OTHER, BYTES)], limits, ..GroupShape::default() }
}

fn write(region: Region, offset: usize, length: usize) -> Write {
    let area = Area { region, offset };
    Write { source: area, target: area, length, kind: Kind::Content }
}

fn fill(member: &OpenMember, region: Region, offset: usize, bytes: &[u8]) {
    member.rows.region(region).expect("a region").apply(offset, bytes).expect("inside");
}

fn look(member: &OpenMember, region: Region, offset: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    member
        .rows
        .region(region)
        .expect("a region")
        .reader()
        .read(offset, &mut bytes)
        .expect("inside");
    bytes
}

/// Steps both members, as polling threads do.
fn step(a: &mut OpenMember, b: &mut OpenMember) {
    a.fabric.collect();
    b.fabric.collect();
}

fn told(member: &mut OpenMember) -> Vec<PermissionEvent> {
    std::iter::from_fn(|| member.fabric.poll_permission()).collect()
}

/// A writes to B's region, and the write lands.
#[track_caller]
fn ensure_way(a: &mut OpenMember, b: &mut OpenMember, region: Region, value: u8) -> Duration {
    fill(a, region, 64, &[value; 64]);
    let started = Instant::now();
    wait_for("room", SOON, || {
        step(a, b);
        a.fabric.post(VIEW, B, &[write(region, 64, 64)], None).is_ok()
    });
    wait_for("the write", SOON, || {
        step(a, b);
        look(b, region, 64, 64) == [value; 64]
    });
    started.elapsed()
}

/// A writes to B's region with a right that B has just revoked, and the write is denied.
#[track_caller]
fn ensure_denied(a: &mut OpenMember, b: &mut OpenMember, region: Region) {
    fill(a, region, 64, &[0xee; 64]);
    let before = look(b, region, 64, 64);
    b.fabric.revoke(VIEW, A, region).expect("it is there");
    a.fabric.post(VIEW, B, &[write(region, 64, 64)], Some(Token(1))).expect("it is not known yet");
    let mut events = Vec::new();
    wait_for("the denial", SOON, || {
        step(a, b);
        events.extend(told(a));
        events.contains(&PermissionEvent::Denied { view: VIEW, peer: B, region })
    });
    assert_eq!(look(b, region, 64, 64), before, "nothing of it lands");
    let completed = drain(&mut a.fabric);
    assert!(!completed.iter().any(|event| matches!(event, Event::Completed(_))), "{completed:?}");
    // The connection is re-established without the right.
    wait_for("the connection", SOON, || {
        step(a, b);
        a.fabric.post(VIEW, B, &[write(region, 64, 64)], None) == Err(ErrorKind::Revoked)
    });
}

/// Asserts that A knows that it may not write to B's region.
#[track_caller]
fn ensure_refused(a: &mut OpenMember, region: Region) {
    let posted = a.fabric.post(VIEW, B, &[write(region, 64, 64)], None);
    assert_eq!(posted, Err(ErrorKind::Revoked));
}

/// A reads B's region.
#[track_caller]
fn ensure_read(a: &mut OpenMember, b: &OpenMember, region: Region) {
    let area = |offset| Area { region, offset };
    a.fabric.read(VIEW, B, area(64), area(1 << 16), 64, Token(7)).expect("room");
    wait_for("the read", SOON, || drain(&mut a.fabric).contains(&Event::Completed(Token(7))));
    assert_eq!(look(a, region, 1 << 16, 64), look(b, region, 64, 64));
}

fn rows_go_on(a: &mut OpenMember, b: &mut OpenMember, value: u8) {
    store(a, 64, &[value; 8]);
    a.fabric.post(VIEW, B, &[guard(64, 8)], None).expect("rows are not concerned");
    settle(a);
    assert_eq!(seen(b, A, 64, 8), [value; 8]);
}

#[test]
fn connection_recovers_after_a_denied_write() {
    let (mut a, mut b) = pair(&shape());
    ensure_refused(&mut a, LOG);
    ensure_read(&mut a, &b, LOG);
    rows_go_on(&mut a, &mut b, 1);
    assert!(!b.fabric.may_write(VIEW, A, LOG));
    b.fabric.grant(VIEW, A, OTHER).expect("it is there");
    ensure_way(&mut a, &mut b, OTHER, 2);
    b.fabric.grant(VIEW, A, LOG).expect("it is there");
    assert!(b.fabric.may_write(VIEW, A, LOG));
    ensure_way(&mut a, &mut b, LOG, 3);
    for value in 4..10 {
        ensure_denied(&mut a, &mut b, LOG);
        assert!(!b.fabric.may_write(VIEW, A, LOG));
        rows_go_on(&mut a, &mut b, value);
        ensure_way(&mut a, &mut b, OTHER, value);
        ensure_read(&mut a, &b, LOG);
        b.fabric.grant(VIEW, A, LOG).expect("it is there");
        ensure_way(&mut a, &mut b, LOG, value);
    }
    // In the other direction nothing was granted.
    let posted = b.fabric.post(VIEW, A, &[write(LOG, 64, 64)], None);
    assert_eq!(posted, Err(ErrorKind::Revoked));
    rows_go_on(&mut a, &mut b, 99);
}

#[test]
fn notified_revocation_breaks_no_connection() {
    let (mut a, mut b) = pair(&shape());
    for value in 1..10 {
        b.fabric.grant(VIEW, A, LOG).expect("it is there");
        ensure_way(&mut a, &mut b, LOG, value);
        b.fabric.revoke(VIEW, A, LOG).expect("it is there");
        wait_for("the notice", SOON, || {
            step(&mut a, &mut b);
            a.fabric.post(VIEW, B, &[write(LOG, 0, 0)], None) == Err(ErrorKind::Revoked)
        });
        ensure_read(&mut a, &b, LOG);
        let events = told(&mut a);
        let is_denial = |event: &PermissionEvent| matches!(event, PermissionEvent::Denied { .. });
        assert!(!events.iter().any(is_denial), "{events:?}");
    }
}

#[test]
fn peer_is_notified_of_permission_granted_later() {
    let (mut a, mut b) = pair(&shape());
    ensure_refused(&mut a, LOG);
    b.fabric.grant(VIEW, A, LOG).expect("it is there");
    wait_for("the right", SOON, || {
        step(&mut a, &mut b);
        told(&mut a) == [PermissionEvent::Restored { view: VIEW, peer: B, region: LOG }]
    });
    a.fabric.post(VIEW, B, &[write(LOG, 64, 64)], None).expect("granted");
}

#[test]
fn granting_permission_requires_existing_region_and_peer() {
    let (mut a, _b) = pair(&shape());
    assert_eq!(a.fabric.grant(VIEW, A, LOG), Err(ErrorKind::OutOfRange));
    assert_eq!(a.fabric.grant(VIEW, B, Region(9)), Err(ErrorKind::OutOfRange));
    assert_eq!(a.fabric.grant(VIEW, B, Region::ROW), Err(ErrorKind::OutOfRange));
    let outside = a.fabric.post(VIEW, B, &[write(LOG, BYTES - 8, 9)], None);
    assert_eq!(outside, Err(ErrorKind::OutOfRange));
    let mixed = [write(LOG, 0, 8), guard(64, 8)];
    assert_eq!(a.fabric.post(VIEW, B, &mixed, None), Err(ErrorKind::OutOfRange));
    let area = |region, offset| Area { region, offset };
    let read = a.fabric.read(VIEW, B, area(LOG, BYTES), area(LOG, 0), 1, Token(1));
    assert_eq!(read, Err(ErrorKind::OutOfRange));
    let read = a.fabric.read(VIEW, B, area(LOG, 0), area(Region::ROW, 0), 8, Token(1));
    assert_eq!(read, Err(ErrorKind::OutOfRange));
}

#[test]
fn any_peer_may_read_a_region() {
    let (mut a, b) = pair(&shape());
    fill(&b, LOG, 1000, &[7; 5000]);
    let area = |offset| Area { region: LOG, offset };
    a.fabric.read(VIEW, B, area(1000), area(100_000), 5000, Token(3)).expect("room");
    wait_for("the read", SOON, || a.fabric.poll() == Some(Event::Completed(Token(3))));
    assert_eq!(look(&a, LOG, 100_000, 5000), [7; 5000]);
    assert_eq!(look(&a, LOG, 105_000, 8), [0; 8]);
}

/// Each owner decides the length of its region, and both ends respect it.
#[test]
fn each_owner_determines_length_of_its_region() {
    let regions = |bytes| vec![(LOG, bytes), (OTHER, BYTES)];
    let last = Some(regions(4096));
    let shape = GroupShape { regions: regions(BYTES), last_regions: last, ..shape() };
    let (mut a, mut b) = pair(&shape);
    b.fabric.grant(VIEW, A, LOG).expect("it is there");
    a.fabric.grant(VIEW, B, LOG).expect("it is there");
    ensure_way(&mut a, &mut b, LOG, 1);
    let beyond = a.fabric.post(VIEW, B, &[write(LOG, 4096, 8)], None);
    assert_eq!(beyond, Err(ErrorKind::OutOfRange), "the owner's is shorter");
    let area = |region, offset| Area { region, offset };
    let read = a.fabric.read(VIEW, B, area(LOG, 4096), area(LOG, 0), 8, Token(1));
    assert_eq!(read, Err(ErrorKind::OutOfRange));
    // In the other direction the owner's region is longer: A writes from its row, or from another
    // region, up to the end.
    store(&b, 64, &[7; 64]);
    fill(&b, OTHER, 0, &[8; 64]);
    for (source, value) in [(area(Region::ROW, 64), 7), (area(OTHER, 0), 8)] {
        let target = area(LOG, BYTES - 64);
        let list = [Write { source, target, length: 64, kind: Kind::Content }];
        wait_for("room", SOON, || {
            step(&mut a, &mut b);
            b.fabric.post(VIEW, A, &list, None).is_ok()
        });
        wait_for("the write", SOON, || {
            step(&mut a, &mut b);
            look(&a, LOG, BYTES - 64, 64) == [value; 64]
        });
    }
    b.fabric.read(VIEW, A, area(LOG, BYTES - 64), area(OTHER, 64), 64, Token(2)).expect("room");
    wait_for("the read", SOON, || drain(&mut b.fabric).contains(&Event::Completed(Token(2))));
    assert_eq!(look(&b, OTHER, 64, 64), [8; 64]);
}

/// A post to a row of a view that its owner has ended is dropped; a post to a region is refused,
/// because its completion would claim that the write has landed.
#[test]
fn region_of_departed_peer_refuses_posts() {
    let (mut a, mut b) = pair(&shape());
    b.fabric.grant(VIEW, A, LOG).expect("it is there");
    ensure_way(&mut a, &mut b, LOG, 1);
    wait_for("the end", SOON, || b.fabric.retire(VIEW));
    wait_for("the notice", SOON, || {
        a.fabric.collect();
        a.fabric.post(VIEW, B, &[write(LOG, 64, 64)], Some(Token(5))) == Err(ErrorKind::PeerLost)
    });
    drain(&mut a.fabric);
    assert_eq!(a.fabric.post(VIEW, B, &[guard(64, 8)], Some(Token(6))), Ok(()));
    wait_for("the row", SOON, || drain(&mut a.fabric).contains(&Event::Completed(Token(6))));
}

/// The right is revoked in the middle of a stream of long writes.
#[test]
fn writes_never_land_after_revocation() {
    let (mut a, mut b) = pair(&shape());
    let (mut late, mut times) = (0, Vec::new());
    for round in 0..20_u64 {
        b.fabric.grant(VIEW, A, LOG).expect("it is there");
        wait_for("the way", SOON, || {
            step(&mut a, &mut b);
            a.fabric.post(VIEW, B, &[write(LOG, 0, 8)], None).is_ok()
        });
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (a, stop) = (&mut a, &stop);
            let writer = scope.spawn(move || {
                let mut value = 0_u8;
                while !stop.load(Ordering::Relaxed) {
                    value = value.wrapping_add(1);
                    fill(a, LOG, 0, &vec![value; 256 << 10]);
                    let _ = a.fabric.post(VIEW, B, &[write(LOG, 0, 256 << 10)], None);
                    a.fabric.collect();
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            std::thread::sleep(Duration::from_millis(10 + round % 7));
            let started = Instant::now();
            let revoked = b.fabric.revoke(VIEW, A, LOG);
            times.push(started.elapsed());
            let first = look(&b, LOG, 0, 256 << 10);
            std::thread::sleep(Duration::from_millis(20));
            late += u32::from(look(&b, LOG, 0, 256 << 10) != first);
            stop.store(true, Ordering::Relaxed);
            writer.join().expect("no panic");
            revoked.expect("it is there");
        });
        for _ in 0..20 {
            step(&mut a, &mut b);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    times.sort();
    let (median, longest) = (times[10], times[19]);
    println!("revoked: median {median:?}, longest {longest:?}; {late} of 20 landed late");
    assert_eq!(late, 0);
}
