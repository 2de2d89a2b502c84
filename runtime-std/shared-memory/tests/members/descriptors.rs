//! The handling of received descriptors, and of changes to the group's folder.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::support::descriptors::{
    BELL_SEALS, HEADER, SEALS, Said, memory, row_file_bytes, send, send_bytes, signed,
};
use crate::support::views::{GROUP, Resident, bytes, claim, layout_of, layout_with, see, store};
use crate::support::{RoleProcess, SharedFolder, role, say, wait_for_release};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use tramontane_core::fabric::{Event, Fabric as _, HostFabric as _, LossCause};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::Layout;
use tramontane_shared_memory::{Error, Root};

/// Returns the memory files that this process has open, its own and its peers'.
fn memory_files() -> Vec<File> {
    let open = std::fs::read_dir("/proc/self/fd").expect("a folder").flatten();
    let is_memory = |path: &PathBuf| {
        std::fs::read_link(path)
            .is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:tramontane"))
    };
    // Opens received memory as a peer does, but also for writing.
    let reopen = |path: PathBuf| OpenOptions::new().read(true).write(true).open(path).ok();
    open.map(|entry| entry.path()).filter(is_memory).filter_map(reopen).collect()
}

fn group(place: &SharedFolder) -> PathBuf {
    place.root().path().join(GROUP)
}

/// Arguments: the folder. As node 2 of view 1, tries everything that would take its memory away
/// from others or change it, and continues.
#[test]
fn role_vandal() {
    let Some(arguments) = role() else { return };
    let mut vandal = Resident::new(&Root::under(Path::new(&arguments[0])), 2, 200);
    let own = vandal.open(1, &[1, 2]).expect("it opens");
    vandal.await_ready(1, 0);
    store(&own, 8, 5);
    say("READY");
    let files = memory_files();
    let (mut kept, mut bells) = (0, 0);
    for file in &files {
        let length = file.metadata().expect("its length").len();
        for to in [0, 1, length + 4096] {
            assert_eq!(ftruncate(file, to), Err(Errno::PERM), "of {length}");
        }
        // A doorbell is one page that all members may write.
        if length == 4096 {
            file.write_at(&[0xff; 4096], 0).expect("rubbish");
            bells += 1;
            continue;
        }
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        assert_eq!(fallocate(file, punch, 0, 4096), Err(Errno::PERM));
        assert!(file.write_at(&[0xff; 64], 0).is_err());
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, and refuses.
        let mapped = unsafe { mmap(std::ptr::null_mut(), 4096, access, MapFlags::SHARED, file, 0) };
        assert_eq!(mapped.err(), Some(Errno::PERM));
        kept += 1;
    }
    assert!(kept >= 2 && bells >= 1, "its own row and its peer's: {kept}, {bells}");
    say("TRIED");
    wait_for_release();
    std::process::exit(0);
}

#[test]
fn misused_descriptors_leave_memory_unchanged() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let memory = first.open(1, &[1, 2]).expect("it opens");
    store(&memory, 8, 7);
    let mut vandal =
        RoleProcess::start(module_path!(), "role_vandal", &place.path().display().to_string());
    first.await_ready(1, 1);
    vandal.expect("TRIED");
    assert_eq!((see(&memory, 0, 8), see(&memory, 1, 8)), (7, 5));
    // The vandal's write to the doorbell counts as a ring.
    assert!(first.fabric.poll().is_some());
    first.events();
    assert!(first.fabric.arm());
    first.fabric.disarm();
    assert!(vandal.wait().success());
    assert_eq!(bytes(&memory, 1).len(), layout_of(&[1, 2]).row_bytes(Rank(1)));
    assert!(first.fabric.check_peers(), "it has gone");
}

/// A node whose process is running, but sends nothing by itself.
struct Silent {
    place: SharedFolder,
    first: Resident,
    layout: Layout<'static>,
    said: Said,
}

impl Silent {
    fn new() -> Self {
        let place = SharedFolder::new();
        let mut first = Resident::new(&place.root(), 1, 100);
        let layout = layout_of(&[1, 2]);
        let number = layout.digest();
        let said = Said { node: 2, incarnation: 200, kind: 1, view: 1, number };
        first.open(1, &[1, 2]).map(drop).expect("it opens");
        Self { place, first, layout, said }
    }

    fn row(&self) -> Vec<u8> {
        let Said { node, incarnation, number, .. } = self.said;
        signed(node, incarnation, number, row_file_bytes(&self.layout, 1))
    }

    fn send(&self, said: Said, files: &[&OwnedFd]) {
        send(&group(&self.place), 1, said, files);
    }

    /// Returns whether node 2's row has been accepted.
    fn is_ready(&mut self) -> bool {
        self.first.fabric.check_peers();
        self.first.fabric.ready(ViewId(1), Rank(1))
    }
}

