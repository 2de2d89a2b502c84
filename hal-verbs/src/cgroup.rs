//! The limits that the RDMA cgroup sets for this process: opened devices (`hca_handle`) and objects
//! on them (`hca_object`), which are queue pairs, queues, registrations and protection domains.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// A cgroup limit that is exhausted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsedUp {
    /// The device.
    pub(crate) device: String,
    /// The resource's name in the kernel.
    pub(crate) resource: String,
    /// The limit.
    pub(crate) most: u64,
    /// The file that sets the limit.
    pub(crate) file: PathBuf,
}

/// Returns whether this error means that a cgroup limit has been reached.
pub(crate) fn refuses(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::AGAIN.raw_os_error())
        || error.kind() == io::ErrorKind::WouldBlock
}

/// Returns the exhausted limit on the named device, or on any device if `None`, in this process's
/// cgroup or in one above it.
pub(crate) fn used_up(device: Option<&str>) -> Option<UsedUp> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    used_up_below(Path::new("/sys/fs/cgroup"), &own, device)
}

/// Returns the same for a process whose `/proc/self/cgroup` contains `own`.
fn used_up_below(root: &Path, own: &str, wanted: Option<&str>) -> Option<UsedUp> {
    own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let base = match controllers {
            "" => root.to_owned(),
            _ if controllers.split(',').any(|name| name == "rdma") => root.join("rdma"),
            _ => return None,
        };
        let folder = base.join(path.trim_start_matches('/'));
        let folders = folder.ancestors().take_while(|folder| folder.starts_with(&base));
        folders.into_iter().find_map(|folder| used_up_in(folder, wanted))
    })
}

fn used_up_in(folder: &Path, wanted: Option<&str>) -> Option<UsedUp> {
    let file = folder.join("rdma.max");
    let limits = std::fs::read_to_string(&file).ok()?;
    let used = std::fs::read_to_string(folder.join("rdma.current")).ok()?;
    // "max" does not parse as a number, and means no limit.
    let value = |line: &str, name: &str| -> Option<u64> {
        line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    };
    limits.lines().find_map(|limit| {
        let (device, limit) = limit.split_once(' ')?;
        let used = used.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '))?;
        let is_used_up = |resource: &str| {
            let most = value(limit, resource)?;
            (value(used, resource)? >= most).then(|| UsedUp {
                device: device.to_owned(),
                resource: resource.to_owned(),
                most,
                file: file.clone(),
            })
        };
        let is_meant = wanted.is_none_or(|wanted| wanted == device);
        ["hca_handle", "hca_object"].into_iter().find_map(is_used_up).filter(|_| is_meant)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a cgroup with these limits and usage.
    fn group(root: &Path, path: &str, limits: &str, used: &str) {
        let folder = root.join(path);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("rdma.max"), limits).expect("a file");
        std::fs::write(folder.join("rdma.current"), used).expect("a file");
    }

    #[test]
    fn exhausted_cgroup_limit_is_detected() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let free = "mlx5_0 hca_handle=1 hca_object=20\nrxe0 hca_handle=1 hca_object=7\n";
        group(root, "a/b", "rxe0 hca_handle=max hca_object=8\n", free);
        assert_eq!(used_up_below(root, "0::/a/b\n", Some("rxe0")), None);
        // The parent cgroup is exhausted.
        group(root, "a", "mlx5_0 hca_handle=1 hca_object=max\nrxe0 hca_object=7\n", free);
        let found = used_up_below(root, "0::/a/b\n", Some("rxe0")).expect("a limit");
        assert_eq!((found.resource.as_str(), found.most), ("hca_object", 7));
        assert_eq!(found.file, root.join("a/rdma.max"));
        let found = used_up_below(root, "0::/a/b\n", Some("mlx5_0")).expect("a limit");
        assert_eq!((found.resource.as_str(), found.most), ("hca_handle", 1));
        assert_eq!(used_up_below(root, "0::/a/b\n", Some("mlx5_1")), None);
    }

    #[test]
    fn cgroup_v1_hierarchy_is_read() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        group(
            root,
            "rdma/job",
            "rxe0 hca_handle=2 hca_object=max",
            "rxe0 hca_handle=2 hca_object=9",
        );
        let own = "12:memory:/job\n4:rdma:/job\n0::/\n";
        let found = used_up_below(root, own, Some("rxe0")).expect("a limit");
        assert_eq!((found.resource.as_str(), found.most), ("hca_handle", 2));
        assert_eq!(used_up_below(root, "12:memory:/job\n", Some("rxe0")), None);
    }
}
