//! Disks that changed after all nodes had died: emptied, shortened, or replaced with a copy from
//! the beginning of the view. The nodes' notes are up to date, as they are after an idle moment.

use std::collections::BTreeSet;

use super::answers::note;
use super::disks::{DisksCase, Store};

/// The change of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The log is lost, but its note is not.
    Emptied,
    /// The log has lost its last record.
    Shortened,
    /// The whole disk is as it was when the view began.
    Older,
}

/// Returns the same case with the notes that all nodes made before they died.
pub fn noting(case: &DisksCase) -> DisksCase {
    let mut noted = case.clone();
    let length = |node: &u32| case.nodes[node].records.as_ref().map_or(0, |records| records.len());
    for store in noted.nodes.values_mut() {
        let (Some((id, members)), Some(records)) = (&store.decided, &store.records) else {
            continue;
        };
        let knows =
            |node: &u32| case.nodes[node].decided.as_ref().is_some_and(|decided| decided.0 >= *id);
        let everywhere = match members.iter().all(knows) {
            true => members.iter().map(length).min().unwrap_or(0),
            false => 0,
        };
        // If the view has been succeeded, this node cannot have seen how far the view got.
        let is_newest = case.decided.keys().max() == Some(id);
        let majority = if is_newest { case.reported.len() } else { 0 };
        store.note = note(records.len() as u64, majority as u64, everywhere as u64);
    }
    noted
}

/// Returns the case with the disks of these nodes changed, or `None` if a disk would not change, or
/// if the other disks cannot reveal the change.
pub fn changed(case: &DisksCase, nodes: &[u32], change: Change) -> Option<DisksCase> {
    let mut changed = case.clone();
    for node in nodes {
        let others = case.nodes.iter().filter(|(other, _)| !nodes.contains(other));
        let is_seen = others.clone().count() > 0
            && others.clone().all(|(_, store)| store.note.everywhere.0 > 0);
        let store = changed.nodes.get_mut(node)?;
        let records = store.records.as_mut().filter(|records| !records.is_empty())?;
        match change {
            Change::Emptied => records.clear(),
            Change::Shortened => drop(records.pop()),
            Change::Older if is_seen => {
                let decided = Some((1, case.decided[&1].0.clone()));
                *store = Store { decided, records: Some(Vec::new()), ..Store::default() };
            }
            Change::Older => return None,
        }
    }
    Some(changed)
}

/// Returns the cases without the nodes' notes, for a verdict that ignores notes.
pub fn forgetting(cases: &BTreeSet<DisksCase>) -> BTreeSet<DisksCase> {
    let forget = |case: &DisksCase| {
        let mut case = case.clone();
        case.nodes.values_mut().for_each(|store| store.note = note(0, 0, 0));
        case
    };
    cases.iter().map(forget).collect()
}
