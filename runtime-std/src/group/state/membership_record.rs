//! A node's record of its membership, kept in a folder that outlives the node's process.
//!
//! # Invariants
//! - A view is on disk before the member does anything in it (`state_file`). So a restarted node
//!   knows in which group it took part.
//! - Each log is named, together with a lower bound of its end, because a disk may lose part of the
//!   log. A separate thread raises the bound as the log grows (`noting`).
//! - In a logged group, all initial nodes record on disk that the group is being formed, before any
//!   of them is a member. So if power is lost when only one of them knows of the first view, the
//!   others do not count as new nodes, and are part of that view's majority.
//! - Only one process has the folder open. It holds the lock as long as it runs.

use tramontane_core::ids::{NodeId, ViewId};

use super::last_membership::{LastMembership, MembershipEnd};
use super::noted_log::NotedLog;
use super::noting::NotedFolder;
use crate::group::description::view::View;
use crate::group::engine::promising::Promised;
use crate::member::Stopped;

/// The record that a member writes. Empty if the member has no folder.
#[derive(Debug)]
pub(crate) struct MembershipRecord {
    pub(crate) folder: Option<NotedFolder>,
    pub(crate) group: String,
    pub(crate) digest: u64,
    pub(crate) node: NodeId,
    pub(crate) incarnation: u64,
}

impl MembershipRecord {
    /// Records a view, before this member does anything in it.
    pub(crate) fn begins(&mut self, view: &View, logs: Vec<NotedLog>) -> Result<(), Stopped> {
        let before = self.last_membership();
        let last = LastMembership {
            group: self.group.clone(),
            digest: self.digest,
            node: self.node.get(),
            incarnation: self.incarnation,
            view: view.id.0,
            members: view.members.iter().map(|node| node.get()).collect(),
            end: None,
            closed: view.closed.iter().map(|subgroup| subgroup.0).collect(),
            promise: None,
            heard: before.as_ref().map_or((0, 0), |last| last.heard),
            with_less: before.map_or_else(Vec::new, |last| last.with_less),
            logs,
        };
        self.write(last)
    }

    /// Records a promise, before others see it.
    pub(crate) fn promises(&mut self, promise: Promised) -> Result<(), Stopped> {
        let Some(last) = self.last_membership() else { return Ok(()) };
        self.write(LastMembership { promise: Some(promise), ..last })
    }

