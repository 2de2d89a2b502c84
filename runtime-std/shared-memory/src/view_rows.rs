//! Fresh memory for one view (VIE-11): the own row in a file of its own, and room for the peers'
//! rows, which come later.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::fs::fstat;
use rustix::io::Errno;
use tramontane_core::fabric::ViewPlan;
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::error::Error;
use super::files::Names;
use super::folder::Patience;
use super::header::{HEADER_BYTES, Header, State};
use super::map::{Access, Map};
use super::mappings::{Mappings, Membership, OwnRow};
use super::peer::Peer;
use super::residence::Residence;
use super::row_plan::RowPlan;
use super::space::{allocate, check_space, file_bytes, group_bytes};

impl Residence {
    /// What a view takes in shared memory, in bytes: its rows, and what each of its members has
    /// beside them for life.
    #[must_use]
    pub fn view_bytes(plan: &ViewPlan<'_>) -> u64 {
        let plan = RowPlan::new(plan);
        let base_files = plan.members().iter().map(|_| HEADER_BYTES);
        file_bytes(plan.files_bytes()).saturating_add(group_bytes(base_files))
    }

    /// Makes fresh memory for one view. Peers' rows read as
    /// zeros until a fabric over it finds them; their addresses do not change then.
    ///
    /// The own row's file is new, is allocated whole, and goes when the view is retired, or with
    /// the last handle on this memory. May take a while for a large row; waits for nobody.
    ///
    /// # Errors
    /// [`Error::NotAMember`] or [`Error::OtherMember`] if the plan has this process elsewhere;
    /// [`Error::NoSpace`] if the rows of the view do not fit; [`Error::ViewIsThere`] if that memory
    /// was made and has not been retired; [`Error::HasLeft`]. Nothing is left behind then.
    pub fn rows(self: &Arc<Self>, plan: &ViewPlan<'_>) -> Result<Mappings, Error> {
        let (own, view, plan) = (plan.own(), plan.view(), RowPlan::new(plan));
        let ids = plan.members();
        let Some(listed) = ids.get(own.index()) else {
            return Err(Error::NotAMember { rank: own, members: ids.len() });
        };
        if *listed != self.node() {
            return Err(Error::OtherMember { rank: own, listed: *listed, node: self.node() });
        }
        let digest = plan.digest();
        let ending = Names::view_ending(view, digest);
        let needed = file_bytes(plan.files_bytes());
        check_space(&self.folder, needed, |name| name.ends_with(ending.as_bytes()))?;
        let (own_row, own_map) = self.make_row(view, digest, plan.file_bytes(own))?;
        let failed =
            |errno| Error::from_errno("cannot reserve addresses beside", self.folder.path(), errno);
        let mut rows = Vec::with_capacity(ids.len());
        for (rank, bytes) in (0..).map(Rank).zip(plan.files_bytes()) {
            let row = if rank == own {
                Arc::clone(&own_map)
            } else {
                Arc::new(Map::reserve(bytes).map_err(failed)?)
            };
            rows.push(row);
        }
        let membership = Membership::of_view(self, view, own, plan, rows, own_row);
        Ok(Mappings::over(membership))
    }

    /// The own row of a view: its name, which goes when that is dropped, and its mapping, signed.
    fn make_row(
        self: &Arc<Self>,
        view: ViewId,
        digest: u64,
        bytes: usize,
    ) -> Result<(OwnRow, Arc<Map>), Error> {
        let name = Names::view_row(self.node(), view, digest);
        let path = self.folder.path();
        let file = match self.make_file(&name) {
            None => return Err(Error::HasLeft { node: self.node() }),
            Some(Err(Errno::EXIST)) => return Err(Error::ViewIsThere { view }),
            Some(made) => {
                made.map_err(|errno| Error::from_errno("cannot create a file in", path, errno))?
            }
        };
        let own_row = OwnRow::new(self, name);
        let never = AtomicBool::new(false);
        allocate(&self.folder, &file, bytes, &Patience { until: Instant::now(), cancel: &never })?;
        let map = Map::new(file.as_fd(), bytes, Access::Write)
            .map_err(|errno| Error::from_errno("cannot map a file of", path, errno))?;
        Header::new(&map).write(&self.identity(digest));
        Header::new(&map).set_state(State::Running);
        Ok((own_row, Arc::new(map)))
    }
}

impl Membership {
    /// Puts a peer's row in its place, if it is there and is this process's: its header names the
    /// incarnation of the base file that `peer` is. True if it was.
    pub(super) fn adopt(&self, rank: Rank, peer: &Peer) -> rustix::io::Result<bool> {
        let (Some((view, digest)), Some(range)) = (self.view(), self.row_map(rank)) else {
            return Ok(false);
        };
        let Some(file) =
            self.residence().folder.open_row(&Names::view_row(peer.id(), view, digest))?
        else {
            return Ok(false);
        };
        // Its owner gives it its whole length at once; another length is another program's.
        let bytes = fstat(&file)?.st_size;
        if usize::try_from(bytes) != Ok(range.bytes()) {
            return Ok(false);
        }
        let first = Map::new(file.as_fd(), HEADER_BYTES, Access::Read)?;
        let header = Header::new(&first);
        let is_theirs = header.is_written()
            && header.is_of_this_format()
            && header.node() == u64::from(peer.id().get())
            && header.incarnation() == peer.incarnation()
            && header.digest() == digest
            && !header.state().is_over();
        if is_theirs {
            range.replace(file.as_fd())?;
        }
        Ok(is_theirs)
    }

    /// Whether the row that is in place was given up by its owner: a view's list changed before it
    /// was decided, and its memory is made anew, perhaps under the same name.
    pub(super) fn is_given_up(&self, rank: Rank) -> bool {
        self.view().is_some()
            && self.row_map(rank).is_some_and(|row| Header::new(row).state().is_over())
    }

    /// The node at a rank.
    pub(super) fn node_at(&self, rank: Rank) -> Option<NodeId> {
        self.ids().get(rank.index()).copied()
    }
}
