//! The location of groups: one folder per user, and in it one folder per run of a group.

use std::ffi::CStr;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

use super::error::Error;
use super::folder::Folder;
use super::futex::Fences;

/// Overrides the file system, for tests and for machines whose `/dev/shm` is too small.
const VARIABLE: &str = "TRAMONTANE_SHM_DIR";

/// The prefix of the name of a user's folder. It is followed by the user's number.
const PREFIX: &str = "tramontane-";

/// The flags for opening a folder: never through a symbolic link.
pub(super) const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A group's name, usable as a folder's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupName(String);

impl GroupName {
    /// Checks a name: 1 to 64 of `[A-Za-z0-9._-]`, not starting with a dot.
    ///
    /// # Errors
    /// [`Error::BadName`].
    pub fn new(name: &str) -> Result<Self, Error> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let good =
            (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(allowed);
        if good { Ok(Self(name.to_owned())) } else { Err(Error::BadName(name.to_owned())) }
    }

    /// Returns a name that no other run has, consisting of the prefix and 64 random bits.
    ///
    /// # Errors
    /// Returns [`Error::BadName`] if the prefix is not a valid name of at most 47 characters.
    pub fn unique(prefix: &str) -> Result<Self, Error> {
        Self::new(&format!("{prefix}-{:016x}", random()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for GroupName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::new(name)
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Returns a random number that is not zero.
pub(super) fn random() -> u64 {
    loop {
        let mut bytes = [0; 8];
        // A request for 8 bytes is never truncated. Before the pool is ready, the call waits.
        if getrandom(&mut bytes, GetRandomFlags::empty()) == Ok(8) {
            let number = u64::from_ne_bytes(bytes);
            if number != 0 {
                return number;
            }
        }
    }
}

/// The folder of all groups of this user: `/dev/shm/tramontane-<uid>`.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
    fences: Fences,
}

impl Root {
    /// Returns the folder in `/dev/shm`, or in the folder named by `TRAMONTANE_SHM_DIR`.
    #[must_use]
    pub fn from_env() -> Self {
        match std::env::var_os(VARIABLE) {
            Some(parent) if !parent.is_empty() => Self::under(Path::new(&parent)),
            _ => Self::under(Path::new("/dev/shm")),
        }
    }

    /// Returns the folder in `parent`, which must exist and should be on a file system in memory
    /// (any other file system works, but slowly).
    #[must_use]
    pub fn under(parent: &Path) -> Self {
        let path = parent.join(format!("{PREFIX}{}", geteuid().as_raw()));
        Self { path, fences: Fences::default() }
    }

    /// Chooses which side pays for the fences of the doorbells of processes that claim their ids
    /// through this root. Members may differ.
    #[must_use]
    pub fn with_fences(mut self, fences: Fences) -> Self {
        self.fences = fences;
        self
    }

    pub(super) const fn fences(&self) -> Fences {
        self.fences
    }

    /// Returns the folder's path. The folder exists only while a group does.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folders of other users beside it. Their groups cannot be joined.
    #[must_use]
    pub fn of_other_users(&self) -> Vec<PathBuf> {
        let beside = self.path.parent().and_then(|parent| std::fs::read_dir(parent).ok());
        let is_root = |path: &PathBuf| {
            let user = path.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX));
            *path != self.path
                && user.is_some_and(|user| user.parse::<u32>().is_ok())
                && path.is_dir()
        };
        let mut others: Vec<_> = beside
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(is_root)
            .collect();
        others.sort();
        others
    }

    /// Removes the folders of earlier runs that no process uses, and returns the names of those
    /// groups. Groups that are running or just being started are left alone.
    ///
    /// # Errors
    /// Fails if the root belongs to another user or cannot be read. A folder that cannot be removed
    /// is reported and left in place.
    pub fn sweep(&self) -> Result<Vec<String>, Error> {
        let Some(root) = self.open()? else { return Ok(Vec::new()) };
        let mut swept = Vec::new();
        for name in entries(root.as_fd()).map_err(|errno| self.error("cannot list", errno))? {
            let Some(name) = name.to_str().ok().and_then(|name| GroupName::new(name).ok()) else {
                continue;
            };
            match Folder::open(self, root.as_fd(), &name) {
                Ok(Some(folder)) => {
                    if folder.remove_if_dead() {
                        tracing::info!(group = %name, "removed the files of an earlier run");
                        swept.push(name.0);
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(group = %name, %error, "not swept"),
            }
        }
        self.remove_if_empty();
        Ok(swept)
    }

    /// Opens the folder, creating it if needed. It may be removed at any time while it is empty.
    /// Operations in it then fail with `NOENT`, and the caller starts over.
    pub(super) fn open_or_make(&self) -> Result<OwnedFd, Error> {
        loop {
            match mkdirat(CWD, &self.path, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.error("cannot create", errno)),
            }
            if let Some(root) = self.open()? {
                return Ok(root);
            }
        }
    }

    /// Opens the folder if it exists, and checks that only this user can write to it.
    fn open(&self) -> Result<Option<OwnedFd>, Error> {
        match openat(CWD, &self.path, FOLDER_FLAGS, Mode::empty()) {
            Ok(folder) => {
                check_owner(folder.as_fd(), &self.path)?;
                Ok(Some(folder))
            }
            Err(Errno::NOENT) => Ok(None),
            // Another user's folder cannot even be opened, so its owner is checked first.
            Err(_) if self.is_anothers() => {
                Err(Error::NotPermitted { path: self.path.clone(), reason: ANOTHERS })
            }
            Err(errno) => Err(self.error("cannot open", errno)),
        }
    }

    fn is_anothers(&self) -> bool {
        statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| stat.st_uid != geteuid().as_raw())
    }

    /// Removes the folder if it is empty.
    pub(super) fn remove_if_empty(&self) {
        // Usually the folder is not empty. If it no longer exists, that is fine too.
        let _ = unlinkat(CWD, &self.path, AtFlags::REMOVEDIR);
    }

    fn error(&self, action: &'static str, errno: Errno) -> Error {
        Error::from_errno(action, &self.path, errno)
    }
}

/// The reason for refusing a folder with this user's name that another user created first, which
/// anyone can do on a shared file system.
const ANOTHERS: &str = "it belongs to another user; set TRAMONTANE_SHM_DIR to a folder of your own, the same for all \
     members, or have its owner or root remove it";

/// Other users must not be able to put files or links where this process looks for its own.
pub(super) fn check_owner(folder: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let stat = fstat(folder).map_err(|errno| Error::from_errno("cannot examine", path, errno))?;
    let refuse = |reason| Err(Error::NotPermitted { path: path.to_path_buf(), reason });
    if stat.st_uid != geteuid().as_raw() {
        return refuse(ANOTHERS);
    }
    if stat.st_mode & 0o077 != 0 {
        return refuse("other users may read it; remove it, or set its mode to 700");
    }
    Ok(())
}

/// Returns the names in a folder, without `.` and `..`.
pub(super) fn entries(folder: BorrowedFd<'_>) -> rustix::io::Result<Vec<std::ffi::CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_group_names_are_refused() {
        for good in ["a", "prices.v2", "A-1_b", &"x".repeat(64)] {
            assert!(GroupName::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "é", "a\0", "a\n", &"x".repeat(65)] {
            assert!(matches!(GroupName::new(bad), Err(Error::BadName(_))), "{bad:?}");
        }
    }

    #[test]
    fn unique_group_names_differ() {
        let one = GroupName::unique("demo").expect("a name");
        assert_ne!(one, GroupName::unique("demo").expect("a name"));
        assert!(one.as_str().starts_with("demo-"));
        assert!(GroupName::unique("no/good").is_err());
    }
}
