//! A gateway between a group and Cyclone DDS. Run it with `runtime-std/dds/cyclone/check`, which
//! installs Cyclone DDS: this program needs it, and a network that supports multicast.

use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tramontane::shared_memory::Root;
use tramontane::{Description, StartOptions};
use tramontane_dds::gateway::{Gateway, GatewayOptions, MirrorCounts, MirrorOptions};
use tramontane_dds::{
    DataReader, Disposition, Domain, DomainParticipant, History, Lent, Level, Octets, OnSample,
    ReaderQos, Selection, TopicDescription, TypeSupport, WriterQos,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The maximum sample size of the topic Octets.
const SAMPLE_MAX: u32 = 1 << 20;

/// Size, in bytes, of a sequence's length.
const LENGTH: u32 = 4;

/// Sizes around each limit on the path: a datagram on Ethernet and on the loopback, a fragment, the
/// topic's limit.
const SIZES: [u32; 16] = [
    0,
    1,
    255,
    1_200,
    1_300,
    1_344,
    1_345,
    1_500,
    9_000,
    65_000,
    65_535,
    65_536,
    70_001,
    300_000,
    SAMPLE_MAX - LENGTH - 1,
    SAMPLE_MAX - LENGTH,
];

/// The sample type of `peer.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Numbered {
    writer: i32,
    number: i32,
}

impl TypeSupport for Numbered {
    const TYPE_NAME: &'static str = "Numbered";
    type Key = ();
    fn key(&self) {}
}

