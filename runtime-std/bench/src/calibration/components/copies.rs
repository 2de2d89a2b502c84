//! Copies by size, and the memory's bandwidth.

use tramontane_shared_memory::copying::{COLD_BYTES_MIN, Stores, copy_slice};

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

/// Block memory of more bytes is stored into past the caches.
pub(in super::super) const FAR_BYTES: usize = COLD_BYTES_MIN - 1;

/// How long a copy of a large block past the caches takes, in ns a byte.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct FarCopies {
    /// While nobody else copies.
    pub(in super::super) alone_ns: f64,
    /// While another processor copies the same block: the later of both.
    pub(in super::super) shared_ns: f64,
}

/// Copies of a block that is larger than what is stored as usual, one processor at a time and two
/// at once.
pub(in super::super) fn far_copies() -> Result<FarCopies, BenchError> {
    const BYTES: usize = 2 * COLD_BYTES_MIN;
    let (source, start) = (&vec![1_u8; BYTES], &std::sync::Barrier::new(2));
    let copier = |is_second: bool| {
        move || {
            let mut target = vec![0_u8; BYTES];
            let mut copy = || {
                copy_slice(std::hint::black_box(source), &mut target, Stores::Streaming);
                std::hint::black_box(&mut target);
            };
            // The first time finds the pages.
            copy();
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..REPETITIONS {
                start.wait();
                times[0].push(if is_second { 0.0 } else { time_ns(&mut copy).0 });
                start.wait();
                times[1].push(time_ns(&mut copy).0);
            }
            Ok(times)
        }
    };
    let [first, second] = pinned::together([0, 1], [copier(false), copier(true)])?;
    let later = first[1].iter().zip(&second[1]).map(|(one, other)| one.max(*other));
    Ok(FarCopies {
        alone_ns: median(&first[0]) / BYTES as f64,
        shared_ns: median(&later.collect::<Vec<_>>()) / BYTES as f64,
    })
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

    #[test]
    fn a_copy_past_the_caches_takes_its_time() {
        let FarCopies { alone_ns, shared_ns } = far_copies().expect("it runs");
        assert!(alone_ns > 0.0 && shared_ns > 0.0, "{alone_ns} {shared_ns}");
    }
}
