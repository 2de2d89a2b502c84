//! What a member has in the group's folder: how it is made, and how it goes.

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat, renameat};
use tramontane_core::ids::{NodeId, ViewId};

use super::descriptors::DescriptorSocket;
use super::error::Error;
use super::folder::{Folder, Patience};
use super::member_file::{Identity, MemberFile};
use super::root::{GroupName, Root};

/// What a file of ours is made with: never over one that is there, nor through a link.
const CREATE_FLAGS: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The names of what a member has in the folder.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// Its file, whose lock is its life.
    pub(super) member: CString,
    /// The socket that takes its peers' descriptors.
    pub(super) memory: CString,
    /// Its control socket, which somebody else makes.
    pub(super) door: CString,
    making: CString,
}

impl Names {
    pub(super) fn of(id: NodeId) -> Self {
        // Digits hold no zero byte.
        let name = |kind: &str| CString::new(format!("{kind}-{id}")).unwrap_or_default();
        Self {
            member: name("member"),
            memory: name("memory"),
            door: name("door"),
            making: name(".new"),
        }
    }
}

/// A member's own file and lock, and the rows that it has. The names go when this is dropped.
#[derive(Debug)]
pub(super) struct OwnFiles {
    pub(super) folder: Arc<Folder>,
    names: Names,
    /// Holds the lock that says that this member lives.
    pub(super) member: MemberFile,
    /// Views that have not ended, each with the digest of its rows; the newest last.
    rows: Vec<(ViewId, u64)>,
}

impl OwnFiles {
    /// Takes the member's place in the group: its file, locked, and its socket.
    pub(super) fn claim(
        root: &Root,
        group: &GroupName,
        identity: &Identity,
        patience: &Patience<'_>,
    ) -> Result<(Self, DescriptorSocket), Error> {
        let names = Names::of(identity.node);
        let (folder, (member, socket)) =
            Folder::enter(root, group, patience, |folder| take_place(folder, &names, identity))?;
        let files = Self { folder: Arc::new(folder), names, member, rows: Vec::new() };
        Ok((files, socket))
    }

    /// Counts a row. False if the view has one with that digest.
    pub(super) fn add_row(&mut self, row: (ViewId, u64)) -> bool {
        let is_new = !self.rows.contains(&row);
        if is_new {
            self.rows.push(row);
            self.member.set_row(row.1);
        }
        is_new
    }

    /// Counts a row no longer.
    pub(super) fn remove_row(&mut self, row: (ViewId, u64)) {
        self.rows.retain(|other| *other != row);
        self.member.set_row(self.rows.last().map_or(0, |(_, digest)| *digest));
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        // The names are ours as long as the lock is: nobody removes a live member's files.
        for name in [&self.names.door, &self.names.memory, &self.names.member] {
            self.folder.remove(name);
        }
        self.member.unlock();
        self.folder.clear();
    }
}

/// With the folder's lock held: clears away the dead, refuses a duplicate, and makes file and
/// socket.
fn take_place(
    folder: &Folder,
    names: &Names,
    identity: &Identity,
) -> Result<(MemberFile, DescriptorSocket), Error> {
    let path = folder.path();
    let failed = |action| move |errno| Error::from_errno(action, path, errno);
    folder.remove_the_dead().map_err(failed("cannot clear"))?;
    if let Some(file) = folder.open_file(&names.member).map_err(failed("cannot look into"))? {
        return Err(Error::DuplicateId {
            id: identity.node,
            group: folder.name().to_string(),
            pid: MemberFile::of(file).read().map_or(0, |statement| statement.pid),
        });
    }
    make(folder, names, identity).map_err(|error| {
        folder.remove(&names.memory);
        folder.remove(&names.making);
        let errno = rustix::io::Errno::from_io_error(&error);
        errno.map_or_else(
            || Error::Io { action: "cannot create a file in", path: path.into(), source: error },
            failed("cannot create a file in"),
        )
    })
}

fn make(
    folder: &Folder,
    names: &Names,
    identity: &Identity,
) -> std::io::Result<(MemberFile, DescriptorSocket)> {
    let socket = DescriptorSocket::bind(folder, &names.memory)?;
    // Under another name until it is locked: a peer that looks for the file without the folder's
    // lock must never find it without its owner's.
    let file: OwnedFd =
        openat(folder.as_fd(), &names.making, CREATE_FLAGS, Mode::RUSR | Mode::WUSR)?;
    flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive)?;
    let member = MemberFile::write(file, identity)?;
    renameat(folder.as_fd(), &names.making, folder.as_fd(), &names.member)?;
    Ok((member, socket))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::mounted::Mounted;

    #[test]
    fn a_folder_without_room_for_a_members_file_is_an_error_and_nothing_is_left() {
        let Some(place) = Mounted::new("files") else {
            println!("skipped: this user may not mount a small file system");
            return;
        };
        let (root, group) = (Root::under(place.path()), GroupName::new("late").expect("a name"));
        let filler = place.path().join("filler");
        let never = AtomicBool::new(false);
        let patience = Patience { until: Instant::now() + Duration::from_secs(9), cancel: &never };
        let identity =
            Identity { digest: 1, node: NodeId(1), incarnation: 1, sleeper_barrier: false };
        let claim = || OwnFiles::claim(&root, &group, &identity, &patience);
        let full = std::fs::write(&filler, vec![1; 1 << 20]);
        assert!(full.is_err() || claim().is_err(), "one MiB, and folders take none of it");
        let error = claim().expect_err("not a page is free");
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        assert!(!root.path().exists());
        std::fs::remove_file(filler).expect("removed");
        drop(claim().expect("there is room again"));
        assert!(!root.path().exists());
    }
}
