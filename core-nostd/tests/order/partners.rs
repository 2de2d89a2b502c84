//! Partners with fixed membership: one restarts with empty memory, one falls silent, and one member
//! of a pair continues alone.

use crate::common::{Carries, Private, fabric, send};
use tramontane_core::check::Checks;
use tramontane_core::fabric::{Capabilities, ErrorKind, LossCause, Promises, Write};
use tramontane_core::health::{
    Decision, Discretes, HealthError, HealthEvent, HealthKind, HealthOptions, Monitor, PeerHealth,
    Policy, decide,
};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, HeaderCell, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::{Batch, Impossible};
use tramontane_core::node::{AloneError, Node};
use tramontane_core::smc::Outbox;

const ALL: SubgroupId = SubgroupId(0);
const RANKS: [Rank; 2] = [Rank(0), Rank(1)];
const NODES: [NodeId; 2] = [NodeId(7), NodeId(8)];

/// Copies the writes that one member posts into the other member's copy at once, or drops them
/// while the link is cut.
struct DirectLink {
    row: RowWriter<'static>,
    copy: RowWriter<'static>,
    is_cut: bool,
    refusal: LinkRefusal,
    /// Number of calls that asked the link to carry writes.
    posts: usize,
}

/// The reason why a link currently refuses writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkRefusal {
    None,
    NotReady,
    Post(ErrorKind),
}

impl Carries for DirectLink {
    fn limits(&self) -> Capabilities {
        Capabilities {
            promises: Promises::WRITE_ORDER,
            writes_max: 8,
            write_bytes_max: 4096,
            guard_bytes_max: 24,
            write_overhead_bytes: 24,
        }
    }
    fn is_ready(&self, _: Rank) -> bool {
        self.refusal != LinkRefusal::NotReady
    }
    fn carry(&mut self, _: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        self.posts += 1;
        if let LinkRefusal::Post(kind) = self.refusal {
            return Err(kind);
        }
        for write in writes.iter().filter(|_| !self.is_cut) {
            let mut bytes = vec![0; write.length];
            self.row.reader().read(write.source.offset, &mut bytes).expect("in the row");
            self.copy.apply(write.target.offset, &bytes).expect("in the row");
        }
        Ok(())
    }
}

fabric!(DirectLink);

/// One incarnation of one of the two members.
struct MemberIncarnation {
    node: Node<'static>,
    monitor: Monitor<'static>,
    outbox: Outbox<'static>,
    way: DirectLink,
    delivered: Vec<(u64, Vec<u8>)>,
    events: Vec<HealthEvent>,
    lost: Option<(Rank, LossCause)>,
}

fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

fn lines(layout: &Layout<'_>) -> &'static [Line] {
    leak((0..layout.row_bytes(Rank(0)) / 64).map(|_| Line::new()).collect::<Vec<_>>())
}

fn layout(checks: Checks) -> Layout<'static> {
    let subgroups = leak([Subgroup {
        members: &RANKS,
        senders: &RANKS,
        window: 4,
        message_max: 16,
        delivery: Delivery::Ordered,
    }]);
    let layout = Layout::new(Group { members: &NODES, subgroups }).expect("a pair").with_health();
    if checks.is_on() { layout.with_checks().expect("small") } else { layout }
}

/// A member's memory: its row, and its copy of the other's row.
#[derive(Clone, Copy)]
struct PartnerMemory {
    own: &'static [Line],
    copy: &'static [Line],
}

impl PartnerMemory {
    fn new(layout: &Layout<'_>) -> Self {
        Self { own: lines(layout), copy: lines(layout) }
    }
}

/// Starts an incarnation of a member on fresh memory.
fn begin(
    layout: &Layout<'static>,
    own: Rank,
    memory: PartnerMemory,
    to: PartnerMemory,
    options: HealthOptions,
) -> MemberIncarnation {
    let seen = match own {
        Rank(0) => [memory.own, memory.copy],
        _ => [memory.copy, memory.own],
    };
    let rows: &'static [Row<'static>; 2] = leak(seen.map(Row::from_lines));
    let row = RowWriter::from_lines(memory.own);
    let copy = RowWriter::from_lines(to.copy);
    let way = DirectLink { row, copy, is_cut: false, refusal: LinkRefusal::None, posts: 0 };
    let private = leak(Private::new(layout, own));
    let node = private.open(layout, own, rows, row, way.limits());
    let peers = leak([PeerHealth::default(); 2]);
    let monitor = Monitor::open(ViewId(1), layout, own, (rows, row), peers, options);
    let outbox = node.outbox(ALL).expect("a sender");
    let monitor = monitor.expect("a layout with health");
    MemberIncarnation { node, monitor, outbox, way, delivered: vec![], events: vec![], lost: None }
}