/// A process of Cyclone DDS. Dropping this kills the process.
struct CycloneProcess {
    child: Child,
    _input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl CycloneProcess {
    fn start(rtps_domain: u16, arguments: &[&str]) -> Self {
        let python = std::env::var("TRAMONTANE_CYCLONE_PYTHON").expect("run cyclone/check");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/cyclone/peer.py");
        let (way, rest) = arguments.split_first().expect("a way");
        let mut child = Command::new(python)
            .args([script, way, &rtps_domain.to_string()])
            .args(rest)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(child.stdout.take().expect("an output"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let peer = Self { _input: child.stdin.take(), child, lines };
        assert_eq!(peer.lines.recv_timeout(PATIENCE).as_deref(), Ok("ready"));
        peer
    }

    fn write(rtps_domain: u16, topic: &str, writer: i32, count: i32) -> Self {
        Self::start(rtps_domain, &["write", topic, &writer.to_string(), &count.to_string()])
    }

    fn read(rtps_domain: u16, topic: &str, count: usize) -> Self {
        Self::start(rtps_domain, &["read", topic, &count.to_string()])
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("a command").success());
    }

    /// Returns the lines that a reader has printed, once its process has exited.
    fn lines(mut self) -> Vec<String> {
        let ended = self.child.wait().expect("it ends");
        assert!(ended.success(), "{ended}");
        self.lines.iter().collect()
    }

    fn samples(self) -> Vec<Numbered> {
        let number =
            |text: Option<&str>| text.and_then(|text| text.parse().ok()).expect("a number");
        self.lines()
            .iter()
            .map(|line| {
                let mut words = line.split(' ');
                Numbered { writer: number(words.next()), number: number(words.next()) }
            })
            .collect()
    }
}

impl Drop for CycloneProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three participants, of which nodes 0 and 1 are gateways.
struct Participants {
    _root: TempDir,
    participants: Vec<DomainParticipant>,
    rtps_domain: u16,
}

/// Joins the domain of these tests, whose memory is in that folder.
fn join(root: &Path, node: u32) -> DomainParticipant {
    let group = Description::builder("gateway").nodes(3).heartbeat_ms(10, 2_000);
    let topics = [
        TopicDescription::new("Numbers", "Numbered").sample_max(256),
        TopicDescription::new("Octets", "Octets").sample_max(SAMPLE_MAX).window(4),
    ];
    let domain = Domain::new(group, topics).expect("a domain");
    let options = StartOptions { root: Root::under(root), ..StartOptions::new(node) };
    DomainParticipant::join(&domain, options).expect("it joins")
}

impl Participants {
    fn new(rtps_domain: u16) -> Self {
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        Self::with(root, rtps_domain, 0..3)
    }

    /// Creates a world whose participants are these nodes. Other nodes may join in other processes.
    fn with(root: TempDir, rtps_domain: u16, nodes: Range<u32>) -> Self {
        let place = root.path();
        let participants = std::thread::scope(|scope| {
            let joins: Vec<_> = nodes.map(|node| scope.spawn(move || join(place, node))).collect();
            joins.into_iter().map(|join| join.join().expect("it joins")).collect()
        });
        Self { _root: root, participants, rtps_domain }
    }

    fn gateway(&self, node: usize, writes: &str) -> Gateway {
        self.mirroring(
            node,
            MirrorOptions { writes: writes.to_owned(), ..MirrorOptions::same("Numbers") },
        )
    }

    fn mirroring(&self, node: usize, mirrored: MirrorOptions) -> Gateway {
        mirroring(&self.participants[node], self.rtps_domain, &mirrored)
    }

    /// Returns a reader that records what a participant receives from now on.
    fn order_at(&self, node: usize) -> (DataReader<Numbered>, Arc<Mutex<Vec<Numbered>>>) {
        let seen: Arc<Mutex<Vec<Numbered>>> = Arc::default();
        let noted = Arc::clone(&seen);
        let own = &self.participants[node];
        let topic = own.topic::<Numbered>("Numbers").expect("a topic");
        let listener = OnSample(move |sample: &Lent<'_, Numbered>| {
            noted.lock().expect("no panic").extend(sample.data().ok());
            Disposition::Taken
        });
        let reader = own
            .create_datareader_with_listener(&topic, ReaderQos::default(), listener)
            .expect("a reader");
        (reader, seen)
    }
}

fn mirroring(own: &DomainParticipant, rtps_domain: u16, mirrored: &MirrorOptions) -> Gateway {
    let options = GatewayOptions { rtps_domain, gateways: vec![0, 1], network: None };
    let mut gateway = Gateway::open(options).expect("RTPS");
    gateway.mirror(own, mirrored).expect("mirrored");
    gateway
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Checks that the numbers of each writer count from 1.
fn assert_whole(samples: &[Numbered], counts: &[(i32, i32)]) {
    for (writer, count) in counts {
        let own = samples.iter().filter(|sample| sample.writer == *writer);
        let numbers: Vec<i32> = own.map(|sample| sample.number).collect();
        assert_eq!(numbers, (1..=*count).collect::<Vec<_>>(), "of writer {writer}");
    }
}

/// There are two writers of Cyclone DDS and one in the group, and two readers of Cyclone DDS and
/// one in the group.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn rtps_readers_see_all_writers_in_one_sequence() {
    let world = Participants::new(81);
    let (_reader, order) = world.order_at(2);
    let _gateway = world.gateway(0, "Numbers.ordered");
    let count = 200;
    let readers = [1, 2].map(|_| CycloneProcess::read(81, "Numbers.ordered", 3 * 200));
    let _writers = [1, 2].map(|writer| CycloneProcess::write(81, "Numbers", writer, count));
    let own = &world.participants[2];
    let topic = own.topic::<Numbered>("Numbers").expect("a topic");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    until("theirs come", || !order.lock().expect("no panic").is_empty());
    for number in 1..=count {
        writer.write(&Numbered { writer: 0, number }).expect("room");
        std::thread::sleep(Duration::from_millis(1));
    }
    let seen = readers.map(CycloneProcess::samples);
    let order = order.lock().expect("no panic").clone();
    assert_whole(&order, &[(0, count), (1, count), (2, count)]);
    assert_eq!((&seen[0], &seen[1]), (&order, &order));
    let mixed = order.windows(2).filter(|pair| pair[0].writer != pair[1].writer).count();
    assert!(mixed > 10, "they did not write at the same time: inconclusive");
}

/// A topic is mirrored under its own name: a reader of Cyclone DDS receives samples of Cyclone DDS
/// once, from their writer, and those from the group through the gateway.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn rtps_samples_are_not_echoed_to_rtps() {
    let world = Participants::new(82);
    let (_reader, order) = world.order_at(2);
    let _gateway = world.gateway(0, "Numbers");
    let reader = CycloneProcess::read(82, "Numbers", 100);
    let _writer = CycloneProcess::write(82, "Numbers", 1, 50);
    let own = &world.participants[2];
    let topic = own.topic::<Numbered>("Numbers").expect("a topic");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    until("theirs come", || order.lock().expect("no panic").len() >= 50);
    for number in 1..=50 {
        writer.write(&Numbered { writer: 0, number }).expect("room");
    }
    let seen = reader.samples();
    assert_eq!(seen.len(), 100, "one more is an echo");
    assert_whole(&seen, &[(0, 50), (1, 50)]);
    assert_whole(&order.lock().expect("no panic"), &[(0, 50), (1, 50)]);
}

