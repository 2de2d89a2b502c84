//! Replicas that save their logs: everything ends and starts again, and single disks are lost or
//! rolled back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tramontane_core::ids::{NodeId, ViewId};
use tramontane_log::{Batch, Identity, Log, Options, Record, SystemFolder};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::member::Stopped;
use tramontane_runtime::shards::{
    Client, Description, Destinations, Places, ReplicaId, StartError, StartOptions,
};

use crate::support::{
    Started, data_folder, durable_overlay, send, start_one, start_these, wait_until,
};

/// A durable overlay of which everything can end.
struct DurableOverlay {
    description: Description,
    places: Places,
    sent: usize,
}

impl DurableOverlay {
    fn new(carrier: Carrier, parents: &[Option<usize>], folder: &Path) -> Self {
        let description = durable_overlay(carrier, parents, folder);
        let places = Places::new(&description, description.overlay().expect("a tree"));
        Self { description, places, sent: 0 }
    }

    fn start(&self) -> Vec<Started> {
        start_these(&self.description, self.places.replicas())
    }

    fn client(&self) -> Client {
        let to = Destinations::default();
        Client::connect(&self.description, to, StartOptions::default()).expect("it connects")
    }

    fn send(&mut self, client: &mut Client, count: usize) {
        send(client, self.places.overlay().all(), self.sent, count);
        self.sent += count;
    }

    /// Checks that each replica has exactly what was sent, in this order.
    fn check(&self, started: &[Started]) {
        let expected: Vec<_> = (0..self.sent).map(|number| format!("message {number}")).collect();
        for one in started {
            wait_until("all is delivered", || one.keeper.len() >= self.sent);
            assert_eq!(one.keeper.payloads(), expected, "{:?}", one.id);
            assert_eq!(one.running.stopped(), None);
        }
    }

    /// Returns the folder of a replica.
    fn disk(&self, replica: ReplicaId) -> PathBuf {
        data_folder(&self.description).expect("it is durable").join(self.places.name(replica))
    }
}

fn end(started: Vec<Started>) {
    std::thread::scope(|scope| {
        for one in started {
            scope.spawn(|| assert_eq!(one.running.close(), Stopped::Closed));
        }
    });
}

fn survives_the_end_of_everything(carrier: Carrier) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = DurableOverlay::new(carrier, &[None, Some(0)], folder.path());
    let mut started = world.start();
    let mut staying = world.client();
    for round in 2..5 {
        world.send(&mut staying, 100);
        let mut leaving = world.client();
        world.send(&mut leaving, 10);
        drop(leaving);
        end(started);
        started = world.start();
        for one in &started {
            wait_until("it runs again", || one.running.status().incarnation == round);
        }
    }
    world.send(&mut staying, 100);
    world.check(&started);
    for one in &started {
        wait_until("all is saved", || {
            let status = one.running.status();
            status.saved == Some(status.tail) && status.tail > world.sent as u64
        });
    }
}

#[test]
fn everything_ends_and_continues_over_shared_memory() {
    survives_the_end_of_everything(Carrier::SharedMemory);
}

#[test]
fn everything_ends_and_continues_over_tcp() {
    survives_the_end_of_everything(Carrier::Tcp);
}

#[test]
fn everything_ends_and_continues_over_rdma() {
    survives_the_end_of_everything(Carrier::Verbs);
}

#[test]
fn replica_without_its_disk_returns() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = DurableOverlay::new(Carrier::SharedMemory, &[None], folder.path());
    let mut started = world.start();
    for lost in 0..3 {
        let mut client = world.client();
        world.send(&mut client, 100);
        end(started);
        let lost = world.places.replicas().nth(lost).expect("three");
        fs::remove_dir_all(world.disk(lost)).expect("it was there");
        started = world.start();
        let back = started.iter().find(|one| one.id == lost).expect("it started");
        wait_until("it counts again", || back.running.status().state.counts());
    }
    let mut client = world.client();
    world.send(&mut client, 100);
    world.check(&started);
}

fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).expect("a folder");
    files.map(|file| file.and_then(|file| file.metadata()).expect("a file").len()).sum()
}