const fn options(incarnation: u64) -> HealthOptions {
    HealthOptions { incarnation, interval_ns: 10, timeout_ns: Some(50) }
}

impl MemberIncarnation {
    fn step(&mut self, now: u64) {
        let Self { node, monitor, way, delivered, events, .. } = self;
        monitor.step(Time(now), way, |event| events.push(event));
        let mut take = |batch: &mut Batch<'_>| {
            let message = |message: tramontane_core::multicast::Message<'_>| {
                (message.place.get(), message.payload.to_vec())
            };
            delivered.extend(batch.map(message));
        };
        let progress = node.step(Time(now), way, &mut take).expect("it steps");
        self.lost = self.lost.or(progress.lost);
    }

    fn kinds(&self) -> Vec<HealthKind> {
        self.events.iter().map(|event| event.kind).collect()
    }
}

/// Opens two members that have sent each other two messages; the last value is the time of the last
/// step.
fn pair(checks: Checks) -> (Layout<'static>, [PartnerMemory; 2], [MemberIncarnation; 2], u64) {
    let layout = layout(checks);
    let memory = [PartnerMemory::new(&layout), PartnerMemory::new(&layout)];
    let mut lives = [
        begin(&layout, Rank(0), memory[0], memory[1], options(5)),
        begin(&layout, Rank(1), memory[1], memory[0], options(9)),
    ];
    let mut now = 0;
    for turn in 0..12 {
        now += 7;
        for life in &mut lives {
            if turn < 2 {
                send(&life.outbox, &[turn; 9]).expect("room");
            }
            life.step(now);
        }
    }
    for life in &lives {
        assert_eq!(life.delivered.len(), 4);
        assert_eq!(life.kinds(), [HealthKind::Started]);
        assert!(life.node.is_settled());
        assert!(RANKS.iter().all(|peer| !life.monitor.is_over(*peer)));
    }
    (layout, memory, lives, now)
}

#[test]
fn both_partners_report_restart_with_empty_memory() {
    for checks in [Checks::Off, Checks::On] {
        let (layout, mut memory, mut lives, mut now) = pair(checks);
        // Member 1's row and copies are lost; member 0's copy of its row is unchanged.
        memory[1] = PartnerMemory::new(&layout);
        lives[1] = begin(&layout, Rank(1), memory[1], memory[0], options(10));
        lives[0].way.copy = RowWriter::from_lines(memory[1].copy);
        for _ in 0..10 {
            now += 7;
            lives[1].step(now);
            lives[0].step(now);
            if lives[0].monitor.is_over(Rank(1)) {
                lives[0].monitor.stop_because_of(Rank(1));
            }
        }
        let restarted = lives[0].events.last().copied().expect("an event");
        assert_eq!(
            (restarted.kind, restarted.peer),
            (HealthKind::Restarted, Rank(1)),
            "{checks:?}"
        );
        assert_eq!(restarted.detail, 10, "the new incarnation");
        assert!(lives[1].kinds().contains(&HealthKind::StoppedBecauseOfThis), "{checks:?}");
        assert!(lives[1].monitor.is_over(Rank(0)));
    }
}

#[test]
fn partner_silence_is_dated_from_last_heartbeat() {
    let (_, _, [mut one, mut other], mut now) = pair(Checks::Off);
    let last = now;
    for _ in 0..20 {
        now += 7;
        one.step(now);
    }
    assert_eq!(one.kinds(), [HealthKind::Started, HealthKind::Silent]);
    let silent = one.events[1];
    assert!(silent.since.get() <= last && silent.since.get() + 14 > last, "{silent:?}");
    assert_eq!(silent.detail, 9);
    // A member is silent if it shows nothing for longer than the timeout, but not at exactly the
    // timeout.
    let (_, _, [mut early, _], now_early) = pair(Checks::Off);
    let heard = silent.since.get();
    assert_eq!(now_early, last);
    early.step(heard + 50);
    assert_eq!(early.kinds(), [HealthKind::Started]);
    early.step(heard + 51);
    assert_eq!(early.kinds(), [HealthKind::Started, HealthKind::Silent]);
    // The partner was only late.
    other.step(now);
    one.step(now + 1);
    assert_eq!(one.kinds().last(), Some(&HealthKind::Resumed));
}

