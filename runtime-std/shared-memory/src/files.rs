//! A member's files in the group's folder: their creation and removal.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat, renameat};
use tramontane_core::ids::{NodeId, ViewId};

use super::descriptors::DescriptorSocket;
use super::error::Error;
use super::folder::{Folder, Patience};
use super::member_file::{Identity, MemberFile, State};
use super::root::{GroupName, Root};

/// Flags for creating a file: never over an existing one, and never through a link.
const CREATE_FLAGS: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The names of a member's files in the folder.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The member file, whose lock shows that the member is alive.
    pub(super) member: CString,
    /// The socket that receives its peers' descriptors.
    pub(super) memory: CString,
    /// The member's control socket, which is created by another component.
    pub(super) door: CString,
    making: CString,
}

impl Names {
    pub(super) fn of(id: NodeId) -> Self {
        // Digits contain no zero byte.
        let name = |kind: &str| CString::new(format!("{kind}-{id}")).unwrap_or_default();
        Self {
            member: name("member"),
            memory: name("memory"),
            door: name("door"),
            making: name(".new"),
        }
    }
}

/// The maximum number of files and sockets that a member keeps after they have lost their names.
/// Peers find the new ones within a heartbeat.
const FORMER_MAX: usize = 8;

/// A member's file, whose lock shows that the member is alive, and its socket, as created together.
#[derive(Debug)]
struct Made {
    member: MemberFile,
    socket: DescriptorSocket,
    /// The device and inode numbers of both.
    identities: [(u64, u64); 2],
}

impl Made {
    /// Returns which of the two still have their names in a folder.
    fn names_in<'n>(&self, folder: &Folder, names: &'n Names) -> [Option<&'n CStr>; 2] {
        let [member, memory] = self.identities;
        [(&names.member, member), (&names.memory, memory)].map(|(name, identity)| {
            (folder.identity_of(name) == Ok(identity)).then_some(name.as_c_str())
        })
    }
}

/// A member's files in the folder, and its rows. The names are removed when this is dropped.
#[derive(Debug)]
pub(super) struct OwnFiles {
    folder: Arc<Folder>,
    names: Names,
    now: Made,
    /// Files that have lost their names. Peers know this member by them until they find the new
    /// ones. The newest is last.
    former: VecDeque<Made>,
    /// Views that have not ended, each with the digest of its rows. The newest is last.
    rows: Vec<(ViewId, u64)>,
}

impl OwnFiles {
    /// Claims the member's id in the group: creates and locks the member's file, and creates its
    /// socket.
    pub(super) fn claim(
        root: &Root,
        group: &GroupName,
        identity: &Identity,
        patience: &Patience<'_>,
    ) -> Result<Self, Error> {
        let names = Names::of(identity.node);
        let take = |folder: &Folder| take_place(folder, &names, identity);
        let (folder, now) = Folder::enter(root, group, patience, take)?;
        Ok(Self { folder: Arc::new(folder), names, now, former: VecDeque::new(), rows: Vec::new() })
    }

    /// Returns whether both files still have their names, in a folder that also still has its own.
    pub(super) fn are_in_place(&self) -> bool {
        self.folder.is_in_place()
            && self.now.names_in(&self.folder, &self.names).iter().all(Option::is_some)
    }

    /// Creates the files again, in the folder that now has the group's name. Peers that know the
    /// former files keep them.
    pub(super) fn make_again(
        &mut self,
        root: &Root,
        group: &GroupName,
        identity: &Identity,
        patience: &Patience<'_>,
    ) -> Result<(), Error> {
        let take = |folder: &Folder| {
            // One of the two names may still exist.
            let own = self.now.names_in(folder, &self.names);
            own.into_iter().flatten().for_each(|name| {
                folder.remove(name);
            });
            take_place(folder, &self.names, identity)
        };
        let (folder, now) = Folder::enter(root, group, patience, take)?;
        self.folder = Arc::new(folder);
        let former = std::mem::replace(&mut self.now, now);
        self.now.member.set_row(self.newest_row());
        former.member.set_state(State::MadeAgain);
        self.former.push_back(former);
        if self.former.len() > FORMER_MAX {
            self.former.pop_front();
        }
        Ok(())
    }

    /// Returns the folder that contains the names.
    pub(super) const fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    /// Returns the sockets at which peers may know this member.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &DescriptorSocket> {
        self.all().map(|made| &made.socket)
    }

    /// Publishes this member's state in all its files.
    pub(super) fn set_state(&self, state: State) {
        self.all().for_each(|made| made.member.set_state(state));
    }

    fn all(&self) -> impl Iterator<Item = &Made> {
        self.former.iter().chain([&self.now])
    }

    /// Adds a row. Returns false if the view already has one with that digest.
    pub(super) fn add_row(&mut self, row: (ViewId, u64)) -> bool {
        let is_new = !self.rows.contains(&row);
        if is_new {
            self.rows.push(row);
            self.now.member.set_row(row.1);
        }
        is_new
    }

    /// Removes a row.
    pub(super) fn remove_row(&mut self, row: (ViewId, u64)) {
        self.rows.retain(|other| *other != row);
        self.now.member.set_row(self.newest_row());
    }

    fn newest_row(&self) -> u64 {
        self.rows.last().map_or(0, |(_, digest)| *digest)
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        // The names belong to this member as long as it holds the lock, because no process removes
        // a live member's files. If one has removed them anyway, another process may have claimed
        // the id.
        let [member, memory] = self.now.names_in(&self.folder, &self.names);
        let door = member.map(|_| self.names.door.as_c_str());
        [door, memory, member].into_iter().flatten().for_each(|name| {
            self.folder.remove(name);
        });
        self.all().for_each(|made| made.member.unlock());
        self.folder.clear();
    }
}

/// Removes dead members' files, refuses a duplicate, and creates the file and the socket. The
/// folder's lock must be held.
fn take_place(folder: &Folder, names: &Names, identity: &Identity) -> Result<Made, Error> {
    let path = folder.path();
    let failed = |action| move |errno| Error::from_errno(action, path, errno);
    folder.remove_the_dead().map_err(failed("cannot clear"))?;
    if let Some(file) = folder.open_file(&names.member).map_err(failed("cannot look into"))? {
        let pid = MemberFile::of(file).read().map_or(0, |statement| statement.pid);
        return Err(Error::DuplicateId {
            id: identity.node,
            group: folder.name().to_string(),
            pid,
            folder: std::fs::read_link(format!("/proc/{pid}/cwd")).ok(),
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

fn make(folder: &Folder, names: &Names, identity: &Identity) -> std::io::Result<Made> {
    let socket = DescriptorSocket::bind(folder, &names.memory)?;
    // The file has a different name until it is locked, because a peer that looks for it without
    // the folder's lock must never find it without its owner's lock.
    let file: OwnedFd =
        openat(folder.as_fd(), &names.making, CREATE_FLAGS, Mode::RUSR | Mode::WUSR)?;
    flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive)?;
    let member = MemberFile::write(file, identity)?;
    renameat(folder.as_fd(), &names.making, folder.as_fd(), &names.member)?;
    let identities = [folder.identity_of(&names.member)?, folder.identity_of(&names.memory)?];
    Ok(Made { member, socket, identities })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::mounted::Mounted;

    #[test]
    fn full_folder_is_an_error_leaving_no_files() {
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
