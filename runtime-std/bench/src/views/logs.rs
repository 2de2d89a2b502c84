//! The logs of the views, compared with each other and with the receipts of their processes. The
//! comparison shares no code with the delivery.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::BenchError;
use crate::views::events::{Incarnation, NAME_BYTES, Named, log_name, promises_name};

/// The deliveries of the surviving members from each process, through all views so far.
#[derive(Debug, Default)]
pub(super) struct SurvivorDeliveries {
    of: BTreeMap<Incarnation, u64>,
    /// Number of messages from ended processes that have been delivered according to their
    /// receipts.
    pub(super) promised: u64,
}

impl SurvivorDeliveries {
    /// Compares the logs of one view, and removes them. `goes_on` are the members that installed
    /// the next view from this one; they must have every message that has been delivered according
    /// to the receipts of the others. Returns the number of deliveries.
    pub(super) fn compare(
        &mut self,
        folder: &Path,
        view: u64,
        members: &[Incarnation],
        goes_on: &[Incarnation],
    ) -> Result<u64, BenchError> {
        let (deliveries, reference) = compare(folder, view, members, goes_on)?;
        for named in reference.chunks(NAME_BYTES).filter_map(Named::decode) {
            *self.of.entry(named.sender).or_default() += 1;
        }
        let ended = members.iter().filter(|own| !goes_on.is_empty() && !goes_on.contains(own));
        for process in ended {
            let bytes = std::fs::read(folder.join(promises_name(*process))).unwrap_or_default();
            let promised = bytes.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
            let delivered = self.of.get(process).copied().unwrap_or(0);
            if promised > delivered {
                return Err(BenchError::Broken(format!(
                    "view {view}: according to its receipts, {promised} messages of {process:?} are delivered, but the \
                     other members delivered only {delivered}"
                )));
            }
            self.promised += promised;
        }
        Ok(deliveries)
    }
}

/// Compares the logs of one view. Returns the number of deliveries, and the log of the surviving
/// members.
fn compare(
    folder: &Path,
    view: u64,
    members: &[Incarnation],
    goes_on: &[Incarnation],
) -> Result<(u64, Vec<u8>), BenchError> {
    let mut logs = BTreeMap::new();
    for process in members {
        let path = folder.join(log_name(view, *process));
        let Ok(bytes) = std::fs::read(&path) else { continue };
        // A process that was killed may have been in the middle of a write.
        let whole = bytes.len() - bytes.len() % NAME_BYTES;
        logs.insert(*process, bytes[..whole].to_vec());
        std::fs::remove_file(&path).map_err(|error| {
            BenchError::Setup(format!("cannot remove {}: {error}", path.display()))
        })?;
    }
    let longest = goes_on
        .iter()
        .filter_map(|own| Some((own, logs.get(own)?)))
        .max_by_key(|(_, log)| log.len());
    let Some((first, reference)) = longest else { return Ok((0, Vec::new())) };
    for (own, log) in &logs {
        let stays = goes_on.contains(own);
        let is_right = if stays { log == reference } else { reference.starts_with(log) };
        if !is_right {
            let at = log
                .iter()
                .zip(reference)
                .position(|(a, b)| a != b)
                .unwrap_or(log.len().min(reference.len()));
            let at = at - at % NAME_BYTES;
            let named = |log: &[u8]| log.get(at..).and_then(Named::decode);
            return Err(BenchError::Broken(format!(
                "view {view}: {own:?}, which {}, delivered {:?} at position {}, but {first:?} delivered {:?}",
                if stays { "continues" } else { "does not continue" },
                named(log),
                at / NAME_BYTES,
                named(reference),
            )));
        }
    }
    let bytes: usize = logs.values().map(Vec::len).sum();
    Ok((u64::try_from(bytes / NAME_BYTES).unwrap_or(u64::MAX), reference.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn process(node: u32, start: u32) -> Incarnation {
        Incarnation { node, start }
    }

    fn log(folder: &Path, of: Incarnation, names: &[(u32, u64)]) {
        let names = names
            .iter()
            .map(|(node, number)| Named { sender: process(*node, 0), number: *number }.encode());
        let bytes: Vec<u8> = names.flatten().collect();
        std::fs::write(folder.join(log_name(7, of)), bytes).expect("a log");
    }

    fn judged(of_two: &[(u32, u64)], goes_on: &[Incarnation]) -> Result<u64, BenchError> {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = [(0, 0), (1, 0), (0, 1), (2, 0)];
        let all = [process(0, 0), process(1, 4), process(2, 1)];
        log(folder.path(), all[0], &whole);
        log(folder.path(), all[1], &whole);
        log(folder.path(), all[2], of_two);
        SurvivorDeliveries::default().compare(folder.path(), 7, &all, goes_on)
    }

    #[test]
    fn survivors_have_messages_promised_by_ended_members() {
        let folder = tempfile::tempdir().expect("a folder");
        let all = [process(0, 0), process(1, 0), process(2, 0)];
        let mut delivered = SurvivorDeliveries::default();
        let mut judged = |promised: u64, goes_on: &[Incarnation]| {
            for of in &all[..2] {
                log(folder.path(), *of, &[(0, 0), (2, 0)]);
            }
            log(folder.path(), all[2], &[(0, 0), (2, 0)]);
            let path = folder.path().join(promises_name(all[2]));
            std::fs::write(path, promised.to_le_bytes()).expect("a file");
            delivered.compare(folder.path(), 7, &all, goes_on).map(|_| delivered.promised)
        };
        assert_eq!(judged(9, &all).expect("it goes on, and others may have them later"), 0);
        assert_eq!(judged(2, &all[..2]).expect("one in each view"), 2);
        assert!(judged(4, &all[..2]).is_err(), "three were delivered");
    }

    #[test]
    fn surviving_logs_match_and_others_are_prefixes() {
        let all = [process(0, 0), process(1, 4), process(2, 1)];
        assert_eq!(judged(&[(0, 0), (1, 0), (0, 1), (2, 0)], &all).expect("all the same"), 12);
        assert_eq!(judged(&[(0, 0), (1, 0)], &all[..2]).expect("a part of it"), 10);
        assert!(judged(&[(0, 0), (1, 0)], &all).is_err(), "it goes on, and lacks two");
        assert!(judged(&[(1, 0), (0, 0)], &all[..2]).is_err(), "another order");
        assert!(judged(&[(0, 0), (0, 1)], &all[..2]).is_err(), "one is left out");
        assert!(
            judged(&[(0, 0), (1, 0), (0, 1), (2, 0), (2, 1)], &all[..2]).is_err(),
            "more than the others"
        );
    }
}
