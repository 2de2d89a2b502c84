//! The five functions that the compiler may call and that a C library would otherwise provide.
//!
//! They use the string instructions, because the compiler would turn a loop into a call to the
//! function itself.

use core::arch::asm;

/// Copies `length` bytes between ranges that do not overlap.
///
/// # Safety
/// `source` must be readable and `target` writable for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(target: *mut u8, source: *const u8, length: usize) -> *mut u8 {
    // SAFETY: the caller vouches for both ranges, and the direction flag is clear by the ABI.
    unsafe {
        asm!("rep movsb", inout("rcx") length => _, inout("rdi") target => _,
            inout("rsi") source => _, options(nostack, preserves_flags));
    }
    target
}

/// Copies `length` bytes between ranges that may overlap.
///
/// # Safety
/// The caller's promise is that of `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(target: *mut u8, source: *const u8, length: usize) -> *mut u8 {
    if (target as usize).wrapping_sub(source as usize) >= length {
        // SAFETY: by the caller's promise; going up, no byte is overwritten before it has been
        // read.
        return unsafe { memcpy(target, source, length) };
    }
    // SAFETY: by the caller's promise; the target is above the source, so the copy goes down, from
    // the last byte (`length` is not 0 here), and the direction flag is cleared again.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") length => _,
            inout("rdi") target.wrapping_add(length).wrapping_sub(1) => _,
            inout("rsi") source.wrapping_add(length).wrapping_sub(1) => _, options(nostack));
    }
    target
}

/// Fills `length` bytes.
///
/// # Safety
/// `target` must be writable for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(target: *mut u8, value: i32, length: usize) -> *mut u8 {
    // SAFETY: the caller vouches for the range, and the direction flag is clear by the ABI.
    unsafe {
        asm!("rep stosb", inout("rcx") length => _, inout("rdi") target => _, in("al") value as u8,
            options(nostack, preserves_flags));
    }
    target
}

/// Compares `length` bytes. The result is negative, zero or positive.
///
/// # Safety
/// Both ranges must be readable for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    let mut at = 0;
    while at < length {
        // SAFETY: `at` is below `length`, for which the caller vouches.
        let (a, b) = unsafe { (left.wrapping_add(at).read(), right.wrapping_add(at).read()) };
        if a != b {
            return i32::from(a).wrapping_sub(i32::from(b));
        }
        at = at.wrapping_add(1);
    }
    0
}

/// Compares `length` bytes. The result is zero if they are equal.
///
/// # Safety
/// The caller's promise is that of `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { memcmp(left, right, length) }
}
