//! The only copy of a block, made by the receiver's processor from the sender's memory into the
//! receiver's.
//!
//! There are two ways to store. A normal store first reads the cache line that it overwrites. A
//! streaming store does not, and leaves the caches to the data being read: it is faster if the
//! target is not in the caches, and slower if it is. For successive blocks into a large memory, the
//! target is never in the caches, whatever the length of a block, so `Stores::into_memory` chooses
//! by the size of the memory. `docs/lab-notes/blocks-on-shared-memory.md` gives the gains of both.

use std::ptr::NonNull;

/// The number of bytes copied at a time. With short pieces, other channels and the polling thread
/// do not wait long.
pub const PIECE_BYTES: usize = 256 * 1024;

/// The size in bytes from which block memory is written with streaming stores. At this size, both
/// are equally fast; smaller memory is faster with normal stores.
const COLD_BYTES_MIN: usize = 8 << 20;

/// The minimum block length for streaming stores, in bytes. For shorter blocks, streaming gains
/// less than its fence costs.
const STREAM_BYTES_MIN: usize = 16 << 10;

/// The ways to store bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Through the caches, as the system's `memcpy` does.
    Cached,
    /// Past the caches, if the processor supports it; otherwise like `Cached`.
    Streaming,
}

impl Stores {
    /// Returns the faster way to store a block of `block_bytes` bytes into memory of `memory_bytes`
    /// bytes.
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

    /// The number of bytes copied per turn: two cache lines, each stored as a whole, because a line
    /// that is stored in parts is also written in parts.
    const TURN_BYTES: usize = 128;
    const VECTOR_BYTES: usize = 32;

    /// # Safety
    /// The requirements are those of `super::copy`. In addition, the processor must have AVX.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn stream(source: NonNull<u8>, target: NonNull<u8>, bytes: usize) {
        // The target may begin and end in the middle of a cache line. Those parts use normal
        // stores.
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
                // Written out, because a closure passed to an array's `map` uses AVX only if the
                // compiler inlines it, which it does only at its highest optimization level.
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
        // Streaming stores can be overtaken by later stores, even by releases. The fence prevents
        // that.
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_and_streaming_copies_touch_exact_range() {
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
