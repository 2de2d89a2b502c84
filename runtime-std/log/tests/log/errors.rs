//! Errors in opening or writing a log. Each is reported in one line, and no durable record is lost.

use std::os::unix::fs::PermissionsExt as _;

use tramontane_log::power_loss::{Faults, PowerLossFolder};
use tramontane_log::{
    Batch, FORMAT_VERSION, FileLayer as _, Identity, LayerFile as _, LetGoError, Log, OpenLogError,
    Options, ReadError, Sequence, SystemFolder, WriteError,
};

use crate::support::{SMALL, check, commit, folder, identity, message, open, record};

fn one_line(error: &dyn std::error::Error) {
    let line = error.to_string();
    assert!(!line.contains('\n') && line.contains(';'), "{line}");
}

#[test]
fn full_disk_ends_log_without_losing_records() {
    let faults = Faults { capacity_bytes: Some(14 * 4096), ..Faults::default() };
    let full = PowerLossFolder::new(faults);
    let (mut log, _) = open(full.clone());
    let mut durable = 0;
    let error = loop {
        let mut batch = Batch::new();
        batch.push(&record(durable, &message(durable, 3000))).expect("in order");
        match log.commit(&mut batch) {
            Ok(end) => durable = end.0,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WriteError::NoSpace { .. }), "{error}");
    one_line(&error);
    assert!(durable > 2);
    assert!(matches!(log.set_values(&[]), Err(WriteError::Failed { .. })), "it goes on");
    drop(log);
    let (log, _) = open(full.after_power_loss(|| false, Faults::default()));
    assert_eq!((log.end().0, check(&log, 3000)), (durable, vec![]));
}

#[test]
fn failed_sync_is_never_treated_as_successful() {
    // The syncs of a new log: two copies of the metadata, twice.
    for failing_sync in 5..12 {
        let faults = Faults { failing_sync: Some(failing_sync), ..Faults::default() };
        let failing = PowerLossFolder::new(faults);
        let (mut log, _) = open(failing.clone());
        let mut durable = 0;
        let error = loop {
            let mut batch = Batch::new();
            batch.push(&record(durable, &message(durable, 2000))).expect("in order");
            match log.commit(&mut batch) {
                Ok(end) => durable = end.0,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, WriteError::Sync { .. }), "{error}");
        one_line(&error);
        assert_eq!(log.end().0, durable);
        let mut batch = Batch::new();
        batch.push(&record(durable, b"again")).expect("in order");
        assert!(matches!(log.commit(&mut batch), Err(WriteError::Failed { .. })));
        assert_eq!(durable, failing_sync - 5);
        drop(log);
        // The next process still reads data that is not on the disk. Once the log serves that data,
        // the data is durable.
        let next = failing.after_process_end(Faults::default());
        let (log, _) = open(next.clone());
        assert_eq!(log.end().0, durable + 1, "the system's memory has it");
        drop(log);
        let (log, _) = open(next.after_power_loss(|| false, Faults::default()));
        assert_eq!((log.end().0, check(&log, 2000)), (durable + 1, vec![]));
    }
}

#[test]
fn log_of_another_group_is_left_unchanged() {
    let other = folder();
    let (mut log, _) = open(other.clone());
    commit(&mut log, 3, 100);
    drop(log);
    let wanted = Identity { subgroup: "t".into(), ..identity() };
    let error = Log::open(other.clone(), &wanted, SMALL).expect_err("another one's");
    assert!(matches!(error, OpenLogError::OtherGroup { .. }), "{error}");
    assert!(error.to_string().contains("subgroup s of group g, not of subgroup t of group g"));
    one_line(&error);
    let (log, recovery) = open(other);
    assert_eq!((log.end().0, recovery.is_new, log.incarnation()), (3, false, 2));
}

#[test]
fn newer_format_is_distinguished_from_damage() {
    for file in ["metadata-1", "metadata-2", "segment-00000001"] {
        let newer = folder();
        let (mut log, _) = open(newer.clone());
        commit(&mut log, 3, 100);
        drop(log);
        let version = FORMAT_VERSION + 1;
        newer.decay(file, |bytes| {
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            let check = xxhash_rust::xxh3::xxh3_64(&bytes[..12]).to_le_bytes();
            bytes[12..16].copy_from_slice(&check[..4]);
        });
        let before = newer.operations();
        let error = Log::open(newer.clone(), &identity(), SMALL).expect_err("newer");
        let is_newer =
            matches!(&error, OpenLogError::NewerFormat { found, .. } if *found == version);
        assert!(is_newer, "{file}: {error}");
        one_line(&error);
        assert_eq!(newer.operations(), before, "{file}: nothing is written");
    }
}

#[test]
fn file_of_absurd_length_is_named() {
    let place = tempfile::tempdir().expect("a folder");
    let layer = || SystemFolder::create(place.path()).expect("it is there");
    let (mut log, _) = Log::open(layer(), &identity(), SMALL).expect("a new log");
    commit(&mut log, 3, 100);
    drop(log);
    let path = place.path().join("segment-00000001");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a segment");
    file.set_len(1 << 41).expect("a sparse file");
    let error = Log::open(layer(), &identity(), SMALL).expect_err("it is too long");
    assert!(error.to_string().contains("segment-00000001: its 2199023255552 bytes"), "{error}");
    one_line(&error);
    std::fs::rename(&path, place.path().join("moved")).expect("it is moved");
    // The node's record of its logs shows that records are missing.
    let (log, _) = Log::open(layer(), &identity(), SMALL).expect("the rest is sound");
    assert_eq!(log.end().0, 0);
}

