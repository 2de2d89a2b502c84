//! Disks that come back other than they were when all died: emptied, shortened, or as a copy from
//! the beginning of the view. What the nodes noted is up to date, as it is after a moment of rest.

use std::collections::BTreeSet;

use super::answers::note;
use super::disks::{Case, Store};

/// What became of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The log is gone, and the note of it is not.
    Emptied,
    /// The log has lost its last record.
    Shortened,
    /// All of the disk is as it was when the view began.
    Older,
}

/// The same case, and what all nodes noted before they died.
pub fn noting(case: &Case) -> Case {
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
        // Where the view has gone on, this one cannot have seen how far.
        let is_newest = case.decided.keys().max() == Some(id);
        let majority = if is_newest { case.reported.len() } else { 0 };
        store.note = note(records.len() as u64, majority as u64, everywhere as u64);
    }
    noted
}

/// The case with the disks of these nodes changed; nothing where one would be as it was, or where
/// nothing on the other disks tells.
pub fn changed(case: &Case, nodes: &[u32], change: Change) -> Option<Case> {
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

/// The cases without what nodes note: as a verdict sees them that does not look at it.
pub fn forgetting(cases: &BTreeSet<Case>) -> BTreeSet<Case> {
    let forget = |case: &Case| {
        let mut case = case.clone();
        case.nodes.values_mut().for_each(|store| store.note = note(0, 0, 0));
        case
    };
    cases.iter().map(forget).collect()
}
