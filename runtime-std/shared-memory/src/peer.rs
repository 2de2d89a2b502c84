//! A peer's process, as this one sees it: its file, which says whether it lives, its doorbell, and
//! the memory that it sent.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tramontane_core::fabric::{LossCause, REGIONS_MAX};
use tramontane_core::ids::{NodeId, ViewId};

use super::descriptors::{Message, Subject};
use super::folder::Folder;
use super::futex::Bell;
use super::header::{HEADER_BYTES, Header, Maker};
use super::map::{Access, Map};
use super::member_file::{Identity, MemberFile, State};
use super::sealed::{Unusable, Writers, check};
use super::space::BELL_BYTES;

/// Rows that one process may have sent and not given up: those of the two views of a change, and
/// some to spare.
const ROWS_MAX: usize = 16;

/// Block memory that it may have sent and that no block has come from: all, in two views.
const BLOCKS_MAX: usize = 2 * REGIONS_MAX;

/// Memory that a peer sent, and that was checked.
#[derive(Debug)]
struct SentMemory {
    subject: Subject,
    /// Of a row its header, of block memory all.
    map: Map,
    /// A row's descriptor, and its whole length.
    row: Option<(OwnedFd, usize)>,
}

/// A peer's process. One that comes again under the same id is another.
#[derive(Debug)]
pub(super) struct Peer {
    identity: Identity,
    file: MemberFile,
    /// Comes with its first row.
    bell: OnceLock<Bell>,
    /// The rows and block memory that it sent.
    sent: Mutex<Vec<SentMemory>>,
    /// Nothing is to do with this process any more, in whatever view.
    is_cut: AtomicBool,
}

impl Peer {
    /// The live process of a node, if it is there and goes by the same description of the group.
    pub(super) fn find(
        folder: &Folder,
        node: NodeId,
        digest: u64,
    ) -> rustix::io::Result<Option<Self>> {
        let Some(file) = MemberFile::find(folder, node)? else { return Ok(None) };
        let is_of_group = |statement: &super::member_file::Statement| {
            statement.is_of_this_format
                && statement.identity.digest == digest
                && statement.identity.node == node
                && statement.state == State::Running
        };
        let Some(statement) = file.read().filter(is_of_group) else { return Ok(None) };
        Ok(Some(Self {
            identity: statement.identity,
            file,
            bell: OnceLock::new(),
            sent: Mutex::default(),
            is_cut: AtomicBool::new(false),
        }))
    }

    /// Which node.
    pub(super) const fn id(&self) -> NodeId {
        self.identity.node
    }

    /// Which start of it.
    pub(super) const fn incarnation(&self) -> u64 {
        self.identity.incarnation
    }

    /// Its doorbell, once it has sent a row.
    pub(super) fn bell(&self) -> Option<&Bell> {
        self.bell.get()
    }

    /// Ends all that is between the two, for good.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Whether it was cut.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Whether it is gone, and how. Two system calls; a failed one says nothing.
    pub(super) fn loss(&self) -> Option<LossCause> {
        let gone = matches!(self.file.is_locked(), Ok(false));
        // What it said is looked at after the lock: it says it before it gives the lock back. A
        // file that somebody damaged says nothing.
        match self.file.read().map(|statement| statement.state) {
            Some(State::Left) => Some(LossCause::Left),
            Some(State::Failed) => Some(LossCause::Exited),
            Some(State::Running) | None => gone.then_some(LossCause::Exited),
        }
    }