#[test]
fn log_in_use_cannot_be_opened_again() {
    let place = tempfile::tempdir().expect("a folder");
    let layer = SystemFolder::create(place.path()).expect("it is there");
    let (mut log, recovery) = open(layer.clone());
    assert!(recovery.is_new);
    commit(&mut log, 10, 1000);
    for error in [
        Log::open(layer.clone(), &identity(), SMALL).expect_err("in use"),
        Log::open_to_read(layer.clone(), None).expect_err("in use"),
    ] {
        assert!(matches!(error, OpenLogError::InUse { .. }), "{error}");
        one_line(&error);
    }
    drop(log);
    let (log, recovery) = open(layer);
    assert_eq!((log.end().0, recovery.is_new), (10, false));
    assert_eq!(check(&log, 1000), []);
}

#[test]
fn unwritable_folder_is_reported_and_can_be_read() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("log");
    let (mut log, _) = open(SystemFolder::create(&path).expect("made"));
    commit(&mut log, 4, 50);
    drop(log);
    let layer = SystemFolder::read_only(&path).expect("it is there");
    let (mut log, _) = Log::open_to_read(layer, None).expect("it is a log");
    assert_eq!((log.end().0, check(&log, 50)), (4, vec![]));
    let mut batch = Batch::new();
    batch.push(&record(4, b"more")).expect("in order");
    let error = log.commit(&mut batch).expect_err("to be read alone");
    assert!(matches!(error, WriteError::ReadOnly { .. }), "{error}");
    one_line(&error);
    drop(log);
    // Permissions do not restrict a privileged user, so the last check uses a file in place of the
    // folder.
    let read_only = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(&path, read_only).expect("the own folder");
    let is_kept_out = std::fs::write(path.join("probe"), b"").is_err();
    if is_kept_out {
        std::fs::remove_file(path.join("metadata-2")).ok();
        let layer = SystemFolder::create(&path).expect("it is there");
        let error = Log::open(layer, &identity(), SMALL).err();
        assert!(error.is_none_or(|error| matches!(error, OpenLogError::ReadOnly { .. })));
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the own");
    let nowhere = SystemFolder::create(place.path().join("log/metadata-1/x"));
    assert!(nowhere.is_err(), "a file is no folder");
}

#[test]
fn reading_a_folder_without_a_log_fails() {
    let place = tempfile::tempdir().expect("a folder");
    let layer = SystemFolder::read_only(place.path()).expect("it is there");
    let error = Log::open_to_read(layer, None).expect_err("empty");
    assert!(matches!(error, OpenLogError::NoLog { .. }), "{error}");
    one_line(&error);
    assert_eq!(std::fs::read_dir(place.path()).expect("a folder").count(), 0, "nothing is made");
}

#[test]
fn losing_both_metadata_copies_is_an_error() {
    let lost = folder();
    let (mut log, _) = open(lost.clone());
    commit(&mut log, 3, 100);
    drop(log);
    for copy in ["metadata-1", "metadata-2"] {
        lost.decay(copy, |bytes| bytes[40] ^= 1);
    }
    let error = Log::open(lost, &identity(), SMALL).expect_err("lost");
    assert!(matches!(error, OpenLogError::MetadataLost { .. }), "{error}");
    one_line(&error);
}

#[test]
fn out_of_order_records_leave_log_unchanged() {
    let (mut log, _) = open(folder());
    commit(&mut log, 2, 10);
    let mut batch = Batch::new();
    batch.push(&record(3, b"too far")).expect("the first");
    assert!(batch.push(&record(5, b"a gap")).is_err());
    let error = log.commit(&mut batch).expect_err("out of order");
    assert!(matches!(error, WriteError::OutOfOrder { expected: Sequence(2), .. }), "{error}");
    one_line(&error);
    commit(&mut log, 1, 10);
    assert_eq!((log.end().0, check(&log, 10)), (3, vec![]));
    let error = log.records(Sequence(4)).expect_err("beyond the end");
    assert!(matches!(error, ReadError::OutOfRange { .. }), "{error}");
    let error = log.let_go_below(Sequence(1)).expect_err("no snapshot");
    assert!(matches!(error, LetGoError::NoSnapshot { .. }), "{error}");
    one_line(&error);
}

#[test]
fn full_disk_accepts_more_once_space_is_freed() {
    let place = tempfile::tempdir().expect("a folder");
    let layer = SystemFolder::create(place.path()).expect("it is there");
    let (mut log, _) = open(layer.clone());
    commit(&mut log, 1, 100);
    drop(log);
    // Different options for an existing log: existing segments keep their size, and new ones get
    // the new size.
    let options = Options { segment_bytes: 16 * 4096, spares_max: 0, noted: None };
    let (mut log, _) = Log::open(layer.clone(), &identity(), options).expect("it opens");
    for _ in 0..30 {
        commit(&mut log, 1, 3000);
    }
    let name = layer.list().expect("a folder").into_iter().max().expect("a segment");
    let length = layer.open(&name).and_then(|file| file.length()).expect("it is there");
    assert_eq!((name.as_str(), length), ("segment-00000003", 16 * 4096));
}
