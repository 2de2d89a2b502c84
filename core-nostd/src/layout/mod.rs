//! Layouts: from a configuration to byte offsets, sizes and a digest. Everything is `const fn`: a
//! partition computes its memory sizes at compile time and a host computes them at start-up, but
//! both get the same numbers.
//!
//! Each member owns one row. A row has a header, then for each subgroup of its owner a control
//! block, followed by the ring if the owner sends in that subgroup:
//!
//! ```text
//! | header 128 | control of a subgroup | ring: w slots | control of the next | ...
//! ```
//!
//! If the membership may change (feature `views`), the columns of the view protocol follow at the
//! end.
//!
//! If block groups share the rows, their cells precede the subgroups, at the same offset in every
//! row (`channels`, with the feature `blocks`).
//!
//! In a logged subgroup (`durable`, with that feature), the control block has one more cell.
//!
//! In a subgroup with relays (`relays`, with that feature), members pass on the ring's slots.
//!
//! With checks, each cell and each slot carries its own check (`checks`).
//!
//! Rows of different members differ in size, because a row has no ring for a subgroup in which its
//! owner does not send. Sources: Spindle II-B (the table), II-C (the slots); requirements SMC-1 and
//! BAT-4.
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
#[cfg(feature = "relays")]
mod relays;
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
#[cfg(feature = "relays")]
pub use relays::{RelayedRing, Stripes};
#[cfg(feature = "views")]
pub(crate) use views::FLAGS_PER_WORD;
#[cfg(feature = "views")]
pub use views::{JOINS_MAX, ViewBlock, ViewColumn};
