//! The logs of the views, compared, and what processes were promised: this shares nothing with the code that delivered.

use std::collections::BTreeMap;
use std::path::Path;

use super::member::{NAME_BYTES, Named, log_name, promises_name};
use crate::bench::BenchError;

/// Which process.
pub(super) type Who = (u32, u32);

/// What those who go on have delivered of each process, through all views so far.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    of: BTreeMap<Who, u64>,
    /// Messages of processes that ended, of which they had been told that they are delivered.
    pub(super) promised: u64,
}

impl Delivered {
    /// Compares the logs of one view, and removes them. `goes_on` are those who installed the next view from this one; what
    /// the others were told is delivered, these must have. Gives how many deliveries there were.
    pub(super) fn compare(
        &mut self,
        folder: &Path,
        view: u64,
        members: &[Who],
        goes_on: &[Who],
    ) -> Result<u64, BenchError> {
        let (deliveries, reference) = compare(folder, view, members, goes_on)?;
        for named in reference.chunks(NAME_BYTES).filter_map(Named::decode) {
            *self.of.entry((named.node, named.start)).or_default() += 1;
        }
        let ended = members.iter().filter(|who| !goes_on.is_empty() && !goes_on.contains(who));
        for (node, start) in ended {
            let bytes =
                std::fs::read(folder.join(promises_name(*node, *start))).unwrap_or_default();
            let promised = bytes.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
            let delivered = self.of.get(&(*node, *start)).copied().unwrap_or(0);
            if promised > delivered {
                return Err(BenchError::Broken(format!(
                    "view {view}: node {node} start {start} was told that {promised} of its messages are delivered, and the \
                     others delivered {delivered}"
                )));
            }
            self.promised += promised;
        }
        Ok(deliveries)
    }
}

/// Compares the logs of one view. Gives how many deliveries there were, and the log of those who go on.
fn compare(
    folder: &Path,
    view: u64,
    members: &[Who],
    goes_on: &[Who],
) -> Result<(u64, Vec<u8>), BenchError> {
    let mut logs = BTreeMap::new();
    for (node, start) in members {
        let path = folder.join(log_name(view, *node, *start));
        let Ok(bytes) = std::fs::read(&path) else { continue };
        // A process that was killed may have been in the middle of a write.
        let whole = bytes.len() - bytes.len() % NAME_BYTES;
        logs.insert((*node, *start), bytes[..whole].to_vec());
        std::fs::remove_file(&path).map_err(|error| {
            BenchError::Setup(format!("cannot remove {}: {error}", path.display()))
        })?;
    }
    let longest = goes_on
        .iter()
        .filter_map(|who| Some((who, logs.get(who)?)))
        .max_by_key(|(_, log)| log.len());
    let Some((first, reference)) = longest else { return Ok((0, Vec::new())) };
    for (who, log) in &logs {
        let stays = goes_on.contains(who);
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
                "view {view}: {who:?}, which {}, delivered {:?} at place {}, and {first:?} delivered {:?}",
                if stays { "goes on" } else { "does not go on" },
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

    fn log(folder: &Path, who: Who, names: &[(u32, u64)]) {
        let names = names
            .iter()
            .map(|(node, number)| Named { node: *node, start: 0, number: *number }.encode());
        let bytes: Vec<u8> = names.flatten().collect();
        std::fs::write(folder.join(log_name(7, who.0, who.1)), bytes).expect("a log");
    }

    fn judged(of_two: &[(u32, u64)], goes_on: &[Who]) -> Result<u64, BenchError> {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = [(0, 0), (1, 0), (0, 1), (2, 0)];
        log(folder.path(), (0, 0), &whole);
        log(folder.path(), (1, 4), &whole);
        log(folder.path(), (2, 1), of_two);
        Delivered::default().compare(folder.path(), 7, &[(0, 0), (1, 4), (2, 1)], goes_on)
    }

    #[test]
    fn what_an_ended_process_was_promised_the_others_have() {
        let folder = tempfile::tempdir().expect("a folder");
        let all = [(0, 0), (1, 0), (2, 0)];
        let mut delivered = Delivered::default();
        let mut judged = |promised: u64, goes_on: &[Who]| {
            for who in [(0, 0), (1, 0)] {
                log(folder.path(), who, &[(0, 0), (2, 0)]);
            }
            log(folder.path(), (2, 0), &[(0, 0), (2, 0)]);
            let path = folder.path().join(promises_name(2, 0));
            std::fs::write(path, promised.to_le_bytes()).expect("a file");
            delivered.compare(folder.path(), 7, &all, goes_on).map(|_| delivered.promised)
        };
        assert_eq!(judged(9, &all).expect("it goes on, and others may have them later"), 0);
        assert_eq!(judged(2, &all[..2]).expect("one in each view"), 2);
        assert!(judged(4, &all[..2]).is_err(), "three were delivered");
    }

    #[test]
    fn who_goes_on_has_all_and_who_does_not_a_part_from_the_start() {
        let all = [(0, 0), (1, 4), (2, 1)];
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