    /// Takes what this process sent, if it can be mapped and read whatever the process does.
    pub(super) fn accept(
        &self,
        message: &Message,
        files: [Option<OwnedFd>; 2],
    ) -> Result<(), Unusable> {
        let subject = message.subject;
        let (file, bell) = match (subject, files) {
            (Subject::Row { .. }, [Some(row), Some(bell)]) => (row, Some(bell)),
            (Subject::Block { .. }, [Some(memory), None]) => (memory, None),
            _ => return Err(Unusable::Message),
        };
        let bytes = check(file.as_fd(), Writers::Owner)?;
        if bytes < HEADER_BYTES {
            return Err(Unusable::Length);
        }
        let map = match bell {
            Some(_) => Map::new(file.as_fd(), HEADER_BYTES, Access::Read),
            None => Map::new_large(file.as_fd(), bytes, Access::Read),
        };
        let map = map.map_err(|_| Unusable::NotMemory)?;
        let maker = Maker {
            node: u64::from(self.id().get()),
            incarnation: self.incarnation(),
            number: subject.number(),
        };
        if !Header::new(&map).is_by(&maker) {
            return Err(Unusable::Owner);
        }
        if let Some(bell) = bell.as_ref().filter(|_| self.bell.get().is_none()) {
            self.take_bell(bell)?;
        }
        self.keep(SentMemory { subject, map, row: bell.map(|_| (file, bytes)) })
    }

    fn keep(&self, new: SentMemory) -> Result<(), Unusable> {
        let mut sent = self.sent();
        // Memory that was made anew takes the place of that which was given up.
        sent.retain(|other| other.subject != new.subject && !Header::new(&other.map).is_over());
        let of_its_kind = sent.iter().filter(|other| other.row.is_some() == new.row.is_some());
        let most = if new.row.is_some() { ROWS_MAX } else { BLOCKS_MAX };
        if of_its_kind.count() >= most {
            return Err(Unusable::TooMany);
        }
        sent.push(new);
        Ok(())
    }

    fn take_bell(&self, bell: &OwnedFd) -> Result<(), Unusable> {
        if check(bell.as_fd(), Writers::All)? != BELL_BYTES {
            return Err(Unusable::Length);
        }
        let map = Map::new(bell.as_fd(), BELL_BYTES, Access::Write);
        let map = Arc::new(map.map_err(|_| Unusable::NotMemory)?);
        self.bell.get_or_init(|| Bell::new(map, self.identity.sleeper_barrier));
        Ok(())
    }

    /// Puts a row that it sent in the place of what is mapped there. True if it was there, and its
    /// owner has not given it up.
    ///
    /// It can be put there again, for a view that is made anew here and not at the peer.
    pub(super) fn put_row(
        &self,
        view: ViewId,
        digest: u64,
        place: &Map,
    ) -> rustix::io::Result<bool> {
        let mut sent = self.sent();
        let subject = Subject::Row { view, digest };
        let Some(at) = sent.iter().position(|memory| memory.subject == subject) else {
            return Ok(false);
        };
        let Some((file, bytes)) = &sent[at].row else { return Ok(false) };
        if *bytes != place.bytes() {
            refused(self.id(), Unusable::Length);
        } else if !Header::new(&sent[at].map).is_over() {
            return place.replace(file.as_fd()).map(|()| true);
        }
        sent.swap_remove(at);
        Ok(false)
    }

    /// Takes block memory that it sent for a view.
    pub(super) fn take_block(&self, view: ViewId, serial: u64) -> Option<Map> {
        let mut sent = self.sent();
        let subject = Subject::Block { view, serial };
        let at = sent.iter().position(|memory| memory.subject == subject)?;
        Some(sent.swap_remove(at).map)
    }

    /// Forgets what it sent for views before this one.
    pub(super) fn forget_before(&self, view: ViewId) {
        self.sent().retain(|memory| memory.subject.view() >= view);
    }

    /// Whether it has sent something that may still be of use.
    pub(super) fn has_sent(&self) -> bool {
        !self.sent().is_empty() && self.loss().is_none()
    }

    fn sent(&self) -> MutexGuard<'_, Vec<SentMemory>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says why something that a peer sent is not used.
pub(super) fn refused(member: NodeId, why: Unusable) {
    tracing::warn!(
        %member,
        "memory that this member sent is not used: {why}; run the same version of the program \
         everywhere, and nothing else that opens this group's folder"
    );
}