#[test]
fn only_sealed_rows_are_accepted() {
    let mut silent = Silent::new();
    let second = claim(&silent.place.root(), 2, 200).expect("its place");
    let (said, row) = (silent.said, silent.row());
    let bell = memory(&[0; 4096], BELL_SEALS);
    let sparse = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd");
    ftruncate(&sparse, row.len() as u64).expect("its length");
    rustix::io::pwrite(&sparse, &row[..64], 0).expect("a header");
    rustix::fs::fcntl_add_seals(&sparse, SEALS).expect("sealed");
    let file = File::create_new(silent.place.path().join("file")).expect("a file");
    file.write_all_at(&row, 0).expect("its content");
    let (pipe, _end) = std::io::pipe().expect("a pipe");
    let folder = File::open(silent.place.path()).expect("a folder");
    let good = memory(&row, SEALS);
    let lacking = |seal: SealFlags| memory(&row, SEALS - seal);
    let of =
        |node, incarnation, number| memory(&signed(node, incarnation, number, row.len()), SEALS);
    let refused: Vec<(&str, OwnedFd)> = vec![
        ("a file", file.into()),
        ("a pipe", pipe.into()),
        ("a folder", folder.into()),
        ("unsealed", memory(&row, SealFlags::empty())),
        ("it can be shortened", lacking(SealFlags::SHRINK)),
        ("it can be made longer", lacking(SealFlags::GROW)),
        ("it can be written", lacking(SealFlags::FUTURE_WRITE)),
        ("it can be sealed further", lacking(SealFlags::SEAL)),
        ("not allocated", sparse),
        ("too short for a header", memory(&row[..64], SEALS)),
        ("too short", memory(&row[..HEADER], SEALS)),
        ("too long", memory(&[&row[..], &[0; 4096]].concat(), SEALS)),
        ("without a header", memory(&vec![0xff; row.len()], SEALS)),
        ("another node's", of(1, 200, said.number)),
        ("an earlier start's", of(2, 199, said.number)),
        ("for another layout", of(2, 200, said.number + 1)),
    ];
    for (what, row) in &refused {
        silent.send(said, &[row, &bell]);
        assert!(!silent.is_ready(), "{what}");
    }
    for (what, said, files) in [
        ("no descriptor", said, vec![]),
        ("no doorbell", said, vec![&good]),
        ("another kind", Said { kind: 3, ..said }, vec![&good, &bell]),
        ("block memory", Said { kind: 2, ..said }, vec![&good]),
        ("a node that is not there", Said { node: 3, ..said }, vec![&good, &bell]),
        ("an earlier start", Said { incarnation: 199, ..said }, vec![&good, &bell]),
        ("another view", Said { view: 2, ..said }, vec![&good, &bell]),
        ("another layout", Said { number: 5, ..said }, vec![&good, &bell]),
    ] {
        silent.send(said, &files);
        assert!(!silent.is_ready(), "{what}");
    }
    for bytes in [&[][..], &[1, 2, 3], &[0xff; 48], &[0; 4096]] {
        send_bytes(&group(&silent.place), 1, bytes, &[&good, &bell]);
        assert!(!silent.is_ready());
    }
    silent.send(said, &[&good, &bell]);
    assert!(silent.is_ready(), "this is what a member sends");
    drop(second);
}

#[test]
fn row_with_an_unsealed_doorbell_is_refused() {
    let mut silent = Silent::new();
    let second = claim(&silent.place.root(), 2, 200).expect("its place");
    let (said, good) = (silent.said, memory(&silent.row(), SEALS));
    for (what, bell) in [
        ("unsealed", memory(&[0; 4096], SealFlags::empty())),
        ("it can be shortened", memory(&[0; 4096], BELL_SEALS - SealFlags::SHRINK)),
        ("too short", memory(&[0; 8], BELL_SEALS)),
    ] {
        silent.send(said, &[&good, &bell]);
        assert!(!silent.is_ready(), "{what}");
    }
    drop(second);
}

#[test]
fn hostile_messages_cost_bounded_descriptors() {
    let mut silent = Silent::new();
    let second = claim(&silent.place.root(), 2, 200).expect("its place");
    let bell = memory(&[0; 4096], BELL_SEALS);
    let open = || std::fs::read_dir("/proc/self/fd").expect("a folder").count();
    let before = open();
    for view in 0..1000 {
        let said = Said { view: 1000 + view, number: view, ..silent.said };
        let row = memory(&signed(2, 200, view, 2 * HEADER), SEALS);
        silent.send(said, &[&row, &bell]);
        silent.first.fabric.check_peers();
    }
    // Other tests of this program also open files: one has 120 views at a time, each with four
    // files.
    let grown = open().saturating_sub(before);
    assert!(grown < 800, "{grown} more are open");
    drop(second);
}

