//! Bits that flip on the disk are detected, reported and repaired.

use tramontane_core::ids::ViewId;
use tramontane_log::power_loss::PowerLossFolder;
use tramontane_log::{Damaged, FileLayer as _, Log, ReplaceError, Sequence};

use crate::support::{Chance, check, commit, folder, message, open, record};

const MESSAGE_BYTES: usize = 300;

/// Creates a log with several segments, a snapshot and discarded records. Returns its end.
fn filled() -> (PowerLossFolder, u64) {
    let folder = folder();
    let (mut log, _) = open(folder.clone());
    for count in [1, 7, 30, 2, 11, 3, 25, 1, 40, 5] {
        commit(&mut log, count, MESSAGE_BYTES);
    }
    let mut writer = log.write_snapshot(Sequence(40), ViewId(5)).expect("a snapshot");
    writer.write(&message(9, 5000)).expect("it is written");
    let written = writer.finish().expect("it is synced");
    log.install_snapshot(written).expect("it is renamed");
    // The second segment begins here, so all records on the disk are served.
    log.let_go_below(Sequence(8)).expect("the snapshot reaches there");
    assert!(folder.bytes("segment-00000001").is_none());
    log.set_values(&[("view", Some(b"seven"))]).expect("it is written");
    (folder, log.end().0)
}

/// Returns the number of bytes of a file that the log uses; in the last segment, those before the
/// log's end.
fn used_bytes(folder: &PowerLossFolder, name: &str) -> usize {
    let bytes = folder.bytes(name).expect("it is there");
    // Unwritten bytes are zeros, and every batch ends with its trailer.
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    used.next_multiple_of(4096).min(bytes.len())
}

fn files(folder: &PowerLossFolder) -> Vec<String> {
    let names = folder.list().expect("it is on").into_iter();
    names.filter(|name| !name.starts_with("spare-")).collect()
}

/// Replaces all damaged records, as with copies from a peer.
fn repair(log: &mut Log<PowerLossFolder>) {
    let damaged: Vec<_> = log.damaged().collect();
    for (first, end) in damaged {
        for sequence in first.0..end.0 {
            let message = message(sequence, MESSAGE_BYTES);
            log.replace(&[record(sequence, &message)]).expect("it is damaged");
        }
    }
}

#[test]
fn flipped_log_bit_is_reported_and_repaired() {
    let mut chance = Chance::new(7);
    let (whole, end) = filled();
    let mut tried = 0;
    for name in files(&whole) {
        let bits = 8 * used_bytes(&whole, &name) as u64;
        for _ in 0..150 {
            let (folder, bit) =
                (whole.after_power_loss(|| true, Default::default()), chance.below(bits));
            folder.decay(&name, |bytes| bytes[bit as usize / 8] ^= 1 << (bit % 8));
            let case = format!("bit {bit} of {name}");
            let (mut log, recovery) = open(folder.clone());
            assert!(!recovery.is_torn && log.end().0 == end, "{case}: {}", log.end());
            let named = recovery.damage.iter().filter(|damage| damage.file == name);
            assert_eq!(named.count(), 1, "{case}: {:?}", recovery.damage);
            assert_eq!(recovery.damage.len(), 1, "{case}: {:?}", recovery.damage);
            // A damaged record is reported, and no other record is lost because of it.
            let damaged = check(&log, MESSAGE_BYTES);
            let named = recovery.damage.iter().find_map(|damage| match damage.what {
                Damaged::Records { first, .. } => Some(first.0),
                _ => None,
            });
            assert_eq!(damaged, named.into_iter().collect::<Vec<_>>(), "{case}");
            repair(&mut log);
            assert!(check(&log, MESSAGE_BYTES).is_empty(), "{case}");
            if name.starts_with("snapshot-") {
                assert!(log.snapshot().is_none(), "{case}");
                continue;
            }
            drop(log);
            let (log, recovery) = open(folder.after_power_loss(|| false, Default::default()));
            assert_eq!((recovery.damage, log.end().0), (vec![], end), "{case}");
            assert!(check(&log, MESSAGE_BYTES).is_empty(), "{case}");
            assert_eq!(log.value("view"), Some(&b"seven"[..]), "{case}");
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn missing_segment_is_reported_with_its_records() {
    let (folder, end) = filled();
    let segments: Vec<String> =
        files(&folder).into_iter().filter(|name| name.starts_with("segment-")).collect();
    folder.remove(&segments[1]).expect("it is there");
    let (mut log, recovery) = open(folder);
    assert_eq!(log.end().0, end);
    let missing = recovery.damage.iter().find(|damage| damage.what == Damaged::Segment);
    assert_eq!(missing.map(|damage| &damage.file), Some(&segments[1]));
    let damaged = check(&log, MESSAGE_BYTES);
    assert!(damaged.len() > 10 && damaged.is_sorted(), "{damaged:?}");
    repair(&mut log);
    assert!(check(&log, MESSAGE_BYTES).is_empty());
}

#[test]
fn repair_does_not_replace_intact_records() {
    let (folder, end) = filled();
    let (mut log, _) = open(folder);
    let other = message(77, 10);
    let replaced = log.replace(&[record(end - 1, &other)]);
    assert!(matches!(replaced, Err(ReplaceError::NotDamaged(at)) if at.0 == end - 1));
    assert!(check(&log, MESSAGE_BYTES).is_empty());
}

#[test]
fn widespread_damage_never_yields_a_wrong_record() {
    let (whole, end) = filled();
    let mut chance = Chance::new(11);
    for round in 0..200 {
        let folder = whole.after_power_loss(|| true, Default::default());
        for name in files(&whole) {
            let bytes = used_bytes(&whole, &name) as u64;
            for _ in 0..chance.below(6) {
                let (at, length) = (chance.below(bytes) as usize, 1 + chance.below(900) as usize);
                let noise = chance.below(256) as u8;
                folder.decay(&name, |bytes| {
                    let to = bytes.len().min(at + length);
                    bytes[at..to].fill(noise);
                });
            }
        }
        // Both copies of the metadata may be lost. Otherwise, the served records are correct.
        let opened = Log::open(folder, &crate::support::identity(), crate::support::SMALL);
        if let Ok((log, _)) = opened {
            let _ = check(&log, MESSAGE_BYTES);
            assert!(log.end().0 <= end, "round {round}");
        }
    }
}
