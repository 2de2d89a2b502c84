//! Tramontane's core for C: open, step, reserve, commit, upcall. The membership is fixed, and no
//! heap is used.
//!
//! The caller provides all memory. Each function checks its arguments, as far as a pointer can be
//! checked, and returns a status. No function blocks or panics: a program that links the library
//! without defining a function `tramontane_panicked` thereby shows that no panic can be reached.
//!
//! `unsafe` occurs only here, at the boundary, where pointers become references and raw memory
//! becomes typed.

#![no_std]
#![allow(non_camel_case_types, reason = "the names are those of C")]

mod fabric;
mod layout;
mod node;
mod outbox;
mod state;

use core::panic::PanicInfo;

pub use fabric::*;
pub use layout::*;
pub use node::*;
pub use outbox::*;

/// The result of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tramontane_status {
    /// The call succeeded.
    TRAMONTANE_OK = 0,
    /// A pointer is null or not aligned.
    TRAMONTANE_BAD_POINTER = 1,
    /// The group is invalid: a member is listed twice, a sender is not a member, or a size is zero
    /// or too large.
    TRAMONTANE_BAD_GROUP = 2,
    /// The rank is not in the group, or the subgroup does not exist.
    TRAMONTANE_NOT_A_MEMBER = 3,
    /// Rows or state are smaller than the group requires.
    TRAMONTANE_TOO_SMALL = 4,
    /// The fabric does not keep writes in order, or its limits are too small.
    TRAMONTANE_BAD_FABRIC = 5,
    /// A step found that state and memory do not belong together.
    TRAMONTANE_BROKEN = 6,
    /// No slot is free now: step the node, then retry.
    TRAMONTANE_FULL = 7,
    /// The message is larger than a slot.
    TRAMONTANE_TOO_LARGE = 8,
    /// The range is outside the row.
    TRAMONTANE_OUT_OF_ROW = 9,
    /// The slot has already been committed or dropped.
    TRAMONTANE_NO_SLOT = 10,
}

/// This links only if it is unreachable or if the program defines the called function.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn tramontane_panicked() -> !;
    }
    // SAFETY: a program that does not define the function does not link with this call.
    unsafe { tramontane_panicked() }
}
