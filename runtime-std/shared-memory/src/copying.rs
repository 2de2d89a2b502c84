//! The one copy of a block: from the sender's memory into the receiver's, by the receiver's
//! processor.
//!
//! Two ways to store. A usual store first reads the line that it is about to overwrite; a streaming
//! store does not, and leaves the caches to what is read: so it is the faster where the target is
//! not in the caches, and the slower where it is. Blocks that go into a large memory one after the
//! other find it cold, however long each is; so `Stores::into_memory` chooses by the memory.
//! `docs/lab-notes/blocks-on-shared-memory.md` says what each gained.

use std::ptr::NonNull;

/// Bytes that are copied at a time: so few that other channels, and the thread that polls, do
/// not wait long.
pub const PIECE_BYTES: usize = 256 * 1024;

/// From this size on, block memory is stored into past the caches. Where both are as fast, a
/// smaller one is faster with usual stores.
const COLD_BYTES_MIN: usize = 8 << 20;

/// Blocks that are shorter are stored as usual: what streaming gains is less than what its fence
/// costs.
const STREAM_BYTES_MIN: usize = 16 << 10;

/// How bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// As the system's `memcpy` does.
    Cached,
    /// Past the caches, where the processor can; as `Cached` where it cannot.
    Streaming,
}

impl Stores {
    /// What is best for a block of a length, into memory of a size; both in bytes.
    #[must_use]
    pub(super) const fn into_memory(memory_bytes: usize, block_bytes: usize) -> Self {
        if memory_bytes < COLD_BYTES_MIN || block_bytes < STREAM_BYTES_MIN {
            Self::Cached
        } else {
            Self::Streaming
        }
    }
}

/// Copies bytes from memory that another process may write meanwhile: then it yields some mix, as
/// hardware does that reads late. When it returns, all that was stored is visible before whatever
/// the caller stores.
///
/// # Safety
/// So many bytes can be read from `source` and written at `target`, which do not overlap; nobody of
/// this process touches `target` meanwhile.
pub unsafe fn copy(source: NonNull<u8>, target: NonNull<u8>, bytes: usize, stores: Stores) {
    #[cfg(target_arch = "x86_64")]
    if stores == Stores::Streaming && is_x86_feature_detected!("avx") {
        // SAFETY: the caller's promise; the processor has AVX.
        unsafe { x86::stream(source, target, bytes) };
        return;
    }
    let _ = stores;
    // SAFETY: the caller's promise.
    unsafe { source.copy_to_nonoverlapping(target, bytes) };
}

/// Streaming stores of x86-64.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    use std::ptr::NonNull;

    /// What one turn copies: two lines, each stored whole, since a line that is stored in parts is
    /// written in parts.
    const TURN_BYTES: usize = 128;
    const VECTOR_BYTES: usize = 32;

    /// # Safety
    /// As `super::copy`; and the processor has AVX.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn stream(source: NonNull<u8>, target: NonNull<u8>, bytes: usize) {
        // The target's first line may begin before it, and its last may end behind it: those are
        // stored as usual.
        let head = target.align_offset(64).min(bytes);
        let turns = (bytes - head) / TURN_BYTES;
        let tail = bytes - head - turns * TURN_BYTES;
        // SAFETY: head, turns and tail are `bytes` bytes together; the turns' target is aligned to
        // a line.
        unsafe {
            source.copy_to_nonoverlapping(target, head);
            let (mut from, mut to) = (source.add(head), target.add(head));
            for _ in 0..turns {
                let (load, store) =
                    (from.cast::<__m256i>().as_ptr(), to.cast::<__m256i>().as_ptr());
                // One by one: a closure that an array's `map` calls knows of no AVX unless the
                // compiler takes it apart, which it does at its highest level alone.
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
        // Streaming stores pass the stores behind them, even releases; not this.
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_copy_the_same_and_nothing_beside_it() {
        let source: Vec<u8> = (0..5000_u32).map(|index| (index % 253) as u8).collect();
        for stores in [Stores::Cached, Stores::Streaming] {
            for from in [0, 1, 31, 64] {
                for to in [0, 1, 33, 63, 64] {
                    for bytes in [0, 1, 62, 63, 64, 127, 128, 129, 191, 192, 193, 4096, 4700] {
                        let mut target = vec![0xee; 5000];
                        let base = NonNull::from(&source[from..]).cast();
                        let into = NonNull::from(&mut target[to..]).cast();
                        // SAFETY: 64 and 4700 are below 5000, twice; two vectors do not overlap.
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
