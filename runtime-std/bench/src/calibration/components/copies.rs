//! Copies by size, and the memory's bandwidth.

use super::{REPETITIONS, pinned, time_ns};
use crate::error::BenchError;
use crate::spread::median;

/// Bytes that one size's copies take together, about.
const TOTAL_BYTES: usize = 1 << 24;

/// Repetitions of a copy whose bandwidth is measured.
const COPIES: usize = 32;

/// What the largest cache holds that a processor has for itself; a usual size where the operating
/// system does not tell.
fn own_cache_bytes() -> usize {
    const USUAL: usize = 1 << 20;
    let told = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size");
    told.ok().and_then(|text| kib(&text)).unwrap_or(USUAL)
}

/// Bytes of a size as the kernel writes it.
fn kib(text: &str) -> Option<usize> {
    text.trim().strip_suffix('K')?.parse::<usize>().ok().map(|kib| kib << 10)
}

/// How long one call takes that copies so many bytes, in ns: from and to memory that is used again
/// and again.
pub(in super::super) fn copy_ns(bytes: usize) -> Result<f64, BenchError> {
    pinned::on(0, || Ok(copies_ns(bytes)))
}

fn copies_ns(bytes: usize) -> f64 {
    let (source, mut target) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    let calls = (TOTAL_BYTES / bytes).clamp(1, 10_000);
    let copies = |_| {
        let all = time_ns(|| {
            for _ in 0..calls {
                target.copy_from_slice(std::hint::black_box(&source));
                std::hint::black_box(&mut target);
            }
        });
        all.0 / calls as f64
    };
    median(&(0..REPETITIONS).map(copies).collect::<Vec<_>>())
}

/// Bytes that two processors copy together in a microsecond where their own caches do not help, but
/// one that all share does, as with rings: each is read and written, and counts twice.
pub(in super::super) fn memory_bytes_per_us() -> Result<f64, BenchError> {
    let (bytes, start) = (2 * own_cache_bytes(), &std::sync::Barrier::new(2));
    let call = || {
        let (source, mut target) = (vec![1_u8; bytes], vec![0_u8; bytes]);
        // The first time finds the pages.
        target.copy_from_slice(&source);
        start.wait();
        let (took_ns, ()) = time_ns(|| {
            for _ in 0..COPIES {
                target.copy_from_slice(std::hint::black_box(&source));
                std::hint::black_box(&mut target);
            }
        });
        Ok(2.0 * (COPIES * bytes) as f64 * 1_000.0 / took_ns)
    };
    Ok(pinned::together([0, 1], [call, call])?.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_copy_takes_longer() {
        let (small, large) = (copy_ns(64).expect("it runs"), copy_ns(1 << 20).expect("it runs"));
        assert!(large > 10.0 * small, "{small} {large}");
    }
}
