//! Counters equal the design's predictions, and full queues cost no processor time.

use std::time::{Duration, Instant};

use tramontane_core::fabric::{ErrorKind, Event, Fabric, Token};
use tramontane_verbs::{Counters, Limits};

use super::group::{GroupShape, VIEW};
use super::{A, B, content, drain, guard, pair, seen, settle, store, wait_for};

/// Posts a list repeatedly. Returns the counters of these posts, excluding the request for the last
/// completions.
fn run(lists: u64, list: &[tramontane_core::fabric::Write], limits: Limits) -> Counters {
    let shape = GroupShape { limits, ..GroupShape::default() };
    let (mut a, mut b) = pair(&shape);
    for _ in 0..lists {
        wait_for("room", Duration::from_secs(20), || match a.fabric.post(VIEW, B, list, None) {
            Ok(()) => true,
            Err(ErrorKind::QueueFull) => {
                drain(&mut a.fabric);
                false
            }
            Err(kind) => panic!("{kind}"),
        });
    }
    let counters = *a.fabric.counters();
    settle(&mut a);
    settle(&mut b);
    let after = *a.fabric.counters();
    assert!(after.completions <= after.signalled, "{after:?}");
    assert!(after.signalled - counters.signalled <= 1, "one more, to settle: {after:?}");
    assert_eq!(after.completions, after.signalled, "every one that was asked for came: {after:?}");
    assert_eq!(b.fabric.counters().notices_taken, 0, "nobody sleeps, so nobody is rung");
    counters
}

#[test]
fn list_with_short_guard_is_sent_inline() {
    let counters = run(1000, &[guard(64, 8)], Limits::default());
    println!("1000 lists of one guard of 8 B: {counters:?}");
    let Counters {
        lists, writes, bytes, inline, staged, doorbells, signalled, notices_sent, ..
    } = counters;
    assert_eq!((lists, writes, doorbells), (1000, 1000, 1000));
    assert_eq!((inline, staged), (1000, 0));
    assert_eq!(bytes, 8000);
    assert_eq!(signalled, 1000 / 32);
    assert_eq!(notices_sent, 0);
}

#[test]
fn list_costs_one_doorbell() {
    let list = [content(1024, 1024), guard(64, 8), content(4096, 4096), guard(128, 24)];
    let counters = run(500, &list, Limits::default());
    println!("500 lists of four: {counters:?}");
    assert_eq!((counters.lists, counters.writes, counters.doorbells), (500, 2000, 500));
    assert_eq!(
        counters.inline, 1000,
        "the guards, and nothing that is longer than the device takes"
    );
    assert_eq!(counters.bytes, 500 * (1024 + 8 + 4096 + 24));
    assert_eq!(counters.signalled, 2000 / 32);
}

#[test]
fn guards_are_staged_if_inline_is_disabled() {
    let limits = Limits { inline_bytes_max: Some(0), signal_every: 10, ..Limits::default() };
    let counters = run(1000, &[guard(64, 24)], limits);
    assert_eq!((counters.inline, counters.staged, counters.signalled), (0, 1000, 100));
}

#[test]
fn full_queue_refuses_posts_and_later_reports_room() {
    let (mut a, _b) = pair(&GroupShape::default());
    let mut taken = 0_u64;
    while a.fabric.post(VIEW, B, &[guard(64, 8)], None).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, u64::from(Limits::default().depth - tramontane_verbs::settings::RESERVE));
    let started = Instant::now();
    for _ in 0..10_000 {
        assert_eq!(a.fabric.post(VIEW, B, &[guard(64, 8)], None), Err(ErrorKind::QueueFull));
    }
    println!("10000 refusals take {:?}", started.elapsed());
    assert_eq!(a.fabric.counters().refused, 10_001);
    // Room in the queue wakes a member that sleeps because the queue was full, without a timeout.
    let started = Instant::now();
    let woken = !a.fabric.arm() || a.fabric.sleep(Duration::from_secs(10));
    a.fabric.disarm();
    assert!(woken && started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    drain(&mut a.fabric);
    assert_eq!(a.fabric.post(VIEW, B, &[guard(64, 8)], None), Ok(()));
}

#[test]
fn waiting_for_full_queue_uses_no_processor_time() {
    let limits = Limits { loss_time: Duration::from_secs(1), ..Limits::default() };
    let (mut a, mut b) = pair(&GroupShape { limits, ..GroupShape::default() });
    // From now on, nothing is acknowledged, and no room becomes free.
    b.fabric.cut(VIEW, A);
    while a.fabric.post(VIEW, B, &[guard(64, 8)], None).is_ok() {}
    let (started, used) = (Instant::now(), processor_time());
    let (mut naps, mut refused) = (0, 0);
    let lost = loop {
        // Acts like a polling thread that cannot post what it has to: it tries in each step, and
        // sleeps.
        refused +=
            u32::from(a.fabric.post(VIEW, B, &[guard(64, 8)], None) == Err(ErrorKind::QueueFull));
        if let Some(lost) = drain(&mut a.fabric).into_iter().find(|event| *event != Event::Woken) {
            break lost;
        }
        if a.fabric.arm() {
            a.fabric.sleep(Duration::from_secs(10));
        }
        a.fabric.disarm();
        naps += 1;
        assert!(started.elapsed() < Duration::from_secs(30), "nobody is lost");
    };
    let used = processor_time().saturating_sub(used);
    println!(
        "{naps} naps and {refused} refusals in {:?}, {used:?} of them busy; {lost:?}",
        started.elapsed()
    );
    assert!(matches!(lost, Event::PeerLost { peer: B, .. }));
    assert!(naps <= 10 && used < started.elapsed() / 4);
}

#[test]
fn idle_group_sleeps_and_posts_nothing() {
    let (mut a, mut b) = pair(&GroupShape::default());
    // Both go to sleep repeatedly.
    for _ in 0..20 {
        for member in [&mut a, &mut b] {
            if member.fabric.arm() {
                member.fabric.sleep(Duration::from_millis(2));
            }
            member.fabric.disarm();
            drain(&mut member.fabric);
        }
    }
    let before = [*a.fabric.counters(), *b.fabric.counters()];
    println!(
        "both slept 20 times: {} and {} notices",
        before[0].notices_sent, before[1].notices_sent
    );
    assert!(before.iter().all(|counters| counters.notices_sent <= 3), "{before:?}");
    let used = processor_time();
    let started = Instant::now();
    assert!(a.fabric.arm());
    assert!(!a.fabric.sleep(Duration::from_secs(2)), "nobody rings");
    a.fabric.disarm();
    let used = processor_time().saturating_sub(used);
    println!("2 s of sleep cost {used:?} of processor time");
    assert!(used < started.elapsed() / 20);
    assert_eq!(before[0], *a.fabric.counters(), "who knows that we sleep is not told again");
}

/// Returns this thread's processor time, according to the kernel.
fn processor_time() -> Duration {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    Duration::from_nanos(
        text.split(' ').next().and_then(|time| time.parse().ok()).expect("a number"),
    )
}

#[test]
fn idle_receiver_still_receives_writes() {
    let (mut a, b) = pair(&GroupShape::default());
    for round in 1..=200_u8 {
        store(&a, 64, &[round; 64]);
        let token = Token(round.into());
        wait_for("room", Duration::from_secs(20), || {
            a.fabric.post(VIEW, B, &[guard(64, 64)], Some(token)).is_ok()
        });
        wait_for("completion", Duration::from_secs(20), || {
            a.fabric.poll() == Some(Event::Completed(token))
        });
        assert_eq!(seen(&b, A, 64, 64), [round; 64], "a completed write is visible");
    }
}
