//! From a configuration to byte offsets, sizes and a digest, all in `const fn`: a partition
//! computes its memory at compile time, a host at start-up, and both get the same numbers.
//!
//! Each member owns one row. A row holds a header, then for each subgroup that its owner belongs to
//! a control block, and behind it, if the owner sends there, the ring:
//!
//! ```text
//! | header 128 | control of a subgroup | ring: w slots | control of the next | ...
//! ```
//!
//! Where membership may change (the feature `views`), the columns of the view protocol follow at
//! the end.
//!
//! Where block groups share the rows, their cells stand before the subgroups, at the same place in
//! every row (`channels`, with the feature `blocks`).
//!
//! In a subgroup that is logged (`durable`, with that feature), the control block has one more
//! cell.
//!
//! With checks, each cell and each slot carries its own (`checks`).
//!
//! Rows of different members differ in size: a row has no room for a ring that its owner does not
//! fill. Sources: Spindle II-B (the table), II-C (the slots); requirements SMC-1 and BAT-4.
//!
//! Requirement: LAY-1.

mod bounds;
#[cfg(feature = "blocks")]
mod channels;
mod checks;
mod compare;
mod configuration;
mod digest;
#[cfg(feature = "durable")]
mod durable;
mod health;
mod limits;
mod map;
mod processor;
#[cfg(feature = "views")]
mod views;

pub use bounds::StepBounds;
pub use compare::DigestMismatch;
pub use configuration::{Delivery, Group, LayoutError, Subgroup};
#[cfg(feature = "tram")]
pub(crate) use digest::Digest;
pub use health::HeaderCell;
pub use limits::{
    BLOCK, CACHE_LINE, CHANNEL_BYTES, MEMBERS_MAX, MESSAGE_MAX, ROW_MAX, SLOT_ALIGN, SLOT_HEADER,
    SLOT_HEADER_CHECKED, SUBGROUPS_MAX, WINDOW_MAX,
};
pub use map::{ControlCell, Layout, RingShape, StateSizes};
pub use processor::{ByteOrder, LineSize};
#[cfg(feature = "views")]
pub(crate) use views::FLAGS_PER_WORD;
#[cfg(feature = "views")]
pub use views::{JOINS_MAX, ViewBlock, ViewColumn};