#[test]
fn partner_is_never_silent_without_a_timeout() {
    let layout = layout(Checks::Off);
    let memory = [PartnerMemory::new(&layout), PartnerMemory::new(&layout)];
    let options = HealthOptions { timeout_ns: None, ..options(1) };
    let mut one = begin(&layout, Rank(0), memory[0], memory[1], options);
    (0..200).for_each(|now| one.step(now * 100));
    assert_eq!(one.events, []);
}

#[test]
fn damaged_header_is_reported_unless_repaired_in_time() {
    let (_, memory, mut lives, mut now) = pair(Checks::On);
    let copy = RowWriter::from_lines(memory[0].copy);
    let flip = |cell: HeaderCell| {
        let cell = copy.cell(cell.offset()).expect("in the row");
        cell.publish(cell.load() ^ 1 << 13);
    };
    flip(HeaderCell::Heartbeat);
    for _ in 0..4 {
        now += 7;
        lives.iter_mut().for_each(|life| life.step(now));
    }
    assert_eq!(lives[0].kinds(), [HealthKind::Started], "it was posted again");
    flip(HeaderCell::Incarnation);
    // No further writes arrive, so the cell stays damaged.
    for _ in 0..20 {
        lives[0].step(now);
    }
    assert_eq!(lives[0].kinds().last(), Some(&HealthKind::Unreadable));
}

/// The survivor delivers everything that it has, and continues to send. Its deliveries begin with
/// everything that its partner delivered.
#[test]
fn survivors_deliveries_extend_those_of_its_partner() {
    for stop_after in 0..6 {
        let (_, _, [mut one, mut other], mut now) = pair(Checks::Off);
        // The partner stops in the middle of an exchange.
        for step in 0..stop_after {
            now += 1;
            let _ = send(&one.outbox, &[20 + step; 5]);
            one.step(now);
            let _ = send(&other.outbox, &[40 + step; 5]);
            other.step(now);
        }
        // The partner's window is full, so that it cannot send a null either.
        for _ in 0..4 {
            let _ = send(&one.outbox, &[60; 5]);
        }
        for _ in 0..20 {
            now += 7;
            one.step(now);
        }
        assert_eq!(one.kinds().last(), Some(&HealthKind::Silent));
        let before = one.delivered.len();
        let survivor = Policy::Survivor(Rank(0));
        assert_eq!(decide(survivor, Rank(0), Discretes::default()), Decision::GoOnAlone);
        assert_eq!(decide(survivor, Rank(1), Discretes::default()), Decision::Halt);
        assert!(!one.node.is_alone());
        one.node.go_on_alone().expect("a pair");
        assert!(one.node.is_alone() && !one.node.is_lost());
        // The survivor's earlier messages are delivered although it sends no more.
        now += 1;
        one.step(now);
        assert!(one.node.is_settled(), "stopped after {stop_after}");
        let sent = one.delivered.iter().filter(|(_, payload)| payload.len() == 5).count();
        assert!(sent > usize::from(stop_after), "all that was sent here is delivered");
        for _ in 0..10 {
            let _ = send(&one.outbox, &[80; 3]);
            now += 1;
            one.step(now);
        }
        now += 1;
        one.step(now);
        let alone = one.delivered.iter().filter(|(_, payload)| *payload == [80; 3]).count();
        assert_eq!(alone, 10, "stopped after {stop_after}");
        assert!(one.node.is_settled() && one.delivered.len() > before);
        assert_eq!(other.delivered[..], one.delivered[..other.delivered.len()], "{stop_after}");
    }
}