/// Everything in the folder is truncated, overwritten or removed while two members run.
#[test]
fn damage_to_folder_kills_no_member() {
    for what in ["cut off", "overwritten", "removed"] {
        let place = SharedFolder::new();
        let mut first = Resident::new(&place.root(), 1, 100);
        let mut second = Resident::new(&place.root(), 2, 200);
        let one = first.open(1, &[1, 2]).expect("it opens");
        let two = second.open(1, &[1, 2]).expect("it opens");
        first.await_ready(1, 1);
        second.await_ready(1, 0);
        for entry in std::fs::read_dir(group(&place)).expect("a folder").flatten() {
            let is_file = entry.file_type().expect("its type").is_file();
            match what {
                "removed" => std::fs::remove_file(entry.path()).expect("removed"),
                _ if !is_file => {}
                "cut off" => {
                    let file = OpenOptions::new().write(true).open(entry.path());
                    file.and_then(|file| file.set_len(0)).expect("its owner may");
                }
                _ => std::fs::write(entry.path(), [0xff; 4096]).expect("its owner may"),
            }
        }
        assert!(!first.fabric.check_peers() || what == "overwritten", "{what}");
        store(&one, 8, 5);
        store(&two, 8, 6);
        assert_eq!((see(&two, 0, 8), see(&one, 1, 8)), (5, 6), "{what}: the view goes on");
        // The contents of a damaged file mean failure at most, but a released lock does mean
        // failure.
        drop((two, second));
        first.fabric.check_peers();
        let lost = Event::PeerLost { view: ViewId(1), peer: Rank(1), cause: LossCause::Exited };
        assert!(first.events().contains(&lost), "{what}");
        // A starting process cannot find a missing file, and does not mistake garbage for a live
        // member.
        drop((one, first));
        drop(Resident::new(&place.root(), 2, 201));
    }
}

/// Arguments: the folder. Holds a row of 32 MiB, and waits to be killed.
#[test]
fn role_holder() {
    let Some(arguments) = role() else { return };
    let mut holder = Resident::new(&Root::under(Path::new(&arguments[0])), 2, 200);
    let layout = layout_with(&[2], 32, 1 << 20);
    let memory = holder.make(1, &layout, Rank(0)).expect("memory");
    holder.open_on(1, &memory).expect("it opens");
    say("HOLDS");
    std::thread::park();
}

/// Returns the bytes of shared memory on this machine.
fn shared_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("/proc");
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:")).expect("shared memory");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") * 1024
}

#[test]
fn killed_member_leaves_no_memory() {
    let place = SharedFolder::new();
    let mut holder =
        RoleProcess::start(module_path!(), "role_holder", &place.path().display().to_string());
    holder.expect("HOLDS");
    holder.kill();
    // The memory has no name left by which it could be found, so the kernel has freed it.
    let stale = place.contents();
    for path in stale.iter().filter(|path| path.is_file()) {
        assert!(path.metadata().expect("its length").len() <= 4096, "{}", path.display());
    }
    println!("{} bytes of shared memory on this machine", shared_bytes());
    let mut again = Resident::new(&place.root(), 2, 201);
    let memory = again.open(2, &[2]).expect("it opens");
    assert!(bytes(&memory, 0).iter().all(|byte| *byte == 0));
    drop((memory, again));
    place.assert_empty();
}

/// Arguments: the folder. May not allocate memory of more than one MiB, and reports the result for
/// a larger row.
#[test]
fn role_limited() {
    let Some(arguments) = role() else { return };
    // The signal would end the process, so the process that starts this one ignores it.
    let limit = rustix::process::Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).expect("a limit");
    let mut member = Resident::new(&Root::under(Path::new(&arguments[0])), 1, 100);
    let old = member.open(1, &[1]).expect("it opens");
    let layout = layout_with(&[1], 8, 200_000);
    let error = member.make(2, &layout, Rank(0)).expect_err("1.6 MB");
    let Error::NoMemory { needed, free } = &error else { panic!("{error}") };
    assert!(*needed > 1_600_000 && *free <= 1 << 20, "{error}");
    assert!(error.to_string().contains("not enough shared memory"), "{error}");
    store(&old, 8, 5);
    assert_eq!(see(&old, 0, 8), 5);
    let fits = member.make(2, &layout_with(&[1], 8, 50_000), Rank(0)).expect("0.4 MB");
    member.open_on(2, &fits).expect("the view was not taken");
    say("GOES ON");
}

/// Covers what the check in advance cannot see: the allocation itself fails.
#[test]
fn failed_allocation_leaves_old_view_running() {
    let place = SharedFolder::new();
    let mut limited = RoleProcess::start_after(
        "trap '' XFSZ",
        module_path!(),
        "role_limited",
        &place.path().display().to_string(),
    );
    limited.expect("GOES ON");
    assert!(limited.wait().success());
    place.assert_empty();
}

#[test]
fn node_with_mismatched_description_is_ignored() {
    let mut silent = Silent::new();
    let root = silent.place.root();
    let never = std::sync::atomic::AtomicBool::new(false);
    let limit = crate::support::LONG;
    let name = crate::support::name(GROUP);
    let other = crate::support::views::DESCRIPTION + 1;
    let _second = tramontane_shared_memory::Residence::claim(
        &root,
        &name,
        NodeId(2),
        other,
        200,
        limit,
        &never,
    )
    .expect("its place");
    let bell = memory(&[0; 4096], BELL_SEALS);
    silent.send(silent.said, &[&memory(&silent.row(), SEALS), &bell]);
    assert!(!silent.is_ready());
}
