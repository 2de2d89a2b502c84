//! Attacks by a sender that is a member but sends entries that no correct sender packs. Existing
//! files at a receiver must stay unchanged, and nothing from the copy may be kept. Each archive is
//! built by hand, and reaches the receiver by the normal path.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tar::{EntryType, Header};

use super::entries::HEADERS_MAX;
use super::group::Job;
use super::ledger::CopyLedger;
use super::member::CopyMember;
use super::messages::{CopyMessage, Manifest};
use super::place::{TargetDirectory, UNPACKED};
use super::receiving::{ReceiverResult, receive};
use super::stream::Outgoing;
use super::victim::{Victim, entry, header};
use tramontane_local::exit::Failure;

fn file(path: &str) -> Vec<u8> {
    entry(EntryType::Regular, path, 0o644, "", b"content")
}

fn directory(path: &str) -> Vec<u8> {
    entry(EntryType::Directory, path, 0o777, "", b"")
}

fn link(path: &str, to: &str) -> Vec<u8> {
    entry(EntryType::Symlink, path, 0o777, to, b"")
}

impl Victim {
    fn job(&self, own: u32) -> Job {
        Job::of_threads(self.folder(), 1, own)
    }

    /// Runs a receiver with a manifest and an archive from a sender that always reports success,
    /// and returns the receiver's result.
    fn attacked_with(&self, names: &[&str], archive: &[u8]) -> Result<ReceiverResult, Failure> {
        std::thread::scope(|scope| {
            scope.spawn(|| send(self.job(0), names, archive));
            receive(&mut self.job(1), &self.to(), &AtomicBool::new(false))
        })
    }
}

fn send(mut job: Job, names: &[&str], archive: &[u8]) {
    let member = CopyMember::start(&mut job, None, &AtomicBool::new(false)).expect("they meet");
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    for notice in CopyMessage::of_manifest(&Manifest { names, bytes: 0 }, job.terms()) {
        member.announce(&notice, || Ok(())).expect("it goes");
    }
    let (data, watched) = (member.data().expect("it sends"), member.watched());
    let mut stream = Outgoing::new(data, watched, Arc::default(), Arc::default());
    let sent = std::io::Write::write_all(&mut stream, archive).and_then(|()| stream.finish());
    // A receiver that has stopped midway takes no more chunks.
    if let Ok(sum) = sent {
        // The sender continues in any case, but first waits for messages from the others, because
        // its own exit would stop the copy.
        let is_heard = |ledger: &CopyLedger| ledger.are_ready() || ledger.decision().is_some();
        let _ = member.wait_until(is_heard, |_| Ok(()));
        let _ = member.announce(&CopyMessage::Commit(sum), || Ok(()));
        let _ = member.wait_until(|ledger| ledger.are_others_finished(0), |_| Ok(()));
    }
    member.finish();
}

#[test]
fn archive_entries_named_in_manifest_arrive() {
    let victim = Victim::new();
    let archive =
        [directory("tree/"), link("tree/link", "../private"), file("tree/file"), vec![0; 1024]]
            .concat();
    let received = victim.attacked_with(&["tree"], &archive).expect("nothing is wrong with it");
    assert_eq!(received.files, 2);
    assert_eq!(fs::read(victim.to().join("tree/file")).expect("a file"), b"content");
}