/// The active gateway disappears while samples arrive, and the other one takes over.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn gateway_takeover_neither_repeats_nor_loses_samples() {
    let mut world = Participants::new(83);
    let (_reader, order) = world.order_at(2);
    let first = world.gateway(0, "Numbers.ordered");
    let _second = world.gateway(1, "Numbers.ordered");
    let count = 600;
    let reader = CycloneProcess::read(83, "Numbers.ordered", 600);
    // Both gateways read before anything is written.
    std::thread::sleep(Duration::from_secs(3));
    let _writer = CycloneProcess::write(83, "Numbers", 1, count);
    until("some come", || order.lock().expect("no panic").len() > 100);
    // The participant disappears silently, as far as the group knows.
    drop(world.participants.remove(0));
    drop(first);
    let seen = reader.samples();
    assert_whole(&order.lock().expect("no panic"), &[(1, count)]);
    assert_whole(&seen, &[(1, count)]);
}

/// The folder of a process that is to be [`failing_gateway`].
const ROLE: &str = "TRAMONTANE_FAILING_GATEWAY";

const ROLE_DOMAIN: u16 = 88;

/// The exit status of that process once its gateway has failed.
const FAILED: i32 = 44;

/// A gateway in a process of its own. When its input ends, a thread of the RTPS library panics;
/// then it does what `tramontane-dds gateway` does.
#[test]
#[ignore = "the process of standby_gateway_takes_over_from_failed_process"]
fn failing_gateway() {
    let Some(root) = std::env::var_os(ROLE) else { return };
    let own = join(root.as_ref(), 0);
    let out = MirrorOptions { writes: "Numbers.ordered".into(), ..MirrorOptions::same("Numbers") };
    let mut gateway = mirroring(&own, ROLE_DOMAIN, &out);
    assert!(gateway.failure().is_none());
    std::io::stdin().read_line(&mut String::new()).expect("an input");
    let thread = std::thread::Builder::new().name("RustDDS planted".into());
    thread.spawn(|| panic!("planted")).expect("a thread").join().expect_err("it panics");
    gateway.failure().expect("it is noticed");
    drop(gateway);
    own.leave(PATIENCE).expect("the others continue");
    std::process::exit(FAILED);
}

/// The active gateway is another process, and can no longer pass samples on. The process ends, and
/// the standby passes on the rest.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn standby_gateway_takes_over_from_failed_process() {
    let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut active = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "failing_gateway", "--ignored"])
        .env(ROLE, root.path())
        .stdin(Stdio::piped())
        .spawn()
        .expect("a process");
    let world = Participants::with(root, ROLE_DOMAIN, 1..3);
    let (_reader, order) = world.order_at(1);
    let standby = world.gateway(0, "Numbers.ordered");
    let count = 600;
    let reader = CycloneProcess::read(ROLE_DOMAIN, "Numbers.ordered", 600);
    // Both gateways read before anything is written.
    std::thread::sleep(Duration::from_secs(3));
    let _writer = CycloneProcess::write(ROLE_DOMAIN, "Numbers", 1, count);
    until("some come", || order.lock().expect("no panic").len() > 100);
    assert_eq!(standby.counts()[0].1.entered, 0, "the other one is active");
    drop(active.stdin.take());
    assert_eq!(active.wait().expect("it ends").code(), Some(FAILED));
    let seen = reader.samples();
    assert!(standby.counts()[0].1.entered > 0, "nothing was left to pass on: inconclusive");
    assert_whole(&order.lock().expect("no panic"), &[(1, count)]);
    assert_whole(&seen, &[(1, count)]);
}

/// Samples of every size enter the order, and are written to RTPS again.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn samples_of_every_size_cross_the_gateway() {
    let world = Participants::new(84);
    let own = &world.participants[2];
    let topic = own.topic::<Octets>("Octets").expect("a topic");
    let qos = ReaderQos { history: History::KeepAll, ..ReaderQos::default() };
    let here = own.create_datareader(&topic, qos).expect("a reader");
    let out = MirrorOptions { writes: "Out".to_owned(), ..MirrorOptions::same("Octets") };
    let _gateway = world.mirroring(0, out);
    let words: Vec<String> = SIZES.iter().map(u32::to_string).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let count = (2 * SIZES.len()).to_string();
    let reader = CycloneProcess::start(84, &["read-sizes", "Out", &count]);
    let _writer = CycloneProcess::start(84, &[&["write-sizes", "Octets"], &words[..]].concat());
    let mut entered = Vec::new();
    until("theirs come", || {
        let taken = here.take(&Selection::default());
        entered.extend(taken.iter().map(|sample| sample.data().expect("octets").0));
        entered.len() >= SIZES.len()
    });
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    for (octets, size) in entered.iter().zip(SIZES) {
        assert_eq!((octets.len(), octets), (size as usize, &pattern(size)));
        writer.write(&Octets(octets.clone())).expect("room");
    }
    let lines: Vec<String> = SIZES.iter().chain(&SIZES).map(u32::to_string).collect();
    assert_eq!(reader.lines(), lines);
}

