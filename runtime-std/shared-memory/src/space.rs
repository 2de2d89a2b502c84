//! The shared memory that a group needs, and whether it is available.

use rustix::process::{Resource, getrlimit};

use super::error::Error;

/// Size of a doorbell in bytes: one page, the smallest unit that can be mapped.
pub(super) const BELL_BYTES: usize = 4096;

/// Unit of allocation, for the estimate of a group's needs.
const PAGE: u64 = 4096;

/// Returns the number of bytes that a group takes in shared memory, given its rows' sizes.
pub(super) fn group_bytes(rows: impl Iterator<Item = usize>) -> u64 {
    whole_pages(rows.flat_map(|row| [row, BELL_BYTES]))
}

/// Returns the number of bytes that memories of these sizes take, in whole pages.
pub(super) fn whole_pages(sizes: impl Iterator<Item = usize>) -> u64 {
    let pages =
        |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(PAGE).saturating_mul(PAGE);
    sizes.fold(0_u64, |sum, bytes| sum.saturating_add(pages(bytes)))
}

/// Refuses a group that cannot fit before any of its memory is allocated, so that all members
/// report the same error. `needed` is the memory that all members take together, and `held` the
/// memory that some of them have already taken.
pub(super) fn check_space(needed: u64, held: impl FnOnce() -> u64) -> Result<(), Error> {
    // The order matters: if a peer allocates in between, its memory is counted twice in favour of
    // this process, not against it.
    let free = available_memory().unwrap_or(u64::MAX);
    let missing = needed.saturating_sub(held());
    if missing > free { Err(Error::NoMemory { needed: missing, free }) } else { Ok(()) }
}

/// Returns the error of a failed allocation, with the memory that is free now.
///
/// The free memory is less than the machine's if the process may not make a file of that length.
pub(super) fn no_memory(needed: u64) -> Error {
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    Error::NoMemory { needed, free: available_memory().unwrap_or(u64::MAX).min(limit) }
}

/// Returns the memory and swap that the kernel considers available, if it reports them. This is an
/// estimate, because other programs allocate too. When no memory is left, the kernel kills
/// processes instead of refusing.
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
    fn group_size_includes_whole_pages_and_doorbells() {
        assert_eq!(group_bytes([4096, 4097].into_iter()), 4096 + 8192 + 2 * 4096);
        assert_eq!(group_bytes([usize::MAX, usize::MAX].into_iter()), u64::MAX);
    }

    #[test]
    fn memory_already_held_is_not_required_again() {
        assert!(check_space(u64::MAX, || u64::MAX).is_ok());
        assert!(check_space(4096, || u64::MAX).is_ok());
        let error = check_space(u64::MAX, || 4096).expect_err("too much");
        let missing = u64::MAX - 4096;
        assert!(matches!(error, Error::NoMemory { needed, .. } if needed == missing), "{error}");
    }

    #[test]
    fn kernel_reports_available_memory() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
