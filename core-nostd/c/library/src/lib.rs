//! Tramontane's core for C: open, step, reserve, commit, upcall. Fixed membership, no heap.
//!
//! All memory is the caller's. Each function checks what it is given, as far as a pointer can be
//! checked, and returns a status; none blocks, and none panics: a program that links the library
//! without a function `tramontane_panicked` of its own shows that no panic can be reached.
//!
//! `unsafe` is here at the boundary alone: pointers become references, and memory becomes typed.

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

/// What a call came to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tramontane_status {
    /// It did what it says.
    TRAMONTANE_OK = 0,
    /// A pointer is null, or is not aligned.
    TRAMONTANE_BAD_POINTER = 1,
    /// The group is wrong: a member twice, a sender that is no member, a size of none or too large.
    TRAMONTANE_BAD_GROUP = 2,
    /// The rank is not in the group, or the subgroup is none.
    TRAMONTANE_NOT_A_MEMBER = 3,
    /// Rows or state are smaller than the group needs.
    TRAMONTANE_TOO_SMALL = 4,
    /// The fabric does not keep writes in order, or its limits are too small.
    TRAMONTANE_BAD_FABRIC = 5,
    /// A step found that state and memory do not belong together.
    TRAMONTANE_BROKEN = 6,
    /// No slot is free now: step the node, and try again.
    TRAMONTANE_FULL = 7,
    /// The message is larger than a slot takes.
    TRAMONTANE_TOO_LARGE = 8,
    /// The range lies outside of the row.
    TRAMONTANE_OUT_OF_ROW = 9,
    /// The slot was committed or dropped already.
    TRAMONTANE_NO_SLOT = 10,
}

/// Links only if nobody can get here, or if the program has such a function.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn tramontane_panicked() -> !;
    }
    // SAFETY: a program that does not define it does not link with this call.
    unsafe { tramontane_panicked() }
}
