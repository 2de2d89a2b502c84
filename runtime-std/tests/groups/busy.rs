//! A group that is never idle admits a node, however slowly that node receives what it has missed.

#![allow(clippy::expect_used, clippy::panic)]

use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_runtime::group::{
    Application, Description, Forming, Messages, Running, Sender, StartOptions, start,
};
use tramontane_runtime::member::Settings;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::Root;

const GROUP: SubgroupId = SubgroupId(0);

const NODES: usize = 3;

const MESSAGE_BYTES: usize = 10_240;

/// A time limit longer than any operation takes here.
const LONG: Duration = Duration::from_secs(120);

/// The number of messages delivered from each sender, which is also the number of the sender's next
/// message.
type SenderCounts = [u64; NODES];

/// A state that takes a while to send.
struct Large(Cursor<Vec<u8>>);

impl Read for Large {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.position() == 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
        self.0.read(into)
    }
}

/// An application that is slow with each message that it has missed.
struct CountingApplication {
    counts: Arc<Mutex<SenderCounts>>,
    replayed: Arc<AtomicU64>,
    takes: Duration,
}

impl Application for CountingApplication {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let mut counts = self.counts.lock().expect("nobody panics");
        for message in messages {
            let number = u64::from_le_bytes(message.payload[..8].try_into().expect("a number"));
            let next = &mut counts[message.sender.get() as usize];
            assert_eq!(number, *next, "of {}", message.sender);
            *next += 1;
            if message.is_replayed {
                self.replayed.fetch_add(1, Ordering::Relaxed);
                let began = Instant::now();
                while began.elapsed() < self.takes {
                    std::hint::spin_loop();
                }
            }
        }
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        let counts = *self.counts.lock().expect("nobody panics");
        Box::new(Large(Cursor::new(counts.map(u64::to_le_bytes).concat())))
    }

    fn restore(&mut self, _: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let mut counts = SenderCounts::default();
        for count in &mut counts {
            let mut bytes = [0; 8];
            state.read_exact(&mut bytes)?;
            *count = u64::from_le_bytes(bytes);
        }
        *self.counts.lock().expect("nobody panics") = counts;
        Ok(())
    }
}

/// A member, and its counts.
struct BusyMember {
    running: Running,
    counts: Arc<Mutex<SenderCounts>>,
    replayed: Arc<AtomicU64>,
}

fn join(description: &Description, root: &Root, node: u32, takes: Duration) -> BusyMember {
    let (counts, replayed) = (Arc::<Mutex<SenderCounts>>::default(), Arc::<AtomicU64>::default());
    let never = AtomicBool::new(false);
    let options = StartOptions {
        node,
        root: root.clone(),
        device: DeviceOptions::default(),
        listener: None,
        time_limit: LONG,
        cancel: &never,
        settings: Settings::default(),
        forming: Forming { new_group: true, ..Forming::default() },
        ..StartOptions::new(node)
    };
    let application =
        CountingApplication { counts: Arc::clone(&counts), replayed: Arc::clone(&replayed), takes };
    let running = start(description.clone(), options, application);
    BusyMember {
        running: running.unwrap_or_else(|error| panic!("node {node}: {error}")),
        counts,
        replayed,
    }
}

/// Tells the senders to stop when it is dropped, also by a failed test.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends as fast as possible until told to stop. Returns the number of messages.
fn send_on(mut sender: Sender, is_over: &AtomicBool) -> u64 {
    let mut message = [7; MESSAGE_BYTES];
    let mut number: u64 = 0;
    while !is_over.load(Ordering::Relaxed) {
        message[..8].copy_from_slice(&number.to_le_bytes());
        sender.send(&message, LONG).expect("it is sent");
        number += 1;
    }
    number
}

#[test]
fn slow_node_joins_busy_group() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let root = Root::under(folder.path());
    let mut description = Description::local("busy", 3, 100, MESSAGE_BYTES as u32);
    description.initial = vec![0, 1];
    description.failure_timeout_ms = 10_000;
    let is_over = AtomicBool::new(false);
    let members: Vec<BusyMember> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..2)
            .map(|node| {
                scope.spawn({
                    let (description, root) = (&description, &root);
                    move || join(description, root, node, Duration::ZERO)
                })
            })
            .collect();
        starting.into_iter().map(|starting| starting.join().expect("it starts")).collect()
    });
    let (sent, last) = std::thread::scope(|scope| {
        let sending: Vec<_> = members
            .iter()
            .map(|member| {
                let (sender, is_over) =
                    (member.running.sender_of(GROUP).expect("it sends"), &is_over);
                scope.spawn(move || send_on(sender, is_over))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(100));
        let stop = StopOnDrop(&is_over);
        let last = join(&description, &root, 2, Duration::from_micros(100));
        drop(stop);
        let sent: Vec<u64> =
            sending.into_iter().map(|sending| sending.join().expect("it sends")).collect();
        (sent, last)
    });
    println!("sent: {sent:?}; replayed: {}", last.replayed.load(Ordering::Relaxed));
    let all = [sent[0], sent[1], 0];
    for member in members.iter().chain([&last]) {
        let began = Instant::now();
        while *member.counts.lock().expect("nobody panics") != all {
            assert!(began.elapsed() < LONG, "{:?} of {all:?}", member.counts.lock());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