    fn write(&self, last: LastMembership) -> Result<(), Stopped> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut folder = folder.lock();
        folder
            .write(last)
            .map_err(|error| Stopped::NoState(format!("{}: {error}", folder.path.display())))
    }

    fn last_membership(&self) -> Option<LastMembership> {
        self.folder.as_ref()?.lock().last.clone()
    }

    /// Returns whether the notes about the logs may be updated now.
    pub(crate) fn may_raise(&self) -> bool {
        self.folder.as_ref().is_some_and(NotedFolder::is_free)
    }

    /// Updates the notes about the logs without delaying anything else.
    pub(crate) fn raises(&self, view: ViewId, logs: Vec<NotedLog>) {
        if let Some(folder) = &self.folder {
            folder.raises(view.0, logs);
        }
    }

    /// Records how this membership ended, if the record can be written.
    pub(crate) fn ends(&mut self, why: &Stopped, view: ViewId, logs: &[NotedLog]) {
        let Some(folder) = &self.folder else { return };
        let mut folder = folder.lock();
        if let Err(error) = folder.raise(view.0, logs) {
            tracing::warn!(folder = %folder.path.display(), %error, "cannot note where the logs end");
        }
        let is_own =
            |last: &LastMembership| last.incarnation == self.incarnation && last.end.is_none();
        let Some(last) = folder.last.clone().filter(is_own) else { return };
        let end = match why {
            Stopped::Left if last.members.len() == 1 => MembershipEnd::Last,
            Stopped::Left => MembershipEnd::Left,
            Stopped::Halted { .. } => MembershipEnd::Halted,
            _ => MembershipEnd::Failed,
        };
        if let Err(error) = folder.write(LastMembership { end: Some(end), ..last }) {
            // Without this record, the node knows less, but nothing that it knows is false.
            tracing::warn!(folder = %folder.path.display(), %error, "cannot record how the membership ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::group::description::view::FIRST_VIEW;
    use crate::group::state::folder::{StateError, StateFolder};
    use crate::group::state::state_file::COPIES;

    fn record(path: &Path, incarnation: u64) -> MembershipRecord {
        let folder = StateFolder::open(path, "g", NodeId(3)).expect("its own");
        let folder = NotedFolder::new(folder, false).expect("no thread");
        MembershipRecord {
            folder: Some(folder),
            group: "g".into(),
            digest: 7,
            node: NodeId(3),
            incarnation,
        }
    }

    fn last_membership(record: &MembershipRecord) -> Option<LastMembership> {
        record.last_membership()
    }

    #[test]
    fn dropped_state_folder_is_unlocked_despite_copied_descriptor() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let folder = StateFolder::open(&path, "g", NodeId(3)).expect("its own");
        let copy = folder.lock.try_clone().expect("what a forked process has");
        StateFolder::open(&path, "g", NodeId(3)).expect_err("it is held");
        drop(folder);
        StateFolder::open(&path, "g", NodeId(3)).expect("it is free");
        drop(copy);
    }

    #[test]
    fn state_folder_preserves_view_and_its_end() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let view = |members: &[u32]| {
            let members = members.iter().copied().map(NodeId).collect();
            View::with_all_senders(FIRST_VIEW, members, Vec::new())
        };
        let mut first = record(&path, 1);
        assert_eq!(last_membership(&first), None);
        // A member that has not been in any view has no end to record.
        first.ends(&Stopped::Closed, FIRST_VIEW, &[]);
        assert_eq!(last_membership(&first), None);
        first.begins(&view(&[3, 4]), Vec::new()).expect("room");
        drop(first);
        let mut second = record(&path, 2);
        let remembered = last_membership(&second).expect("it was a member");
        assert_eq!(
            (remembered.view, remembered.members.as_slice(), remembered.end),
            (1, &[3, 4][..], None)
        );
        // A process that has not been in any view does not end the membership of an earlier
        // process.
        second.ends(&Stopped::Closed, FIRST_VIEW, &[]);
        assert_eq!(last_membership(&second).expect("as before").end, None);
        second.begins(&view(&[3, 4]), Vec::new()).expect("room");
        second.ends(&Stopped::Left, FIRST_VIEW, &[]);
        assert_eq!(last_membership(&second).expect("it left").end, Some(MembershipEnd::Left));
        second.begins(&view(&[3]), Vec::new()).expect("room");
        second.ends(&Stopped::Left, FIRST_VIEW, &[]);
        drop(second);
        assert_eq!(
            last_membership(&record(&path, 3)).expect("it was the last").end,
            Some(MembershipEnd::Last)
        );
    }

    #[test]
    fn second_process_cannot_open_the_state_folder() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let mut own = record(&path, 1);
        let view = View::with_all_senders(FIRST_VIEW, vec![NodeId(3)], Vec::new());
        own.begins(&view, Vec::new()).expect("room");
        let error = |group: &str, node| {
            StateFolder::open(&path, group, NodeId(node)).expect_err("not its own")
        };
        assert!(matches!(error("g", 3), StateError::InUse { .. }));
        drop(own);
        assert!(matches!(error("g", 4), StateError::Other { node: 3, .. }));
        assert!(matches!(error("h", 3), StateError::Other { .. }));
        for copy in COPIES {
            std::fs::write(path.join(copy), "{").expect("a file");
        }
        assert!(matches!(error("g", 3), StateError::Damaged { .. }));
        let nowhere =
            StateFolder::open(Path::new("/nowhere/state"), "g", NodeId(3)).expect_err("no place");
        assert!(matches!(nowhere, StateError::Io { .. }));
    }

    /// A folder in the old format has one copy, without a checksum.
    #[test]
    fn oldest_state_format_is_read_and_upgraded() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let old = "{\"format\":1,\"group\":\"g\",\"digest\":7,\"node\":3,\"incarnation\":1,\"view\":5,\
            \"members\":[3],\"end\":null,\"closed\":[],\"promise\":null,\"heard\":[0,0],\"with_less\":[2]}";
        std::fs::create_dir(&path).expect("room");
        std::fs::write(path.join(COPIES[0]), old).expect("a file");
        let found = last_membership(&record(&path, 2)).expect("it was a member");
        assert_eq!((found.view, found.with_less.as_slice(), found.logs.len()), (5, &[2][..], 0));
        std::fs::remove_file(path.join(COPIES[0])).expect("there are two");
        assert_eq!(last_membership(&record(&path, 2)), Some(found));
    }

    #[test]
    fn log_notes_only_increase_within_a_view() {
        let place = tempfile::tempdir().expect("a folder");
        let mut record = record(&place.path().join("state"), 1);
        let log = |log, end| NotedLog {
            subgroup: "s".into(),
            log,
            incarnation: 1,
            end,
            majority: end,
            everywhere: 0,
        };
        let view = View::with_all_senders(FIRST_VIEW, vec![NodeId(3)], Vec::new());
        record.begins(&view, vec![log(7, 5)]).expect("room");
        for (view, raised, noted) in [
            (FIRST_VIEW, log(7, 9), 9),
            (FIRST_VIEW, log(7, 8), 9),
            (FIRST_VIEW, log(8, 20), 9),
            (FIRST_VIEW.next(), log(7, 20), 9),
        ] {
            record.folder.as_ref().expect("one").lock().raise(view.0, &[raised]).expect("room");
            assert_eq!(last_membership(&record).expect("a view").logs, [log(7, noted)]);
        }
    }
}
