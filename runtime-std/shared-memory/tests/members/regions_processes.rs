//! Regions with real processes: a writer that is killed, one that is denied, and the memory that
//! views leave behind.
//!
//! A "role" is a test that does nothing unless the program was started again to play it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric as _, HostFabric as _, HostRegions as _, Kind, LossCause,
    PermissionEvent, Permissions as _, Region, RegionMemory as _, Token, ViewPlan, ViewRows as _,
    Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{Mappings, Residence, Root, SharedMemory, SharedRegionMemory};

use crate::support::{LONG, NEVER, RoleProcess, SharedFolder, name, role, say, wait_for_release};

const LOG: Region = Region(1);
const LOG_BYTES: usize = 1 << 16;

/// The size of an entry, in bytes. Entries are contiguous, and each is a payload filled with one
/// number, followed by that number.
const ENTRY_BYTES: usize = 256;
const ENTRIES: u64 = LOG_BYTES as u64 / ENTRY_BYTES as u64;

/// A process of the group, with its log.
struct LogProcess {
    fabric: SharedMemory,
    log: SharedRegionMemory,
}

impl LogProcess {
    fn new(root: &Root, node: u32, incarnation: u64) -> Self {
        let claimed =
            Residence::claim(root, &name("logs"), NodeId(node), 3, incarnation, LONG, &NEVER);
        let mut fabric = SharedMemory::for_residence(&Arc::new(claimed.expect("its place")));
        let log = fabric.region(LOG, LOG_BYTES).expect("memory");
        Self { fabric, log }
    }

    /// Opens a view of nodes 1 and 2.
    fn open(&mut self, view: u64, own: u16) -> Mappings {
        let members = [NodeId(1), NodeId(2)];
        let plan = ViewPlan::with_sizes(ViewId(view), Rank(own), &members, &[64, 64], view);
        let rows = self.fabric.rows(&plan).expect("memory");
        self.fabric.open(ViewId(view), &rows.memory()).expect("it opens");
        rows
    }

    /// Polls until the condition is true, and returns all events up to then.
    #[track_caller]
    fn await_that(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) -> Vec<Event> {
        let (started, mut events) = (Instant::now(), Vec::new());
        while !is_so(self) {
            events.extend(std::iter::from_fn(|| self.fabric.poll()));
            self.fabric.check_peers();
            assert!(started.elapsed() < LONG, "it never is");
            std::thread::yield_now();
        }
        events.extend(std::iter::from_fn(|| self.fabric.poll()));
        events
    }

    fn cell(&self, offset: usize) -> u64 {
        self.log.writer().reader().cell(offset).expect("a cell").load()
    }

    /// Returns the number after an entry.
    fn guard(&self, number: u64) -> u64 {
        self.cell(place(number) + ENTRY_BYTES - 8)
    }

    /// Checks that every entry whose guard is present is complete, and returns the last number.
    #[track_caller]
    fn check_log(&self) -> u64 {
        let mut last = 0;
        for entry in 0..ENTRIES {
            let guard = self.guard(entry);
            let mut payload = vec![0; ENTRY_BYTES - 8];
            self.log.writer().reader().read(place(entry), &mut payload).expect("inside");
            // A later round may have begun to overwrite the entry.
            let later = (guard + ENTRIES) as u8;
            let is_whole = payload.iter().all(|byte| *byte == guard as u8 || *byte == later);
            assert!(guard == 0 || is_whole, "entry {guard} is torn: {payload:?}");
            last = last.max(guard);
        }
        // Entries are in order: below the last number, none is missing.
        for number in last.saturating_sub(ENTRIES - 2).max(1)..=last {
            assert_eq!(self.guard(number), number, "a gap below {last}");
        }
        last
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number % ENTRIES).expect("small") * ENTRY_BYTES
}

/// Returns the list of an entry: content, then its guard.
fn entry(number: u64) -> [Write; 2] {
    let area = |offset| Area { region: LOG, offset: place(number) + offset };
    let write =
        |offset, length, kind| Write { source: area(offset), target: area(offset), length, kind };
    let payload = ENTRY_BYTES - 8;
    [write(0, payload, Kind::Content), write(payload, 8, Kind::Guard)]
}