/// An attack: its description, the announced names, and the entries.
type Attack = (&'static str, &'static [&'static str], Vec<Vec<u8>>);

#[test]
fn hostile_archives_change_no_existing_file() {
    let long = "x".repeat(5000);
    let mut wrong_size = header(EntryType::Regular, "file", 0o644, "", 0);
    // The size is a 64-bit number in binary form.
    wrong_size[124..136]
        .copy_from_slice(&[0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    let mut sparse = header(EntryType::GNUSparse, "file", 0o644, "", 512);
    sparse[386..398].copy_from_slice(&[0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]);
    sparse[398..410].copy_from_slice(b"00000001000\0");
    for header in [&mut wrong_size, &mut sparse] {
        let mut sum = Header::new_gnu();
        sum.as_mut_bytes().copy_from_slice(header);
        sum.set_cksum();
        header.copy_from_slice(sum.as_bytes());
    }
    let attacks: Vec<Attack> = vec![
        ("the mode of what is there", &["file"], vec![directory("private/"), file("file")]),
        ("the mode of the place", &["file"], vec![directory("./"), file("file")]),
        ("the mode of the place, without a name", &["file"], vec![directory("/"), file("file")]),
        ("a file that is not announced", &["file"], vec![file("file"), file("other")]),
        ("a way out", &["file"], vec![file("file"), file("../outside/new")]),
        (
            "a way out below a name",
            &["tree"],
            vec![directory("tree/"), file("tree/../private/new")],
        ),
        ("a name from the root", &["file"], vec![file("/dev/shm/tramontane-hostile")]),
        ("a name through a link that is there", &["file"], vec![file("leads-out/new")]),
        (
            "a name through a link that came",
            &["tree"],
            vec![directory("tree/"), link("tree/l", "../../../outside"), file("tree/l/new")],
        ),
        (
            "the mode of what a link leads to",
            &["tree"],
            vec![directory("tree/"), link("tree/l", "../../private"), directory("tree/l")],
        ),
        (
            "a link in place of a directory",
            &["tree"],
            vec![directory("tree/"), link("tree", "private")],
        ),
        (
            "another name of a file that is there",
            &["file"],
            vec![entry(EntryType::Link, "file", 0o777, "../private/secret", b"")],
        ),
        ("a device", &["file"], vec![entry(EntryType::Char, "file", 0o666, "", b"")]),
        ("a pipe", &["file"], vec![entry(EntryType::Fifo, "file", 0o666, "", b"")]),
        ("a name that is announced twice", &["file", "file"], vec![file("file")]),
        ("a name that is there", &["private"], vec![directory("private/")]),
        ("a link that is there", &["leads-out"], vec![directory("leads-out/")]),
        ("a name that is a way", &["private/new"], vec![file("private/new")]),
        ("the name of all directories", &[".."], vec![directory("../")]),
        ("the place itself", &["."], vec![directory("./")]),
        ("no name", &[""], vec![file("file")]),
        ("a name with an end in it", &["file\0"], vec![file("file")]),
        ("where it is unpacked", &[UNPACKED], vec![directory(UNPACKED)]),
        ("a name that does not come", &["file", "lacks"], vec![file("file")]),
        (
            "a name that is too long for any system",
            &["file"],
            vec![
                entry(EntryType::GNULongName, "././@LongLink", 0, "", long.as_bytes()),
                file("file"),
            ],
        ),
        (
            "a way out in a further header",
            &["file"],
            vec![
                entry(EntryType::XHeader, "pax", 0, "", b"23 path=../outside/new\n"),
                file("file"),
            ],
        ),
        ("a size that is no size", &["file"], vec![wrong_size, vec![7; 4096]]),
        ("a hole as long as a header can hold", &["file"], vec![sparse, vec![7; 512]]),
        (
            "an end in the middle of a file",
            &["file"],
            vec![header(EntryType::Regular, "file", 0o644, "", 9000)],
        ),
        ("no archive", &["file"], vec![vec![0x1b; 2048]]),
    ];
    for (what, names, entries) in attacks {
        let victim = Victim::new();
        let before = victim.seen();
        let is_to_end = what != "an end in the middle of a file";
        let archive = [entries.concat(), vec![0; if is_to_end { 1024 } else { 0 }]].concat();
        let told = victim.attacked_with(names, &archive);
        println!("{what}: {told:?}");
        victim.assert_unchanged(&before, &[]);
        let failure = told.expect_err(what);
        assert!(!failure.text().contains(char::is_control), "{what}: {}", failure.text());
    }
}

/// An endless name is refused long before it fills the memory.
#[test]
fn endless_file_name_uses_little_memory() {
    let victim = Victim::new();
    let mut place = TargetDirectory::take(&victim.to()).expect("a place");
    place.expect(&Manifest { names: vec!["file".into()], bytes: 0 }).expect("nothing is there");
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let mut read = 0;
        let endless =
            Counted { bytes: header(kind, "././@LongLink", 0, "", 1_500_000_000), read: &mut read };
        let failure = place.unpack(endless).expect_err("too long");
        assert!(failure.text().contains("too long"), "{}", failure.text());
        assert!(read <= HEADERS_MAX, "{read} bytes of {kind:?}");
    }
}

/// Some bytes, followed by endless repetitions of other bytes.
struct Counted<'c> {
    bytes: Vec<u8>,
    read: &'c mut u64,
}

impl std::io::Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        into.fill(b'x');
        let count = self.bytes.len().min(into.len());
        for (place, byte) in into.iter_mut().zip(self.bytes.drain(..count)) {
            *place = byte;
        }
        *self.read += into.len() as u64;
        Ok(into.len())
    }
}

#[test]
fn unpacked_files_are_private_until_moved() {
    let victim = Victim::new();
    let place = TargetDirectory::take(&victim.to()).expect("a place");
    let mode = fs::metadata(victim.to().join(UNPACKED)).expect("it is there").mode();
    assert_eq!(mode & 0o7777, 0o700);
    drop(place);
}
