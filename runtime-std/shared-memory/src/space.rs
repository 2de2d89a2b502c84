//! What a group takes in shared memory, and whether that is to be had.

use std::os::fd::OwnedFd;

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;

use super::error::Error;
use super::folder::{Folder, Patience};

/// A doorbell's file: one page, since no smaller piece can be mapped.
pub(super) const BELL_BYTES: usize = 4096;

/// The unit in which memory is handed out, for the estimate of what a group needs.
pub(super) const PAGE: u64 = 4096;

/// What a group takes in shared memory, given its row files' sizes.
pub(super) fn group_bytes(row_files: impl Iterator<Item = usize>) -> u64 {
    file_bytes(row_files.flat_map(|row| [row, BELL_BYTES]))
}

/// What files of these sizes take: whole pages.
pub(super) fn file_bytes(sizes: impl Iterator<Item = usize>) -> u64 {
    let pages =
        |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(PAGE).saturating_mul(PAGE);
    sizes.fold(0_u64, |sum, bytes| sum.saturating_add(pages(bytes)))
}

/// Gives a file its pages, all of them, or says that there are not enough.
pub(super) fn allocate(
    folder: &Folder,
    file: &OwnedFd,
    bytes: usize,
    patience: &Patience<'_>,
) -> Result<(), Error> {
    let length = u64::try_from(bytes).unwrap_or(u64::MAX);
    loop {
        patience.check()?;
        return match fallocate(file, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            // A signal; what was allocated is given back, and its handler may have set `cancel`.
            Err(Errno::INTR) => continue,
            Err(Errno::NOSPC | Errno::FBIG | Errno::NOMEM) => Err(no_space(folder, length)),
            Err(errno) => Err(Error::from_errno("cannot allocate memory in", folder.path(), errno)),
        };
    }
}

/// Refuses what cannot fit, before any of it is allocated: all members say the same then. `needed`
/// is what the files of all members take; those that are there already are the ones whose names are
/// in `part`.
pub(super) fn check_space(
    folder: &Folder,
    needed: u64,
    part: impl Fn(&[u8]) -> bool,
) -> Result<(), Error> {
    // In this order: what a peer allocates in between counts twice for us, not against us.
    let free = free_bytes(folder);
    let held = folder
        .allocated(part)
        .map_err(|errno| Error::from_errno("cannot examine", folder.path(), errno))?;
    let missing = needed.saturating_sub(held);
    if missing > free {
        return Err(Error::NoSpace { path: folder.path().to_path_buf(), needed: missing, free });
    }
    Ok(())
}

/// The error of an allocation that failed, with what is free now.
pub(super) fn no_space(folder: &Folder, needed: u64) -> Error {
    Error::NoSpace { path: folder.path().to_path_buf(), needed, free: free_bytes(folder) }
}

/// What can still be allocated: the file system's limit, or the machine's memory where that is
/// less.
///
/// A file system in memory may be larger than the memory that is left, and then the kernel does not
/// refuse: it kills. An estimate, since other programs allocate too.
fn free_bytes(folder: &Folder) -> u64 {
    let file_system = match fstatvfs(folder.as_fd()) {
        // One without limit says that it has no blocks at all.
        Ok(stat) if stat.f_blocks > 0 => stat.f_bavail.saturating_mul(stat.f_frsize),
        _ => u64::MAX,
    };
    file_system.min(available_memory().unwrap_or(u64::MAX))
}

/// Memory and swap that the kernel thinks it can give, if it says so.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let available = kilobytes("MemAvailable")?.saturating_add(kilobytes("SwapFree").unwrap_or(0));
    Some(available.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_takes_whole_pages_and_a_bell_a_member() {
        assert_eq!(group_bytes([4096, 4097].into_iter()), 4096 + 8192 + 2 * 4096);
        assert_eq!(group_bytes([usize::MAX, usize::MAX].into_iter()), u64::MAX);
    }

    #[test]
    fn the_kernel_says_how_much_memory_it_can_give() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