/// Arguments: the folder, the incarnation, the view. As node 2, posts entries to node 1's log,
/// starting at 1, as fast as they are taken, until it is released. Prints the events about its
/// right.
#[test]
fn role_writer() {
    let Some(arguments) = role() else { return };
    let [folder, incarnation, view] = arguments.as_slice() else { panic!("three arguments") };
    let view: u64 = view.parse().expect("a number");
    let root = Root::under(Path::new(folder));
    let mut writer = LogProcess::new(&root, 2, incarnation.parse().expect("a number"));
    let _rows = writer.open(view, 1);
    writer.await_that(|writer| writer.fabric.ready(ViewId(view), Rank(0)));
    let (mut number, mut completed) = (1, 0);
    std::thread::scope(|scope| {
        let released = scope.spawn(wait_for_release);
        while !released.is_finished() {
            while let Some(event) = writer.fabric.poll() {
                if let Event::Completed(Token(token)) = event {
                    assert_eq!(token, completed + 1, "in order, and none is left out");
                    completed = token;
                }
            }
            while let Some(event) = writer.fabric.poll_permission() {
                match event {
                    PermissionEvent::Denied { .. } => {
                        say(&format!("DENIED {completed}"));
                        number = completed + 1;
                    }
                    PermissionEvent::Restored { .. } => say("RESTORED"),
                }
            }
            // Source memory changes only after the posts from it have completed.
            if number > completed + ENTRIES / 2 {
                std::thread::yield_now();
                continue;
            }
            let memory = writer.log.writer();
            memory.apply(place(number), &[number as u8; ENTRY_BYTES - 8]).expect("inside");
            let guard = memory.cell(place(number) + ENTRY_BYTES - 8).expect("a cell");
            guard.publish(number);
            let posted =
                writer.fabric.post(ViewId(view), Rank(0), &entry(number), Some(Token(number)));
            match posted {
                Ok(()) => number += 1,
                Err(ErrorKind::QueueFull | ErrorKind::Revoked) => std::thread::yield_now(),
                Err(kind) => panic!("{kind}"),
            }
        }
        say(&format!("COMPLETED {completed}"));
    });
}

fn start_writer(place: &SharedFolder, incarnation: u64, view: u64) -> RoleProcess {
    let arguments = format!("{} {incarnation} {view}", place.path().display());
    RoleProcess::start(module_path!(), "role_writer", &arguments)
}

#[test]
fn killed_writer_never_leaves_a_partial_entry() {
    let place = SharedFolder::new();
    let mut owner = LogProcess::new(&place.root(), 1, 100);
    for view in 1..=4_u64 {
        let _rows = owner.open(view, 0);
        let mut writer = start_writer(&place, 200 + view, view);
        let (id, peer) = (ViewId(view), Rank(1));
        owner.await_that(|owner| owner.fabric.ready(id, peer));
        assert!(!owner.fabric.may_write(id, peer, LOG), "a new view gives no right");
        owner.fabric.grant(id, peer, LOG).expect("it is there");
        owner.await_that(|owner| owner.check_log() >= 3 * ENTRIES);
        // The writer is killed with entries in flight. This process takes either some of them or
        // none.
        writer.kill();
        if view % 2 == 0 {
            owner.fabric.poll();
        }
        let last = owner.check_log();
        let revoked = owner.fabric.revoke(id, peer, LOG);
        assert!(matches!(revoked, Ok(()) | Err(ErrorKind::PeerLost)), "{revoked:?}");
        let events = owner.await_that(|owner| owner.fabric.grant(id, peer, LOG).is_err());
        assert_eq!(owner.check_log(), last, "nothing lands once the right is gone");
        let lost = Event::PeerLost { view: id, peer, cause: LossCause::Exited };
        assert!(events.contains(&lost), "{events:?}");
        assert!(owner.fabric.retire(id));
        owner.log.writer().apply(0, &[0; LOG_BYTES]).expect("all of it");
    }
    drop(owner);
    place.assert_empty();
}

