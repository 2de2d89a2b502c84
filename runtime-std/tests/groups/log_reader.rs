//! A program reads its own member's log from any position while messages continue to arrive.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_client::{Members, Publisher, PublisherOptions};
use tramontane_core::ids::SubgroupId;
use tramontane_runtime::group::{
    ClientId, ControlEndpoints, Description, Forming, LogPart, LogReader, LogReaderError, Message,
    Messages, Running, StartOptions, start,
};
use tramontane_runtime::shared_memory::Root;

use crate::group_support::PATIENCE;

const GROUP: SubgroupId = SubgroupId(0);

/// All fields of a message.
type MessageFields = (u64, u64, u32, Option<ClientId>, Vec<u8>);

fn told(message: &Message<'_>) -> MessageFields {
    let Message { view, place, sender, client, payload, .. } = message;
    (view.get(), place.get(), sender.get(), *client, payload.to_vec())
}

/// A single member whose log keeps a bounded number of bytes, and what its application has
/// received.
struct Alone {
    folder: tempfile::TempDir,
    description: Description,
    running: Running,
    told: Arc<Mutex<Vec<MessageFields>>>,
}

impl Alone {
    fn new(clients: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut description = Description::local("reads", 1, 8, 256);
        (description.subgroups[0].logged, description.subgroups[0].clients) = (true, clients);
        let notes: Arc<Mutex<Vec<MessageFields>>> = Arc::default();
        let noted = Arc::clone(&notes);
        let application = move |messages: &mut Messages<'_, '_>| {
            noted.lock().expect("nobody panics").extend(messages.map(|message| told(&message)));
        };
        let options = StartOptions {
            root: Root::under(folder.path()),
            forming: Forming { new_group: true, ..Forming::default() },
            data: Some(folder.path().join("data")),
            data_keep_bytes: Some(100_000),
            ..StartOptions::new(0)
        };
        let running = start(description.clone(), options, application).expect("it starts");
        Self { folder, description, running, told: notes }
    }

    fn told(&self) -> Vec<MessageFields> {
        self.told.lock().expect("nobody panics").clone()
    }

    fn send(&self, count: usize) {
        let mut sender = self.running.sender_of(GROUP).expect("it sends");
        (0..count).for_each(|_| drop(sender.send(&[7; 200], PATIENCE).expect("it is sent")));
    }

    /// Makes a client connect, publish and leave. The control messages about the client are also in
    /// the log.
    fn publish(&self, count: usize) {
        let root = Root::under(self.folder.path());
        let endpoints = ControlEndpoints::of(&self.description, &root).expect("addresses");
        let members = Members::at(endpoints.addresses().cloned());
        let publisher = Publisher::open(members, PublisherOptions::default()).expect("it is taken");
        (0..count).for_each(|_| drop(publisher.publish(&[9; 50]).expect("it is taken")));
        publisher.wait(PATIENCE).expect("all is delivered");
    }

    fn reader(&self, from: u64) -> LogReader {
        self.running.log_reader(GROUP, from).expect("it is logged")
    }
}

/// Reads up to a position. Returns the number of positions that are no longer in the log, and the
/// messages.
fn read(reader: &mut LogReader, to: u64) -> (u64, Vec<MessageFields>) {
    let (until, mut gone, mut all) = (Instant::now() + PATIENCE, 0, Vec::new());
    while reader.next() < to {
        assert!(Instant::now() < until, "{reader:?} and not {to}");
        let place = reader.next();
        match reader.read_within(Duration::from_millis(50)).expect("the member runs") {
            Some(LogPart::Messages(first, messages)) => {
                assert_eq!(first, place);
                all.extend(messages.iter().map(|message| told(&message.message())));
            }
            Some(LogPart::Gap { from, to }) => {
                assert_eq!((from, to), (place, reader.next()));
                gone += to - from;
            }
            None => {}
        }
    }
    (gone, all)
}

/// Reads with and without clients. With clients, the log contains more than messages.
#[test]
fn log_reader_reports_discarded_positions() {
    for clients in [false, true] {
        let alone = Alone::new(clients);
        let publish = |count| if clients { alone.publish(count) } else { alone.send(count) };
        alone.send(30);
        publish(20);
        alone.send(30);
        publish(5);
        assert!(alone.running.settle(PATIENCE));
        let all = alone.told();
        assert_eq!(all.len(), 85);
        for first in [0, 1, 30, 47, 80, 84] {
            let mut reader = alone.reader(first);
            let (gone, read) = read(&mut reader, 85);
            assert_eq!((gone, &read[..]), (0, &all[usize::try_from(first).expect("few")..]));
            assert_eq!(reader.read_within(Duration::ZERO).expect("it runs"), None);
        }
        // Another reader continues with new messages in another thread.
        let mut present = alone.reader(85);
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| read(&mut present, 115));
            alone.send(10);
            publish(20);
            let (gone, read) = reading.join().expect("it reads");
            assert_eq!((gone, &read[..]), (0, &alone.told()[85..]));
        });
        // Waits until the log has discarded something.
        let until = Instant::now() + PATIENCE;
        let gap = loop {
            assert!(Instant::now() < until, "a snapshot lets records go");
            alone.send(100);
            match alone.reader(0).read_within(PATIENCE).expect("it runs") {
                Some(LogPart::Gap { to, .. }) => break to,
                part => assert!(part.is_some(), "there is something at once"),
            }
        };
        assert!(alone.running.settle(PATIENCE));
        let all = alone.told();
        let end = u64::try_from(all.len()).expect("few");
        let mut reader = alone.reader(3);
        let (gone, read) = read(&mut reader, end);
        assert!(gone >= gap - 3, "{gone} of {gap}");
        // The log may discard more in the meantime.
        let mut rest = all.iter();
        assert!(read.iter().all(|one| rest.any(|of| of == one)), "in their order");
        assert_eq!(gone + u64::try_from(read.len()).expect("few"), end - 3);
        drop(alone.running);
        let ended = reader.read_within(Duration::ZERO).expect_err("it has ended");
        assert!(matches!(ended, LogReaderError::Ended), "{ended}");
    }
}
