//! Segments, snapshots, and records that are cut and set aside.

use tramontane_core::ids::ViewId;
use tramontane_log::power_loss::{Faults, PowerLossFolder};
use tramontane_log::{CutError, FileLayer, Log, ReadError, Sequence};

use crate::support::{check, commit, folder, message, open, record};

fn snapshot<L: FileLayer + Clone>(log: &mut Log<L>, at: u64, state: &[u8]) {
    let mut writer = log.write_snapshot(Sequence(at), ViewId(3)).expect("a snapshot");
    for part in state.chunks(700) {
        writer.write(part).expect("it is written");
    }
    let written = writer.finish().expect("it is synced");
    log.install_snapshot(written).expect("it is renamed");
}

fn count(folder: &PowerLossFolder, start: &str) -> usize {
    let names = folder.list().expect("it is on");
    names.iter().filter(|name| name.starts_with(start)).count()
}

#[test]
fn disk_usage_is_bounded_by_reusing_segments() {
    let folder = folder();
    let (mut log, _) = open(folder.clone());
    for round in 1..60 {
        commit(&mut log, 3, 2000);
        snapshot(&mut log, 3 * round, b"state");
        log.let_go_below(Sequence(3 * round - 1)).expect("the snapshot reaches there");
        assert_eq!(log.first(), Sequence(3 * round - 1));
        assert!(count(&folder, "segment-") <= 2 && count(&folder, "spare-") <= 2);
        assert_eq!(count(&folder, "snapshot-"), 1);
    }
    assert!(count(&folder, "segment-00000001") == 0 && log.segments().0 <= 2);
    drop(log);
    let (log, recovery) = open(folder.after_power_loss(|| false, Faults::default()));
    assert_eq!((log.first().0, log.end().0, recovery.damage), (176, 177, vec![]));
    assert_eq!(check(&log, 2000), []);
    let error = log.records(Sequence(175)).expect_err("it was let go");
    assert!(matches!(error, ReadError::OutOfRange { .. }), "{error}");
}

#[test]
fn batch_larger_than_a_segment_gets_its_own() {
    let folder = folder();
    let (mut log, _) = open(folder.clone());
    for bytes in [10, 100_000, 10, 20_000] {
        let mut batch = tramontane_log::Batch::new();
        batch.push(&record(log.end().0, &message(log.end().0, bytes))).expect("in order");
        log.commit(&mut batch).expect("it is written");
    }
    drop(log);
    let (log, _) = open(folder);
    let mut records = log.records(Sequence(0)).expect("in range");
    for (sequence, bytes) in [10, 100_000, 10, 20_000].into_iter().enumerate() {
        let read = records.read_next().expect("not the end").expect("sound");
        assert_eq!(read.bytes, message(sequence as u64, bytes));
    }
}

#[test]
fn snapshot_is_restored_whole_with_its_position() {
    let folder = folder();
    let (mut log, _) = open(folder.clone());
    commit(&mut log, 5, 10);
    let state = message(1, 3_000_000);
    snapshot(&mut log, 4, &state);
    drop(log);
    let (log, _) = open(folder.after_power_loss(|| false, Faults::default()));
    let (place, read) = log.read_snapshot().expect("it is sound");
    assert_eq!((place.sequence, place.view, place.bytes), (Sequence(4), ViewId(3), 3_000_000));
    assert!(read == state);
}

#[test]
fn joiner_restores_snapshot_beyond_its_log_end() {
    let folder = folder();
    let (mut log, _) = open(folder.clone());
    commit(&mut log, 5, 10);
    snapshot(&mut log, 1000, b"of a peer");
    assert_eq!((log.first(), log.end()), (Sequence(1000), Sequence(1000)));
    commit(&mut log, 7, 10);
    drop(log);
    let (log, recovery) = open(folder.after_power_loss(|| false, Faults::default()));
    assert_eq!((log.first().0, log.end().0, recovery.damage), (1000, 1007, vec![]));
    assert_eq!(check(&log, 10), []);
}

#[test]
fn truncated_records_are_set_aside_permanently() {
    let folder = folder();
    let (mut log, _) = open(folder.clone());
    commit(&mut log, 20, 500);
    let name = log.cut(Sequence(12)).expect("in range").expect("there is something");
    assert_eq!(log.end(), Sequence(12));
    assert_eq!(log.cut(Sequence(12)).expect("in range"), None);
    let mut batch = tramontane_log::Batch::new();
    batch.push(&record(12, b"other")).expect("in order");
    log.commit(&mut batch).expect("it is written");
    drop(log);
    let (mut log, _) = open(folder.after_power_loss(|| false, Faults::default()));
    assert_eq!(log.end(), Sequence(13));
    let read = log
        .records(Sequence(12))
        .expect("in range")
        .read_next()
        .map(|read| read.map(|record| record.bytes.to_vec()).expect("sound"));
    assert_eq!(read.as_deref(), Some(&b"other"[..]));
    assert_eq!(log.asides().expect("it is on"), std::slice::from_ref(&name));
    let mut aside = Vec::new();
    log.read_aside(&name, |record| aside.push((record.sequence.0, record.bytes.to_vec())))
        .expect("it is there");
    let expected: Vec<_> = (12..20).map(|sequence| (sequence, message(sequence, 500))).collect();
    assert_eq!(aside, expected);
    // A second cut at the same sequence creates a different file.
    let again = log.cut(Sequence(12)).expect("in range").expect("there is something");
    assert_ne!(again, name);
    let error = log.cut(Sequence(13)).expect_err("beyond the end");
    assert!(matches!(error, CutError::OutOfRange { .. }), "{error}");
    snapshot(&mut log, 12, b"state");
    let error = log.cut(Sequence(11)).expect_err("the snapshot has it");
    assert!(matches!(error, CutError::BelowSnapshot { .. }), "{error}");
}

#[test]
fn truncation_is_durable_before_new_records_follow() {
    let folder = folder();
    let (mut log, _) = open(folder.clone());
    commit(&mut log, 20, 500);
    log.cut(Sequence(12)).expect("in range");
    drop(log);
    let (log, _) = open(folder.after_power_loss(|| false, Faults::default()));
    assert_eq!((log.end(), check(&log, 500)), (Sequence(12), vec![]));
}

#[test]
fn values_are_stored_atomically() {
    let folder = folder();
    let (mut log, _) = open(folder.clone());
    log.set_values(&[("view", Some(b"1")), ("seal", Some(b"2"))]).expect("it is written");
    log.set_values(&[("seal", None), ("trims", Some(&[7; 9000]))]).expect("it is written");
    drop(log);
    let (log, _) = open(folder.after_power_loss(|| false, Faults::default()));
    assert_eq!(log.value_names().collect::<Vec<_>>(), ["trims", "view"]);
    assert_eq!(log.value("trims").map(<[u8]>::len), Some(9000));
}