#[test]
fn only_fixed_pair_continues_without_a_partner() {
    crate::common::with_group(3, &[0, 1], (4, 16), Delivery::Ordered, |nodes, _| {
        assert_eq!(nodes[0].go_on_alone(), Err(AloneError::NotAPair));
    });
    // A pair with views agrees on the survivor instead.
    #[cfg(feature = "views")]
    {
        let fixed = layout(Checks::Off);
        let with_views = Layout::with_views(*fixed.group()).expect("a pair");
        crate::common::with_rows(&with_views, |nodes, _, _| {
            assert_eq!(nodes[0].go_on_alone(), Err(AloneError::NotAPair));
        });
    }
    let layout = layout(Checks::On);
    let memory = PartnerMemory::new(&layout);
    let rows = [Row::from_lines(memory.own), Row::from_lines(memory.copy)];
    let row = RowWriter::from_lines(memory.own);
    let subgroups = *layout.group();
    let plain = Layout::new(subgroups).expect("a pair");
    assert_ne!(plain.digest(), plain.with_health().digest());
    assert!(!plain.has_health() && plain.with_health().has_health());
    assert!(plain.is_fixed() && plain.with_health().is_fixed());
    for (layout, incarnation, error) in [
        (&plain, 1, HealthError::NoHeader),
        (&layout, 0, HealthError::Incarnation),
        (&layout, u64::MAX, HealthError::Incarnation),
    ] {
        let mut peers = [PeerHealth::default(); 2];
        let opened = Monitor::open(
            ViewId(1),
            layout,
            Rank(0),
            (&rows, row),
            &mut peers,
            options(incarnation),
        );
        assert_eq!(opened.err(), Some(error));
    }
    // Wrong arguments: one peer too few, one row too few, a nonexistent rank, and a row without a
    // header.
    let none = RowWriter::from_lines(&[]);
    for (peers, rows, own, row) in [
        (1, &rows[..], Rank(0), row),
        (2, &rows[..1], Rank(0), row),
        (2, &rows[..], Rank(2), row),
        (2, &rows[..], Rank(0), none),
    ] {
        let mut peers = vec![PeerHealth::default(); peers];
        let opened =
            Monitor::open(ViewId(1), &layout, own, (rows, row), &mut peers, options(1)).err();
        assert_eq!(opened, Some(HealthError::WrongState), "{own}");
    }
}

/// HLT-1: a header waits for a peer that is not ready, and for a full queue. If a peer refuses
/// posts for good, the node reports it, and no further header is posted to it.
#[test]
fn header_waits_until_fabric_accepts_the_post() {
    let layout = layout(Checks::Off);
    let memory = [PartnerMemory::new(&layout), PartnerMemory::new(&layout)];
    let mut one = begin(&layout, Rank(0), memory[0], memory[1], options(3));
    let shown = |cell: HeaderCell| {
        Row::from_lines(memory[1].copy).cell(cell.offset()).expect("a header").load()
    };
    // A heartbeat is due every 10 ns; otherwise there is nothing new to post.
    let mut step = |now, refusal| {
        one.way.refusal = refusal;
        let before = one.way.posts;
        one.monitor.step(Time(now), &mut one.way, |_| {});
        one.way.posts - before
    };
    assert_eq!((step(1, LinkRefusal::NotReady), shown(HeaderCell::Heartbeat)), (0, 0));
    let full = LinkRefusal::Post(ErrorKind::QueueFull);
    assert_eq!((step(2, full), shown(HeaderCell::Heartbeat)), (1, 0));
    assert_eq!((step(3, full), shown(HeaderCell::Heartbeat)), (1, 0), "it is tried again");
    assert_eq!((step(4, LinkRefusal::None), shown(HeaderCell::Heartbeat)), (1, 1));
    assert_eq!((step(5, LinkRefusal::None), shown(HeaderCell::Incarnation)), (0, 3), "it is there");
    assert_eq!(step(12, LinkRefusal::Post(ErrorKind::PeerLost)), 1);
    assert_eq!((step(13, LinkRefusal::None), shown(HeaderCell::Heartbeat)), (0, 1));
}

#[test]
fn refusal_event_contains_its_number() {
    let event = HealthEvent::of_refusal((Rank(1), Impossible::SlotCheck), Time(4));
    assert_eq!((event.kind, event.detail), (HealthKind::Misbehaved, 11));
    assert_eq!((event.kind.code(), HealthKind::Restarted.code()), (7, 4));
}
