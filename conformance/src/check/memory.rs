//! The peak memory of this process.

/// Returns the peak memory in bytes, if the system reports it.
pub(super) fn bytes_max() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn peak_memory_includes_freed_memory() {
        let held = vec![1_u8; 40 << 20];
        assert!(held.iter().all(|byte| *byte == 1));
        drop(held);
        assert!(super::bytes_max().is_some_and(|bytes| bytes > 40 << 20));
    }
}
