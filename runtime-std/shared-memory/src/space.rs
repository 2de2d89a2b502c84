//! What a group takes in shared memory, and whether that is to be had.

use rustix::process::{Resource, getrlimit};

use super::error::Error;

/// A doorbell's memory: one page, since no smaller piece can be mapped.
pub(super) const BELL_BYTES: usize = 4096;

/// The unit in which memory is handed out, for the estimate of what a group needs.
const PAGE: u64 = 4096;

/// What a group takes in shared memory, given its rows' sizes.
pub(super) fn group_bytes(rows: impl Iterator<Item = usize>) -> u64 {
    whole_pages(rows.flat_map(|row| [row, BELL_BYTES]))
}

/// What memory of these sizes takes: whole pages.
pub(super) fn whole_pages(sizes: impl Iterator<Item = usize>) -> u64 {
    let pages =
        |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(PAGE).saturating_mul(PAGE);
    sizes.fold(0_u64, |sum, bytes| sum.saturating_add(pages(bytes)))
}

/// Refuses what cannot fit, before any of it is allocated: all members say the same then. `needed`
/// is what all members take, `held` what some of them have taken already.
pub(super) fn check_space(needed: u64, held: impl FnOnce() -> u64) -> Result<(), Error> {
    // In this order: what a peer allocates in between counts twice for us, not against us.
    let free = available_memory().unwrap_or(u64::MAX);
    let missing = needed.saturating_sub(held());
    if missing > free { Err(Error::NoMemory { needed: missing, free }) } else { Ok(()) }
}

/// The error of an allocation that failed, with what is free now.
///
/// Less than the machine's memory where the process may not make a file of that length.
pub(super) fn no_memory(needed: u64) -> Error {
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    Error::NoMemory { needed, free: available_memory().unwrap_or(u64::MAX).min(limit) }
}

/// Memory and swap that the kernel thinks it can give, if it says so. An estimate, since other
/// programs allocate too; but where there is none left, the kernel does not refuse: it kills.
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
    fn what_is_held_already_is_not_missing() {
        assert!(check_space(u64::MAX, || u64::MAX).is_ok());
        assert!(check_space(4096, || u64::MAX).is_ok());
        let error = check_space(u64::MAX, || 4096).expect_err("too much");
        let missing = u64::MAX - 4096;
        assert!(matches!(error, Error::NoMemory { needed, .. } if needed == missing), "{error}");
    }

    #[test]
    fn the_kernel_says_how_much_memory_it_can_give() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