/// The log on the disk of each replica stays short, because of its snapshots.
#[test]
fn snapshots_bound_logs_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = DurableOverlay::new(Carrier::SharedMemory, &[None], folder.path());
    world.description.log_entries = 64;
    let mut started = world.start();
    for _ in 0..2 {
        let mut client = world.client();
        world.send(&mut client, 8_000);
        for one in &started {
            let disk = world.disk(one.id);
            let state = one.keeper.len() as u64 * 40;
            wait_until("old records are discarded", || bytes_in(&disk) < 2 * state + (1 << 20));
        }
        end(started);
        started = world.start();
    }
    world.check(&started);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for file in fs::read_dir(from).expect("a folder") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("it is copied");
    }
}

/// A disk with the state before the last start is refused, because the others know that start.
#[test]
fn rolled_back_disk_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = DurableOverlay::new(Carrier::SharedMemory, &[None], folder.path());
    let started = world.start();
    let mut client = world.client();
    world.send(&mut client, 10);
    end(started);
    let rolled_back = world.places.replicas().next().expect("three");
    let (disk, earlier) = (world.disk(rolled_back), folder.path().join("earlier"));
    copy(&disk, &earlier);
    for _ in 0..2 {
        let started = world.start();
        world.send(&mut client, 10);
        end(started);
    }
    fs::remove_dir_all(&disk).expect("it was there");
    copy(&earlier, &disk);
    let mut started = world.start();
    let refused = started.remove(0);
    wait_until("it is refused", || refused.running.stopped().is_some());
    assert!(matches!(refused.running.stopped(), Some(Stopped::Outdated(_))));
    world.send(&mut client, 10);
    world.check(&started);
    drop(refused);
    fs::remove_dir_all(&disk).expect("it was there");
    started.push(start_one(&world.description, rolled_back).expect("it returns"));
    world.check(&started);
}

/// Waits until the others have saved what they have seen of a replica's disk.
fn wait_until_seen() {
    std::thread::sleep(Duration::from_millis(500));
}

/// A copy of the disk from the last run has the right incarnation, but the others have saved that
/// they had seen more. One of them suffices, so an older copy and one other replica never continue
/// without what all had.
fn older_disk_is_refused_after_restart(carrier: Carrier) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = DurableOverlay::new(carrier, &[None], folder.path());
    let mut started = world.start();
    let mut client = world.client();
    world.send(&mut client, 10);
    let ids: Vec<_> = world.places.replicas().collect();
    for (index, id) in ids.iter().enumerate() {
        let (disk, earlier) = (world.disk(*id), folder.path().join(format!("earlier-{index}")));
        copy(&disk, &earlier);
        world.send(&mut client, 10);
        wait_until("it has more", || started[index].keeper.len() >= world.sent);
        wait_until_seen();
        end(started);
        fs::remove_dir_all(&disk).expect("it was there");
        copy(&earlier, &disk);
        let (other, late) = (ids[(index + 1) % 3], ids[(index + 2) % 3]);
        started = start_these(&world.description, [*id, other]);
        let place = started.iter().position(|one| one.id == *id).expect("it started");
        let refused = started.remove(place);
        wait_until("it is refused", || refused.running.stopped().is_some());
        assert!(matches!(refused.running.stopped(), Some(Stopped::DiskOlder(_))));
        drop(refused);
        started.push(start_one(&world.description, late).expect("it starts"));
        world.send(&mut client, 10);
        fs::remove_dir_all(&disk).expect("it was there");
        started.push(start_one(&world.description, *id).expect("it returns"));
        started.sort_by_key(|one| one.id.rank);
        wait_until("it counts again", || started[index].running.status().state.counts());
        world.check(&started);
    }
}

#[test]
fn older_disk_is_refused_after_restart_over_shm() {
    older_disk_is_refused_after_restart(Carrier::SharedMemory);
}

#[test]
fn older_disk_is_refused_after_restart_over_tcp() {
    older_disk_is_refused_after_restart(Carrier::Tcp);
}

