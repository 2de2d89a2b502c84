//! How two partitions begin: in any order, and only with a matching partner. Also how the fabric
//! handles large writes.

#![allow(clippy::unwrap_used)]

mod common;

use common::PartitionRun;
use tramontane_core::health::HealthKind;
use tramontane_core::ids::Time;
use tramontane_partition::group::WhichPartition;
use tramontane_partition::ports::{
    HealthReport, MESSAGE_BYTES, PortError, Ports, SAMPLE_BYTES, Why,
};
use tramontane_partition::{Partition, PartitionStorage, Phase};

/// Ports that show what the test sets, and keep what has been sent.
#[derive(Default)]
struct ScriptedPorts {
    shown: Option<[u8; SAMPLE_BYTES]>,
    own: Option<[u8; SAMPLE_BYTES]>,
    incoming: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    reports: Vec<HealthReport>,
    fails: bool,
}

impl Ports for ScriptedPorts {
    fn send(&mut self, message: &[u8]) -> Result<bool, PortError> {
        self.sent.push(message.to_vec());
        Ok(true)
    }
    fn receive(&mut self, into: &mut [u8; MESSAGE_BYTES]) -> Result<Option<usize>, PortError> {
        if self.incoming.is_empty() {
            return Ok(None);
        }
        let message = self.incoming.remove(0);
        into[..message.len()].copy_from_slice(&message);
        Ok(Some(message.len()))
    }
    fn show(&mut self, sample: &[u8; SAMPLE_BYTES]) -> Result<(), PortError> {
        self.own = Some(*sample);
        Ok(())
    }
    fn look(&mut self) -> Result<Option<[u8; SAMPLE_BYTES]>, PortError> {
        if self.fails { Err(PortError) } else { Ok(self.shown) }
    }
    fn report(&mut self, report: HealthReport) {
        self.reports.push(report);
    }
}

fn life(own: WhichPartition, incarnation: u32) -> Partition<'static> {
    let storage: &'static PartitionStorage = Box::leak(Box::default());
    let rows = Box::leak(Box::new(storage.rows()));
    Partition::new(own, incarnation, storage, rows, 10)
}

