//! A file system of one MiB in memory, so that tests can make allocations fail.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system, if this user may mount one.
pub(super) struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a file system for the test with this name.
    pub(super) fn new(name: &str) -> Option<Self> {
        let path = PathBuf::from(format!("/dev/shm/tramontane-unit-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder");
        let place = Self(path);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tramontane-test"]).arg(&place.0);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(place)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a child that another test is just starting may still hold a file on it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
        let _ = std::fs::remove_dir(&self.0);
    }
}
