//! A small file system that can be full.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::TestFolder;

/// A file system in memory, unmounted on drop.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system of that size. Returns `None` if this process may not mount.
    pub fn mount(place: &TestFolder, size: &str) -> Option<Self> {
        let path = place.path().join("disk");
        std::fs::create_dir(&path).expect("a folder");
        let size = format!("size={size}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output();
        let is_mounted = mount.is_ok_and(|mount| mount.status.success());
        if !is_mounted {
            eprintln!("inconclusive: this user may not mount a file system");
        }
        is_mounted.then_some(Self(path))
    }

    pub fn remount(&self, how: &str) {
        let how = format!("remount,{how}");
        let mount = Command::new("mount").args(["-o", &how]).arg(&self.0).status();
        assert!(mount.expect("a status").success());
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn folder(&self) -> String {
        self.0.join("data").to_str().expect("a path").to_owned()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
