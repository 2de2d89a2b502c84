//! A disk that can lose power. Afterwards it contains exactly the synced data.
//!
//! The disk is a file system in user space for a node's storage folder, served by a thread of the
//! driver. So it sees every write of a program: through the kernel's cache or past it (`O_DIRECT`),
//! by mapped memory, by `io_uring`, or from a static binary. A preloaded library would miss all of
//! these. The disk does not see `sync` and `syncfs`, which the kernel does not forward, so they
//! make nothing durable. Nor does it see files outside the storage folder.
//!
//! The disk needs `/dev/fuse` and the permission to mount.

mod requests;
mod tree;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use requests::{DiskRequest, REQUEST_BYTES_MAX};
use tree::Tree;

/// The shell script that mounts a disk on its second argument, with [`OPTIONS`] as its first. The
/// kernel's end stays open in the shell as [`DEVICE`], and the driver takes it from the shell,
/// because a device has to be opened in the namespace in which it is mounted.
pub(super) const MOUNT: &str = "exec 3<>/dev/fuse; mount -i -t fuse -o \"$1\" power \"$2\"";

/// The mount options.
pub(super) const OPTIONS: &str =
    "fd=3,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,nosuid,nodev";

/// The descriptor in that shell.
const DEVICE: RawFd = 3;

/// A disk that can lose power.
#[derive(Clone, Debug)]
pub(super) struct Power(Arc<Mutex<MountedDisk>>);

#[derive(Debug)]
struct MountedDisk {
    tree: Tree,
    has_power: bool,
}

impl Power {
    /// Serves the disk that a process has mounted, until it is unmounted.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(super) fn serve(process: u32) -> io::Result<Self> {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        let process = pidfd_open(process.ok_or(io::ErrorKind::NotFound)?, PidfdFlags::empty())?;
        let device = File::from(pidfd_getfd(process, DEVICE, PidfdGetfdFlags::empty())?);
        let power = Self(Arc::new(Mutex::new(MountedDisk { tree: Tree::new(), has_power: true })));
        let served = power.clone();
        std::thread::Builder::new()
            .name("disk".to_owned())
            .spawn(move || served.answer_all(&device))?;
        Ok(power)
    }

    fn disk(&self) -> MutexGuard<'_, MountedDisk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer_all(&self, mut device: &File) {
        let mut buffer = vec![0; REQUEST_BYTES_MAX];
        loop {
            match device.read(&mut buffer) {
                Ok(bytes) => {
                    let request = buffer.get(..bytes).and_then(DiskRequest::read);
                    let mut disk = self.disk();
                    let MountedDisk { tree, has_power } = &mut *disk;
                    let answer = request.and_then(|request| request.answer(tree, *has_power));
                    drop(disk);
                    // A process that was killed after its request receives no answer.
                    let _ = answer.map(|answer| device.write(&answer));
                }
                Err(error) => match Errno::from_io_error(&error) {
                    // The request was cancelled.
                    Some(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                    _ => return,
                },
            }
        }
    }

    /// Cuts the power while `kill` runs, which kills every process that uses the disk. Their later
    /// requests fail.
    pub(super) fn cut(&self, kill: impl FnOnce()) {
        let mut disk = self.disk();
        kill();
        disk.tree.lose();
        disk.has_power = false;
    }

    /// Restores the power.
    pub(super) fn restore(&self) {
        self.disk().has_power = true;
    }
}