/// Steps two incarnations whose ports the test controls, one millisecond after the last step.
fn exchange(
    a: (&mut Partition<'_>, &mut ScriptedPorts),
    b: (&mut Partition<'_>, &mut ScriptedPorts),
    now: u64,
) {
    let ((a, a_ports), (b, b_ports)) = (a, b);
    a.step(Time(now * 1_000_000), a_ports);
    b_ports.shown = a_ports.own;
    b_ports.incoming.append(&mut a_ports.sent);
    b.step(Time(now * 1_000_000), b_ports);
    a_ports.shown = b_ports.own;
    a_ports.incoming.append(&mut b_ports.sent);
}

#[test]
fn first_partition_waits_for_its_partner() {
    for first in WhichPartition::BOTH {
        let mut run = PartitionRun::new(100);
        for _ in 0..50 {
            assert_eq!(run.step(first), Some(Phase::Fresh));
        }
        run.finish().unwrap();
    }
}

#[test]
fn partner_with_mismatched_group_is_reported_once() {
    let (mut a, mut ports) = (life(WhichPartition::A, 1), ScriptedPorts::default());
    let (mut b, mut b_ports) = (life(WhichPartition::B, 1), ScriptedPorts::default());
    exchange((&mut a, &mut ports), (&mut b, &mut b_ports), 0);
    let mut other = b_ports.own.unwrap();
    other[0] ^= 1;
    for step in 1..20 {
        ports.shown = Some(other);
        assert_eq!(a.step(Time(step), &mut ports), Phase::Fresh);
    }
    let [HealthReport::OtherGroup(_)] = ports.reports.as_slice() else {
        panic!("{:?}", ports.reports)
    };
    assert_eq!(ports.reports[0].encode()[0], 32);
}

#[test]
fn session_waits_until_both_incarnations_are_seen() {
    let (mut a, mut a_ports) = (life(WhichPartition::A, 1), ScriptedPorts::default());
    let (mut b, mut b_ports) = (life(WhichPartition::B, 1), ScriptedPorts::default());
    exchange((&mut a, &mut a_ports), (&mut b, &mut b_ports), 0);
    assert_eq!(b.phase(), Phase::Fresh, "A has not seen it yet");
    // B has seen the first incarnation of A. A second incarnation of A must not believe that B has
    // seen it.
    let mut again = life(WhichPartition::A, 2);
    for step in 1..20 {
        assert_eq!(again.step(Time(step), &mut a_ports), Phase::Fresh);
    }
    for step in 20..30 {
        exchange((&mut again, &mut a_ports), (&mut b, &mut b_ports), step);
    }
    assert!(matches!(again.phase(), Phase::InView(..)) && matches!(b.phase(), Phase::InView(..)));
}

#[test]
fn frames_before_the_partners_hello_are_kept() {
    let (mut a, mut a_ports) = (life(WhichPartition::A, 1), ScriptedPorts::default());
    let (mut b, mut b_ports) = (life(WhichPartition::B, 1), ScriptedPorts::default());
    exchange((&mut a, &mut a_ports), (&mut b, &mut b_ports), 0);
    let before = a_ports.own;
    a.step(Time(1), &mut a_ports);
    assert!(matches!(a.phase(), Phase::InView(..)) && !a_ports.sent.is_empty());
    // The queue is faster than the sampling port.
    b_ports.incoming.append(&mut a_ports.sent);
    b_ports.shown = before;
    for now in 2..5 {
        assert_eq!(b.step(Time(now), &mut b_ports), Phase::Fresh);
    }
    for now in 5..60 {
        exchange((&mut a, &mut a_ports), (&mut b, &mut b_ports), now);
    }
    assert_eq!((a.orders().count(), a.orders()), (20, b.orders()));
}

#[cfg(feature = "views")]
#[test]
fn excluded_partition_rejoins_with_the_partners_state() {
    let (mut a, mut a_ports) = (life(WhichPartition::A, 1), ScriptedPorts::default());
    let (mut b, mut b_ports) = (life(WhichPartition::B, 1), ScriptedPorts::default());
    let mut now = 0;
    while a.orders().count() < 5 {
        exchange((&mut a, &mut a_ports), (&mut b, &mut b_ports), now);
        now += 1;
    }
    let left_over = a_ports.incoming.clone();
    assert!(!left_over.is_empty());
    // B is shown an incarnation of A that does not exist, and continues without A.
    let mut other_life = a_ports.own.unwrap();
    other_life[8] = 2;
    b_ports.shown = Some(other_life);
    for _ in 0..20 {
        now += 1;
        b.step(Time(now * 1_000_000), &mut b_ports);
    }
    assert_eq!(
        b.phase(),
        Phase::InView(
            tramontane_core::ids::ViewId(2),
            tramontane_partition::group::Members::Alone(WhichPartition::B)
        )
    );
    (a_ports.shown, a_ports.incoming) = (b_ports.own, left_over);
    assert_eq!(a.step(Time(now * 1_000_000), &mut a_ports), Phase::Fresh);
    let out = |report: &HealthReport| match report {
        HealthReport::Health(event) => event.kind == HealthKind::StoppedBecauseOfThis,
        HealthReport::OtherGroup(_) | HealthReport::Stopped(_) => false,
    };
    assert!(a_ports.reports.iter().any(out), "{:?}", a_ports.reports);
    for _ in 0..100 {
        now += 1;
        exchange((&mut a, &mut a_ports), (&mut b, &mut b_ports), now);
    }
    assert_eq!((a.orders().count(), a.orders()), (20, b.orders()));
}

#[test]
fn message_larger_than_a_port_is_split() {
    let (mut a, mut a_ports) = (life(WhichPartition::A, 1), ScriptedPorts::default());
    let (mut b, mut b_ports) = (life(WhichPartition::B, 1), ScriptedPorts::default());
    let (mut longest, mut frames) = (0, 0);
    for now in 0..60 {
        exchange((&mut a, &mut a_ports), (&mut b, &mut b_ports), now);
        frames += a_ports.incoming.len();
        longest = a_ports.incoming.iter().map(Vec::len).fold(longest, usize::max);
    }
    assert_eq!((a.orders().count(), a.orders()), (20, b.orders()));
    let largest = (0..10)
        .map(|n| tramontane_partition::orders::Orders::length_of(WhichPartition::B, n))
        .max();
    // B sends ten orders. With views, there are more frames.
    assert!(longest <= MESSAGE_BYTES && largest > Some(MESSAGE_BYTES) && frames > 10, "{frames}");
}

#[test]
fn lost_frame_stops_the_partition_with_a_report() {
    for lost in 0..12 {
        let (mut a, mut a_ports) = (life(WhichPartition::A, 1), ScriptedPorts::default());
        let (mut b, mut b_ports) = (life(WhichPartition::B, 1), ScriptedPorts::default());
        let (mut passed, mut stopped) = (0, false);
        for now in 0..40 {
            exchange((&mut a, &mut a_ports), (&mut b, &mut b_ports), now);
            let count = a_ports.incoming.len();
            if passed <= lost && lost < passed + count {
                a_ports.incoming.remove(lost - passed);
            }
            passed += count;
            stopped |= a_ports.reports.contains(&HealthReport::Stopped(Why::Queue));
        }
        assert!(stopped, "frame {lost} of {passed}: {:?}", a_ports.reports);
    }
}

#[test]
fn unrelated_frames_and_noise_are_ignored() {
    let (mut a, mut a_ports) = (life(WhichPartition::A, 1), ScriptedPorts::default());
    let (mut b, mut b_ports) = (life(WhichPartition::B, 1), ScriptedPorts::default());
    for now in 0..60 {
        exchange((&mut a, &mut a_ports), (&mut b, &mut b_ports), now);
        let mut foreign = a_ports.incoming.first().cloned().unwrap_or_default();
        if let Some(byte) = foreign.get_mut(4 + (now as usize) % 8) {
            *byte ^= 0x40;
            a_ports.incoming.insert(0, foreign);
        }
        a_ports.incoming.insert(0, vec![now as u8; (now as usize * 5) % MESSAGE_BYTES]);
    }
    assert_eq!((a.orders().count(), a.orders()), (20, b.orders()));
}

#[test]
fn failing_port_stops_the_partition() {
    let (mut a, mut ports) =
        (life(WhichPartition::A, 1), ScriptedPorts { fails: true, ..ScriptedPorts::default() });
    assert_eq!(a.step(Time(0), &mut ports), Phase::Stopped(Why::Port));
    assert_eq!(ports.reports, [HealthReport::Stopped(Why::Port)]);
    assert_eq!(a.step(Time(1), &mut ports), Phase::Stopped(Why::Port));
}

#[test]
fn partner_silence_and_resumption_are_reported() {
    let mut run = PartitionRun::new(100);
    run.finish().unwrap();
    for _ in 0..10_000 {
        run.step(WhichPartition::A);
    }
    run.step(WhichPartition::B);
    run.step(WhichPartition::A);
    let kinds: Vec<HealthKind> = run.reports[0]
        .iter()
        .map(|report| match report {
            HealthReport::Health(event) => event.kind,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, [HealthKind::Started, HealthKind::Silent, HealthKind::Resumed]);
}