#[test]
fn denied_writer_cannot_change_region() {
    let place = SharedFolder::new();
    let mut owner = LogProcess::new(&place.root(), 1, 100);
    let _rows = owner.open(7, 0);
    let mut writer = start_writer(&place, 200, 7);
    let (id, peer) = (ViewId(7), Rank(1));
    owner.await_that(|owner| owner.fabric.ready(id, peer));
    owner.fabric.grant(id, peer, LOG).expect("it is there");
    let mut reached = owner.check_log();
    for _ in 0..20 {
        owner.await_that(|owner| owner.check_log() > reached + 10);
        // The writer continues, but its posts are not taken.
        std::thread::sleep(Duration::from_millis(2));
        owner.fabric.revoke(id, peer, LOG).expect("it is there");
        let last = owner.check_log();
        // While this process polls, the lists in flight arrive and are denied.
        for _ in 0..200 {
            owner.fabric.poll();
            std::thread::yield_now();
        }
        assert_eq!(owner.check_log(), last, "nothing lands once the right is gone");
        owner.fabric.grant(id, peer, LOG).expect("it is there");
        reached = last;
    }
    owner.await_that(|owner| owner.check_log() > reached + 10);
    writer.release();
    writer.expect("DENIED");
    writer.expect("RESTORED");
    let completed = writer.expect("COMPLETED").parse::<u64>().expect("a number");
    assert!(completed >= reached, "{completed} of {reached}");
    assert!(writer.wait().success());
}

/// Runs in a separate process, in which no other test opens files. Prints the numbers of mappings
/// and descriptors after a few views and after many, each of which writes to a region.
#[test]
fn role_views() {
    let Some(arguments) = role() else { return };
    let root = Root::under(Path::new(&arguments[0]));
    let mut members = [LogProcess::new(&root, 1, 1), LogProcess::new(&root, 2, 2)];
    let mut counts = Vec::new();
    for view in 1..=120_u64 {
        let (id, number) = (ViewId(view.wrapping_mul(0x9e37_79b9) % 4096), view);
        let _rows: Vec<Mappings> =
            (0..).zip(&mut members).map(|(own, member)| member.open(id.0, own)).collect();
        let [owner, writer] = &mut members;
        owner.await_that(|owner| owner.fabric.ready(id, Rank(1)));
        writer.await_that(|writer| writer.fabric.ready(id, Rank(0)));
        owner.fabric.grant(id, Rank(1), LOG).expect("it is there");
        writer.log.writer().cell(place(number)).expect("a cell").publish(number);
        let area = Area { region: LOG, offset: place(number) };
        let write = [Write { source: area, target: area, length: 8, kind: Kind::Guard }];
        writer.await_that(|writer| writer.fabric.post(id, Rank(0), &write, None).is_ok());
        owner.await_that(|owner| owner.cell(place(number)) == number);
        assert!(owner.fabric.retire(id) && writer.fabric.retire(id));
        counts.push(count_memory());
    }
    say(&format!("COUNTS {:?} {:?}", counts[9], counts[119]));
}

/// Counts mappings and descriptors of this process's memory.
fn count_memory() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let maps = maps.lines().filter(|line| line.contains("/memfd:tramontane")).count();
    let files = std::fs::read_dir("/proc/self/fd").expect("a folder").flatten();
    let is_memory = |entry: &std::fs::DirEntry| {
        let path = std::fs::read_link(entry.path());
        path.is_ok_and(|path| path.to_string_lossy().starts_with("/memfd:tramontane"))
    };
    (maps, files.filter(is_memory).count())
}

#[test]
fn ended_views_leave_no_descriptor_or_mapping() {
    let place = SharedFolder::new();
    let mut role =
        RoleProcess::start(module_path!(), "role_views", &place.path().display().to_string());
    let counts = role.expect("COUNTS");
    let (early, late) = counts.split_once(") (").expect("two of them");
    assert_eq!(
        early.trim_start_matches('('),
        late.trim_end_matches(')'),
        "(mappings, descriptors) after view 10 and after view 120"
    );
    assert!(role.wait().success());
}
