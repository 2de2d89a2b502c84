//! A gateway between a group and Cyclone DDS. Run it by `runtime-std/dds/cyclone/check`, which
//! installs Cyclone DDS: this program needs it, and a network that takes multicasts.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tramontane::{Description, Root, StartOptions};
use tramontane_dds::gateway::{Gateway, GatewayOptions, MirrorOptions};
use tramontane_dds::{
    DataReader, Disposition, Domain, DomainParticipant, Lent, Level, OnSample, ReaderQos,
    TopicDescription, TypeSupport, WriterQos,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The type of `peer.py`.
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

/// A process of Cyclone DDS. Dropping it kills it.
struct Peer {
    child: Child,
    _input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Peer {
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

    /// What a reader printed, once it has ended.
    fn samples(mut self) -> Vec<Numbered> {
        let ended = self.child.wait().expect("it ends");
        assert!(ended.success(), "{ended}");
        let number =
            |text: Option<&str>| text.and_then(|text| text.parse().ok()).expect("a number");
        self.lines
            .iter()
            .map(|line| {
                let mut words = line.split(' ');
                Numbered { writer: number(words.next()), number: number(words.next()) }
            })
            .collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three participants, whose nodes 0 and 1 are gateways.
struct World {
    _root: TempDir,
    participants: Vec<DomainParticipant>,
    rtps_domain: u16,
}

impl World {
    fn new(rtps_domain: u16) -> Self {
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let group = Description::builder("gateway").nodes(3).heartbeat_ms(10, 2_000);
        let topic = TopicDescription::new("Numbers", "Numbered").sample_max(256);
        let domain = Domain::new(group, [topic]).expect("a domain");
        let join = |node| {
            let options =
                StartOptions { root: Root::under(root.path()), ..StartOptions::new(node) };
            DomainParticipant::join(&domain, options).expect("it joins")
        };
        let participants = std::thread::scope(|scope| {
            let joins: Vec<_> = (0..3).map(|node| scope.spawn(move || join(node))).collect();
            joins.into_iter().map(|join| join.join().expect("it joins")).collect()
        });
        Self { _root: root, participants, rtps_domain }
    }

    fn gateway(&self, node: usize, writes: &str) -> Gateway {
        let options =
            GatewayOptions { rtps_domain: self.rtps_domain, gateways: vec![0, 1], network: None };
        let mut gateway = Gateway::open(options).expect("RTPS");
        let mirrored =
            MirrorOptions { writes: writes.to_owned(), ..MirrorOptions::same("Numbers") };
        gateway.mirror(&self.participants[node], &mirrored).expect("mirrored");
        gateway
    }

    /// What a participant is handed, from now on.
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

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The numbers of each writer are those from 1 on.
fn assert_whole(samples: &[Numbered], counts: &[(i32, i32)]) {
    for (writer, count) in counts {
        let own = samples.iter().filter(|sample| sample.writer == *writer);
        let numbers: Vec<i32> = own.map(|sample| sample.number).collect();
        assert_eq!(numbers, (1..=*count).collect::<Vec<_>>(), "of writer {writer}");
    }
}

/// Two writers of Cyclone DDS and one here; two readers of Cyclone DDS and one here.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn all_readers_see_the_samples_of_all_writers_in_one_sequence() {
    let world = World::new(81);
    let (_reader, order) = world.order_at(2);
    let _gateway = world.gateway(0, "Numbers.ordered");
    let count = 200;
    let readers = [1, 2].map(|_| Peer::read(81, "Numbers.ordered", 3 * 200));
    let _writers = [1, 2].map(|writer| Peer::write(81, "Numbers", writer, count));
    let own = &world.participants[2];
    let topic = own.topic::<Numbered>("Numbers").expect("a topic");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    until("theirs come", || !order.lock().expect("no panic").is_empty());
    for number in 1..=count {
        writer.write(&Numbered { writer: 0, number }).expect("room");
        std::thread::sleep(Duration::from_millis(1));
    }
    let seen = readers.map(Peer::samples);
    let order = order.lock().expect("no panic").clone();
    assert_whole(&order, &[(0, count), (1, count), (2, count)]);
    assert_eq!((&seen[0], &seen[1]), (&order, &order));
    let mixed = order.windows(2).filter(|pair| pair[0].writer != pair[1].writer).count();
    assert!(mixed > 10, "they did not write at the same time: inconclusive");
}

/// A topic that is mirrored to its own name: a reader of Cyclone DDS has its own kind's samples
/// once, from their writer, and those from here from the gateway.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn what_came_from_rtps_does_not_go_back() {
    let world = World::new(82);
    let (_reader, order) = world.order_at(2);
    let _gateway = world.gateway(0, "Numbers");
    let reader = Peer::read(82, "Numbers", 100);
    let _writer = Peer::write(82, "Numbers", 1, 50);
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

/// The active gateway goes while samples come; the other takes over.
#[test]
#[ignore = "needs Cyclone DDS: run runtime-std/dds/cyclone/check"]
fn a_gateway_that_takes_over_repeats_and_loses_nothing() {
    let mut world = World::new(83);
    let (_reader, order) = world.order_at(2);
    let first = world.gateway(0, "Numbers.ordered");
    let _second = world.gateway(1, "Numbers.ordered");
    let count = 600;
    let reader = Peer::read(83, "Numbers.ordered", 600);
    // Both gateways read before anything is written.
    std::thread::sleep(Duration::from_secs(3));
    let _writer = Peer::write(83, "Numbers", 1, count);
    until("some come", || order.lock().expect("no panic").len() > 100);
    // Without a word, as far as the group knows.
    drop(world.participants.remove(0));
    drop(first);
    let seen = reader.samples();
    assert_whole(&order.lock().expect("no panic"), &[(1, count)]);
    assert_whole(&seen, &[(1, count)]);
}
