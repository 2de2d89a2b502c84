//! Fresh memory for one view (VIE-11): the local row, and address ranges for the peers' rows, which
//! arrive later.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use tramontane_core::fabric::ViewPlan;
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::descriptors::Subject;
use super::error::Error;
use super::header::{HEADER_BYTES, Header};
use super::map::Map;
use super::mappings::{Mappings, ViewMappings};
use super::member_file::MemberFile;
use super::peer::Peer;
use super::residence::Residence;
use super::row_plan::RowPlan;
use super::sealed::{SealedMemory, Writers};
use super::space::{check_space, group_bytes, whole_pages};

/// The local row of one view, in the form that is passed to peers. The view has the row until this
/// is dropped. The memory exists as long as it is mapped.
#[derive(Debug)]
pub(super) struct OwnRow {
    residence: Arc<Residence>,
    view: ViewId,
    digest: u64,
    file: OwnedFd,
}

impl Drop for OwnRow {
    fn drop(&mut self) {
        self.residence.remove_row((self.view, self.digest));
    }
}

impl OwnRow {
    /// Sends the row to a peer. Returns false if it must be sent again later.
    pub(super) fn send_to(&self, peer: &Peer) -> rustix::io::Result<bool> {
        let subject = Subject::Row { view: self.view, digest: self.digest };
        self.residence.send(peer, subject, self.file.as_fd())
    }
}

impl Residence {
    /// Returns the number of bytes that a view takes in shared memory: its rows, and the memory
    /// that each of its members uses as long as it runs.
    #[must_use]
    pub fn view_bytes(plan: &ViewPlan<'_>) -> u64 {
        let plan = RowPlan::new(plan);
        let base_files = plan.members().iter().map(|_| HEADER_BYTES);
        whole_pages(plan.files_bytes()).saturating_add(group_bytes(base_files))
    }

    /// Allocates fresh memory for one view. Peers' rows read as zeros until a fabric over this
    /// memory has received them. Their addresses do not change at that moment.
    ///
    /// The local row is new and fully allocated. It is removed when the view is retired, or with
    /// the last handle to this memory. Allocating a large row may take a while, but does not wait
    /// for other processes.
    ///
    /// # Errors
    /// Returns [`Error::NotAMember`] or [`Error::OtherMember`] if this process is not at its rank
    /// in the plan; [`Error::NoMemory`] if the rows of the view do not fit; [`Error::ViewIsThere`]
    /// if memory for that view has already been allocated and not been retired;
    /// [`Error::CannotSeal`]; [`Error::HasLeft`]. Nothing is left behind in these cases.
    pub fn rows(self: &Arc<Self>, plan: &ViewPlan<'_>) -> Result<Mappings, Error> {
        let (own, view, plan) = (plan.own(), plan.view(), RowPlan::new(plan));
        let ids = plan.members();
        let Some(listed) = ids.get(own.index()) else {
            return Err(Error::NotAMember { rank: own, members: ids.len() });
        };
        if *listed != self.node() {
            return Err(Error::OtherMember { rank: own, listed: *listed, node: self.node() });
        }
        check_space(whole_pages(plan.files_bytes()), || self.held_by_peers(&plan))?;
        let (own_row, own_map) = self.make_row(view, plan.digest(), plan.file_bytes(own))?;
        let failed =
            |errno| Error::from_errno("cannot reserve addresses beside", self.path(), errno);
        let mut rows = Vec::with_capacity(ids.len());
        for (rank, bytes) in (0..).map(Rank).zip(plan.files_bytes()) {
            let row = if rank == own {
                Arc::clone(&own_map)
            } else {
                Arc::new(Map::reserve(bytes).map_err(failed)?)
            };
            rows.push(row);
        }
        Ok(Mappings::over(ViewMappings::new(self, view, own, plan, rows, own_row)))
    }

    /// Returns the bytes of the planned rows that live members have already allocated.
    pub(super) fn held_by_peers(&self, plan: &RowPlan) -> u64 {
        let has_row = |node: &NodeId| {
            let file = MemberFile::find(&self.folder(), *node).ok().flatten();
            file.and_then(|file| file.read()).is_some_and(|said| said.row == plan.digest())
        };
        let held = plan.members().iter().zip(plan.files_bytes());
        whole_pages(held.filter(|(node, _)| has_row(node)).map(|(_, bytes)| bytes))
    }

    /// Creates and signs the local row of a view, and maps it.
    fn make_row(
        self: &Arc<Self>,
        view: ViewId,
        digest: u64,
        bytes: usize,
    ) -> Result<(OwnRow, Arc<Map>), Error> {
        let SealedMemory { file, map } = SealedMemory::new(bytes, Writers::Owner)?;
        Header::new(&map).write(&self.maker(digest));
        self.add_row((view, digest))?;
        let own_row = OwnRow { residence: Arc::clone(self), view, digest, file };
        Ok((own_row, Arc::new(map)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use crate::root::{GroupName, Root};

    /// Held memory does not count as missing. Otherwise, the second of two members whose rows just
    /// fit would be refused.
    #[test]
    fn memory_of_live_members_counts_as_held() {
        let place = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let (root, group) = (Root::under(place.path()), GroupName::new("held").expect("a name"));
        let never = AtomicBool::new(false);
        let limit = Duration::from_secs(30);
        let claim = |node| {
            let claimed = Residence::claim(&root, &group, NodeId(node), 1, 1, limit, &never);
            Arc::new(claimed.expect("its place"))
        };
        let (first, second) = (claim(1), claim(2));
        let members = [NodeId(1), NodeId(2)];
        let plan = |own| ViewPlan::with_sizes(ViewId(1), Rank(own), &members, &[4096, 8192], 5);
        let rows = RowPlan::new(&plan(0));
        assert_eq!(first.held_by_peers(&rows), 0);
        assert!(!first.is_member(NodeId(2)).expect("a folder"));
        let theirs = second.rows(&plan(1)).expect("memory");
        assert!(first.is_member(NodeId(2)).expect("a folder"));
        assert_eq!(
            first.held_by_peers(&rows),
            whole_pages(std::iter::once(rows.file_bytes(Rank(1))))
        );
        let other = ViewPlan::with_sizes(ViewId(1), Rank(0), &members, &[4096, 8192], 6);
        assert_eq!(first.held_by_peers(&RowPlan::new(&other)), 0, "rows of another layout");
        drop(theirs);
        assert_eq!(first.held_by_peers(&rows), 0, "they were given up");
        let _again = second.rows(&plan(1)).expect("memory");
        second.leave();
        assert_eq!(first.held_by_peers(&rows), 0, "of a member that is not there");
    }
}
