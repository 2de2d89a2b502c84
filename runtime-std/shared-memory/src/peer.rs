//! A peer's process, as this one sees it: its base file, which says whether it lives, and its
//! doorbell.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::NodeId;

use super::files::{Names, holds, open_bell};
use super::folder::{Folder, is_live};
use super::futex::Bell;
use super::header::{HEADER_BYTES, Header, State};
use super::map::{Access, Map};
use super::space::BELL_BYTES;

/// A peer's base file, open to be looked at.
#[derive(Debug)]
pub(super) struct PeerFiles {
    id: NodeId,
    row_file: OwnedFd,
    header: Map,
}

impl PeerFiles {
    /// Opens a peer's base file, if it is there, its owner lives, and has written its header.
    pub(super) fn find(folder: &Folder, id: NodeId) -> rustix::io::Result<Option<Self>> {
        let Some(row_file) = folder.open_row(&Names::of(id).row)? else { return Ok(None) };
        if !is_live(row_file.as_fd())? || !holds(&row_file, HEADER_BYTES) {
            return Ok(None);
        }
        let header = Map::new(row_file.as_fd(), HEADER_BYTES, Access::Read)?;
        if !Header::new(&header).is_written() {
            return Ok(None);
        }
        Ok(Some(Self { id, row_file, header }))
    }

    /// What the peer says of itself.
    pub(super) fn header(&self) -> Header<'_> {
        Header::new(&self.header)
    }

    /// Whether its owner is still there.
    pub(super) fn is_live(&self) -> rustix::io::Result<bool> {
        Ok(!self.header().state().is_over() && is_live(self.row_file.as_fd())?)
    }

    /// Maps the row that stands in the base file itself: that of a fixed membership. None if the
    /// file is too short.
    pub(super) fn map_row(&self, row_file_bytes: usize) -> rustix::io::Result<Option<Map>> {
        if !holds(&self.row_file, row_file_bytes) {
            return Ok(None);
        }
        Map::new(self.row_file.as_fd(), row_file_bytes, Access::Read).map(Some)
    }

    /// Maps the bell, to be rung. None if it is not what it should be.
    pub(super) fn map_bell(&self, folder: &Folder) -> rustix::io::Result<Option<Arc<Map>>> {
        let bell_file = match open_bell(folder, &Names::of(self.id)) {
            Ok(file) => file,
            // The peer is just leaving.
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        if !holds(&bell_file, BELL_BYTES) {
            return Ok(None);
        }
        Map::new(bell_file.as_fd(), BELL_BYTES, Access::Write).map(|map| Some(Arc::new(map)))
    }
}

/// A peer's process. One that comes again under the same id is another.
#[derive(Debug)]
pub(super) struct Peer {
    files: PeerFiles,
    bell: Bell,
    /// Nothing is to do with this process any more, in whatever view.
    is_cut: AtomicBool,
}

impl Peer {
    /// A process with its bell.
    pub(super) fn new(files: PeerFiles, bell: Arc<Map>) -> Self {
        let bell = Bell::new(bell, files.header().sleeper_barrier());
        Self { files, bell, is_cut: AtomicBool::new(false) }
    }

    /// The live process of a node, if it is there and goes by the same description of the group.
    pub(super) fn find(
        folder: &Folder,
        id: NodeId,
        digest: u64,
    ) -> rustix::io::Result<Option<Self>> {
        let Some(files) = PeerFiles::find(folder, id)? else { return Ok(None) };
        let header = files.header();
        let is_of_group = header.is_of_this_format() && header.digest() == digest;
        if !is_of_group || header.state() != State::Running {
            return Ok(None);
        }
        Ok(files.map_bell(folder)?.map(|bell| Self::new(files, bell)))
    }

    /// Which node.
    pub(super) const fn id(&self) -> NodeId {
        self.files.id
    }

    /// Which start of it.
    pub(super) fn incarnation(&self) -> u64 {
        self.files.header().incarnation()
    }

    /// Its doorbell.
    pub(super) const fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Ends all that is between the two, for good.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Whether it was cut.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Whether it is gone, and how. One system call while it lives; a failed one says nothing.
    pub(super) fn loss(&self) -> Option<LossCause> {
        let said = || match self.files.header().state() {
            State::Left => Some(LossCause::Left),
            State::Failed => Some(LossCause::Exited),
            State::Forming | State::Running => None,
        };
        let gone = matches!(is_live(self.files.row_file.as_fd()), Ok(false));
        // What it said is looked at after the lock: it says it before it gives the lock back.
        said().or(gone.then_some(LossCause::Exited))
    }
}
