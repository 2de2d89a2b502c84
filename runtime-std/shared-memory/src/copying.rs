//! The only copy of a block: from the sender's memory into the receiver's, by the receiver's
//! processor.
//!
//! There are two ways to store. A normal store first reads the cache line that it overwrites. A
//! streaming store does not, and leaves the caches to the data being read: it is faster if the
//! target is not in the caches, and slower if it is. Successive blocks into a large memory find it
//! coldat any length, so `Stores::into_memory` chooses by the size of the memory.
//! `docs/lab-notes/blocks-on-shared-memory.md` has the gains of both.

use std::ptr::NonNull;

/// Bytes that are copied at a time. Short pieces keep other channels, and the polling thread, from
/// waiting long.
pub const PIECE_BYTES: usize = 256 * 1024;

/// Block memory of this size or more is written with streaming stores. At the size where both are
/// equally fast, smaller memory is faster with normal stores.
const COLD_BYTES_MIN: usize = 8 << 20;

/// Shorter blocks are written with normal stores, because streaming gains less than its fence
/// costs.
const STREAM_BYTES_MIN: usize = 16 << 10;

/// Ways to store bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Through the caches, as the system's `memcpy` does.
    Cached,
    /// Past the caches, if the processor supports it; otherwise like `Cached`.
    Streaming,
}

impl Stores {
    /// Returns the best way for a block of `block_bytes` into memory of `memory_bytes`.
    #[must_use]
    pub(super) const fn into_memory(memory_bytes: usize, block_bytes: usize) -> Self {
        if memory_bytes < COLD_BYTES_MIN || block_bytes < STREAM_BYTES_MIN {
            Self::Cached
        } else {
            Self::Streaming
        }
    }
}

/// Copies bytes from memory that another process may be writing. The result is then a mix of old
/// and new bytes, as from hardware that reads late. When this returns, all its stores are visible
/// before any later store of the caller.
///
/// # Safety
/// `bytes` bytes must be readable at `source` and writable at `target`, and must not overlap.
/// Nothing in this process may access `target` in the meantime.
pub unsafe fn copy(source: NonNull<u8>, target: NonNull<u8>, bytes: usize, stores: Stores) {
    #[cfg(target_arch = "x86_64")]
    if stores == Stores::Streaming && is_x86_feature_detected!("avx") {
        // SAFETY: by the caller's promise; the processor has AVX.
        unsafe { x86::stream(source, target, bytes) };
        return;
    }
    let _ = stores;
    // SAFETY: by the caller's promise.
    unsafe { source.copy_to_nonoverlapping(target, bytes) };
}

/// Streaming stores of x86-64.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    use std::ptr::NonNull;

    /// Bytes copied per turn: two cache lines, each stored whole, because a line that is stored in
    /// parts is written in parts.
    const TURN_BYTES: usize = 128;
    const VECTOR_BYTES: usize = 32;

    /// # Safety
    /// The requirements of `super::copy`; and the processor must have AVX.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn stream(source: NonNull<u8>, target: NonNull<u8>, bytes: usize) {
        // The target may begin in the middle of a line and end in the middle of another. Those
        // parts use normal stores.
        let head = target.align_offset(64).min(bytes);
        let turns = (bytes - head) / TURN_BYTES;
        let tail = bytes - head - turns * TURN_BYTES;
        // SAFETY: head, turns and tail are `bytes` bytes together; the target of the turns is
        // aligned to a line.
        unsafe {
            source.copy_to_nonoverlapping(target, head);
            let (mut from, mut to) = (source.add(head), target.add(head));
            for _ in 0..turns {
                let (load, store) =
                    (from.cast::<__m256i>().as_ptr(), to.cast::<__m256i>().as_ptr());
                // Written out: a closure that an array's `map` calls does not use AVX unless the
                // compiler inlines it, which it does only at its highest level.
                let (a, b) = (_mm256_loadu_si256(load), _mm256_loadu_si256(load.add(1)));
                let (c, d) = (_mm256_loadu_si256(load.add(2)), _mm256_loadu_si256(load.add(3)));
                _mm256_stream_si256(store, a);
                _mm256_stream_si256(store.add(1), b);
                _mm256_stream_si256(store.add(2), c);
                _mm256_stream_si256(store.add(3), d);
                (from, to) = (from.add(TURN_BYTES), to.add(TURN_BYTES));
            }
            from.copy_to_nonoverlapping(to, tail);
        }
        const _: () = assert!(TURN_BYTES == 4 * VECTOR_BYTES);
        // Streaming stores can be overtaken by later stores, even releases. The fence prevents
        // that.
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_store_kinds_copy_exact_range() {
        let source: Vec<u8> = (0..5000_u32).map(|index| (index % 253) as u8).collect();
        for stores in [Stores::Cached, Stores::Streaming] {
            for from in [0, 1, 31, 64] {
                for to in [0, 1, 33, 63, 64] {
                    for bytes in [0, 1, 62, 63, 64, 127, 128, 129, 191, 192, 193, 4096, 4700] {
                        let mut target = vec![0xee; 5000];
                        let base = NonNull::from(&source[from..]).cast();
                        let into = NonNull::from(&mut target[to..]).cast();
                        // SAFETY: 64 and 4700 are below 5000, twice; the two vectors do not
                        // overlap.
                        unsafe { copy(base, into, bytes, stores) };
                        let rest = target.split_off(to + bytes);
                        let here = target.split_off(to);
                        assert_eq!(
                            here,
                            &source[from..from + bytes],
                            "{stores:?} {from} {to} {bytes}"
                        );
                        assert!(
                            target.iter().chain(&rest).all(|byte| *byte == 0xee),
                            "{stores:?} {from} {to} {bytes}"
                        );
                    }
                }
            }
        }
    }
}