/// A copy of the disk from the last run has the right incarnation, but the others have seen more.
fn older_disk_is_refused(carrier: Carrier) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = DurableOverlay::new(carrier, &[None], folder.path());
    let mut started = world.start();
    let mut client = world.client();
    world.send(&mut client, 10);
    for index in 0..3 {
        wait_until("all is saved", || {
            let status = started[index].running.status();
            status.saved == Some(status.tail) && status.processed == status.tail
        });
        let id = started[index].id;
        let (disk, earlier) = (world.disk(id), folder.path().join(format!("earlier-{index}")));
        copy(&disk, &earlier);
        world.send(&mut client, 10);
        wait_until("it has more", || started[index].keeper.len() >= world.sent);
        // A leader shows what it has delivered with its heartbeats.
        std::thread::sleep(3 * Duration::from_millis(world.description.heartbeat_ms));
        end(vec![started.remove(index)]);
        fs::remove_dir_all(&disk).expect("it was there");
        copy(&earlier, &disk);
        let refused = start_one(&world.description, id).expect("it starts");
        wait_until("it is refused", || refused.running.stopped().is_some());
        assert!(matches!(refused.running.stopped(), Some(Stopped::DiskOlder(_))));
        drop(refused);
        world.send(&mut client, 10);
        fs::remove_dir_all(&disk).expect("it was there");
        started.insert(index, start_one(&world.description, id).expect("it returns"));
        wait_until("it counts again", || started[index].running.status().state.counts());
        world.check(&started);
    }
}

#[test]
fn older_disk_is_refused_over_shared_memory() {
    older_disk_is_refused(Carrier::SharedMemory);
}

#[test]
fn older_disk_is_refused_over_tcp() {
    older_disk_is_refused(Carrier::Tcp);
}

/// Makes a replica's disk that of a replica which returned without its memory, and which the others
/// had not admitted yet when it crashed.
fn make_returning(world: &DurableOverlay, id: ReplicaId) {
    const LOG_RECORD: u8 = 1;
    let layer = SystemFolder::create(world.disk(id)).expect("it is there");
    let identity =
        Identity { group: world.description.name.clone(), subgroup: world.places.name(id) };
    let (mut log, _) = Log::open(layer, &identity, Options::default()).expect("it is sound");
    let mut last = None;
    let mut records = log.records(log.first()).expect("it can be read");
    while let Some(record) = records.read_next() {
        let record = record.expect("it is sound");
        if record.bytes.first() == Some(&LOG_RECORD) {
            last = Some((record.place, record.bytes.to_vec()));
        }
    }
    drop(records);
    let (place, mut bytes) = last.expect("a record of the core's log");
    let flags = bytes.len() - 8;
    assert_eq!(bytes[flags..], 1_u64.to_le_bytes(), "it counts");
    bytes[flags..].fill(0);
    let mut batch = Batch::new();
    let (sequence, view, sender) = (log.end(), ViewId::ZERO, NodeId(0));
    let record = Record { sequence, view, place, sender, is_large: false, bytes: &bytes };
    batch.push(&record).expect("it is next");
    log.commit(&mut batch).expect("it is written");
}

/// Nobody can tell how much a replica that did not count lacks, so it does not help to form a
/// majority.
#[test]
fn returning_replica_does_not_replace_lost_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = DurableOverlay::new(Carrier::SharedMemory, &[None], folder.path());
    let started = world.start();
    let mut client = world.client();
    world.send(&mut client, 10);
    end(started);
    let [first, second, third] = world.places.replicas().collect::<Vec<_>>()[..] else {
        panic!("three");
    };
    make_returning(&world, first);
    fs::remove_dir_all(world.disk(second)).expect("it was there");
    std::thread::scope(|scope| {
        for lost in [first, second] {
            let description = &world.description;
            scope.spawn(move || {
                let started = start_one(description, lost);
                assert!(matches!(started, Err(StartError::GroupLost { .. })));
            });
        }
        let last = start_one(&world.description, third).expect("it has its disk");
        wait_until("it notices", || last.running.stopped().is_some());
        assert!(matches!(last.running.stopped(), Some(Stopped::GroupLost(_))));
    });
}