/// A reader is stopped while more is written than its socket holds, until the gateway is about to
/// end.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn ending_gateway_waits_for_reliable_readers() {
    const COUNT: usize = 60;
    const SIZE: u32 = 60_000;
    let world = Participants::new(89);
    let own = &world.participants[2];
    let topic = own.topic::<Octets>("Octets").expect("a topic");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    let out = MirrorOptions { writes: "Out".to_owned(), ..MirrorOptions::same("Octets") };
    let gateway = world.mirroring(0, out);
    let reader = CycloneProcess::start(89, &["read-sizes", "Out", &COUNT.to_string()]);
    // The reader matches before anything is written.
    std::thread::sleep(Duration::from_secs(3));
    reader.signal("-STOP");
    for _ in 0..COUNT {
        writer.write(&Octets(pattern(SIZE))).expect("room");
    }
    let count = u64::try_from(COUNT).expect("small");
    until("they went out", || gateway.counts()[0].1.went_out == count);
    std::thread::scope(|scope| {
        scope.spawn(|| drop(gateway));
        std::thread::sleep(Duration::from_millis(300));
        reader.signal("-CONT");
    });
    assert_eq!(reader.lines(), vec![SIZE.to_string(); COUNT]);
}

/// The byte pattern of `peer.py`.
fn pattern(size: u32) -> Vec<u8> {
    (0..=250).cycle().take(size as usize).collect()
}

/// Samples larger than the topic allows are dropped and counted, and the others pass.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn oversized_rtps_sample_is_dropped_and_counted() {
    let world = Participants::new(85);
    let own = &world.participants[2];
    let topic = own.topic::<Octets>("Octets").expect("a topic");
    let qos = ReaderQos { history: History::KeepAll, ..ReaderQos::default() };
    let here = own.create_datareader(&topic, qos).expect("a reader");
    let mut gateway = world.mirroring(0, MirrorOptions::same("Octets"));
    let above = (SAMPLE_MAX - LENGTH + 1).to_string();
    let _writer =
        CycloneProcess::start(85, &["write-sizes", "Octets", "7", &above, "3000000", "9"]);
    let mut sizes = Vec::new();
    until("the others come", || {
        let taken = here.take(&Selection::default());
        sizes.extend(taken.iter().map(|sample| sample.data().expect("octets").0.len()));
        sizes.len() >= 2
    });
    assert_eq!(sizes, [7, 9]);
    let counts = MirrorCounts { entered: 2, went_out: 0, left_out: 2 };
    until("they are counted", || gateway.counts() == [("Octets".to_owned(), counts)]);
    assert!(gateway.failure().is_none());
}

/// RTPS writers and readers that do not match receive nothing, and are listed with the reason. The
/// others are not delayed.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn gateway_lists_mismatched_rtps_endpoints() {
    let world = Participants::new(86);
    let (_reader, order) = world.order_at(2);
    let gateway = world.gateway(0, "Numbers");
    let cases = [
        ("keyed", true, true, "its type has a key"),
        ("appendable", true, false, "XCDR2"),
        ("xcdr2", true, true, "XCDR2"),
        ("type", true, true, "its type is \"Other\""),
        ("best-effort", true, false, "best effort"),
        ("transient-local", false, true, "from before its creation"),
    ];
    let mut peers = Vec::new();
    for (which, writer, reader, why) in cases {
        peers.clear();
        let count = gateway.mismatches().len() + usize::from(writer) + usize::from(reader);
        peers.push(CycloneProcess::start(86, &["mismatch", "Numbers", which]));
        until(which, || gateway.mismatches().len() >= count);
        let named = gateway.mismatches().split_off(count - usize::from(writer && reader) - 1);
        let ends: Vec<bool> = named.iter().map(|mismatch| mismatch.is_writer).collect();
        assert_eq!((ends.contains(&true), ends.contains(&false)), (writer, reader), "{which}");
        assert!(named.iter().all(|mismatch| mismatch.to_string().contains(why)), "{named:?}");
        // In the last case, the writer matches.
        assert!(!writer || gateway.counts()[0].1 == MirrorCounts::default(), "{which}");
    }
    until("what matches passes", || !order.lock().expect("no panic").is_empty());
}
