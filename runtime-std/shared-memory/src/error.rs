//! The errors that can prevent a member from joining. Each is one line that says what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tramontane_core::fabric::TooManyRegions;
use tramontane_core::ids::{NodeId, Rank, ViewId};

/// The reason why a member could not join its group, or why a folder could not be swept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The group's name is not valid for a folder.
    #[error(
        "the group name {0:?} is not valid; use 1 to 64 letters, digits, '.', '_' or '-', not \
         starting with '.'"
    )]
    BadName(String),
    /// The local rank is not in the layout.
    #[error("rank {rank} is not in a group of {members}; ranks start at 0")]
    NotAMember {
        /// The rank that was given.
        rank: Rank,
        /// The number of members in the layout.
        members: usize,
    },
    /// The layout has a different node at that rank.
    #[error(
        "rank {rank} is node {listed} in this view, and this process is node {node}; give the \
         rank of this node"
    )]
    OtherMember {
        /// The rank that was given.
        rank: Rank,
        /// The node that has that rank.
        listed: NodeId,
        /// The local node.
        node: NodeId,
    },
    /// The memory of a view has already been allocated for the same list of members.
    #[error(
        "the memory of view {view} already exists; retire the view before creating its memory \
         again"
    )]
    ViewIsThere {
        /// The view.
        view: ViewId,
    },
    /// The maximum number of block memories has been reached.
    #[error(transparent)]
    TooManyRegions(#[from] TooManyRegions),
    /// A region cannot be created.
    #[error(
        "region {region} cannot be created: {reason}; create each region once, before the first \
         view"
    )]
    RegionRefused {
        /// Its number.
        region: u16,
        /// The reason.
        reason: &'static str,
    },
    /// This process has left the group.
    #[error("node {node} has left the group; restart it to rejoin")]
    HasLeft {
        /// The node.
        node: NodeId,
    },
    /// A running process is already this member.
    #[error(
        "member {id} of group '{group}' is already running (process {pid}{}); stop it or use a \
         different id, or rename the group if that process belongs to a different group",
        folder.as_ref().map_or_else(String::new, |folder| format!(" in {}", folder.display()))
    )]
    DuplicateId {
        /// The id in use.
        id: NodeId,
        /// The group.
        group: String,
        /// The process id of that process, as it recorded it.
        pid: u64,
        /// The working directory of that process, if the system reveals it.
        folder: Option<PathBuf>,
    },
    /// A peer is joining with a different configuration.
    #[error(
        "member {peer} was started with a different configuration; give all members the same \
         options"
    )]
    WrongDigest {
        /// The peer.
        peer: NodeId,
    },
    /// A peer's program uses a different layout for its files.
    #[error(
        "member {peer} runs a different version of the program; run the same version everywhere"
    )]
    WrongVersion {
        /// The peer.
        peer: NodeId,
    },
    /// There is not enough memory for the rows or the block memory.
    #[error(
        "not enough shared memory: {} needed, {} free; free some, or use a smaller window, \
         message size or group",
        Bytes(*needed), Bytes(*free)
    )]
    NoMemory {
        /// The number of bytes still to be allocated, for the whole group or for one memory.
        needed: u64,
        /// Bytes available.
        free: u64,
    },
    /// The kernel cannot prevent peers from writing to a row.
    #[error(
        "this kernel cannot seal memory against writers (F_SEAL_FUTURE_WRITE); use Linux 5.1 or \
         newer, or a different fabric"
    )]
    CannotSeal,
    /// There is not enough space for the files of the group.
    #[error(
        "not enough shared memory in {}: {} needed, {} free; free some, or set TRAMONTANE_SHM_DIR to a folder with room",
        path.display(), Bytes(*needed), Bytes(*free)
    )]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// The number of bytes still to be allocated.
        needed: u64,
        /// Bytes available.
        free: u64,
    },
    /// The path belongs to another user, or access to it is not permitted.
    #[error("cannot use {}: {reason}", path.display())]
    NotPermitted {
        /// Where.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// Another process has held the folder's lock for longer than any normal use takes.
    #[error("{} is locked by another process; check whether a process was stopped during its start", path.display())]
    Busy {
        /// Which folder.
        path: PathBuf,
    },
    /// The caller asked to stop waiting.
    #[error("interrupted while waiting for the other members")]
    Cancelled,
    /// The operating system refused another operation.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The operation, such as "cannot create".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The error reported by the system.
        source: std::io::Error,
    },
}

impl Error {
    /// Creates the error for a failed system call on a path.
    pub(super) fn from_errno(action: &'static str, path: &Path, errno: Errno) -> Self {
        let path = path.to_path_buf();
        match errno {
            Errno::ACCESS | Errno::PERM => Self::NotPermitted { path, reason: "permission denied" },
            Errno::ROFS => Self::NotPermitted { path, reason: "the file system is read-only" },
            Errno::LOOP | Errno::NOTDIR => {
                Self::NotPermitted { path, reason: "it is not a folder" }
            }
            // There is no room even for a folder or an empty file: the file system has run out of
            // pages or inodes.
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace { path, needed: 4096, free: 0 },
            other => Self::Io { action, path, source: other.into() },
        }
    }
}

/// A size, displayed in a suitable unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(out, "{} B", self.0);
        }
        let unit = (self.0.ilog2() / 10).min(6);
        #[allow(clippy::cast_precision_loss)]
        let value = self.0 as f64 / (1_u64 << (10 * unit)) as f64;
        write!(out, "{value:.1} {}", UNITS[unit as usize - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_one_line_with_remedy() {
        let path = PathBuf::from("/dev/shm/x");
        let group = String::from("g");
        let errors = [
            Error::BadName("a/b".into()),
            Error::NotAMember { rank: Rank(4), members: 3 },
            Error::OtherMember { rank: Rank(1), listed: NodeId(4), node: NodeId(5) },
            Error::ViewIsThere { view: ViewId(3) },
            TooManyRegions.into(),
            Error::RegionRefused { region: 9, reason: "a view has already been created" },
            Error::HasLeft { node: NodeId(5) },
            Error::DuplicateId { id: NodeId(2), group, pid: 77, folder: Some(path.clone()) },
            Error::WrongDigest { peer: NodeId(2) },
            Error::WrongVersion { peer: NodeId(2) },
            Error::NoMemory { needed: 5 << 30, free: 1536 },
            Error::CannotSeal,
            Error::NoSpace { path: path.clone(), needed: 4096, free: 0 },
            Error::NotPermitted { path: path.clone(), reason: "it belongs to another user" },
            Error::Busy { path: path.clone() },
            Error::Cancelled,
            Error::from_errno("cannot create", &path, Errno::NFILE),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() > 20, "{text}");
        }
    }

    #[test]
    fn sizes_are_printed_in_suitable_units() {
        assert_eq!(Bytes(1023).to_string(), "1023 B");
        assert_eq!(Bytes(1536).to_string(), "1.5 KiB");
        assert_eq!(Bytes(5 << 30).to_string(), "5.0 GiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "16.0 EiB");
    }
}
