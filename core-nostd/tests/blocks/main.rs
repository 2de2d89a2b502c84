//! Block multicast: how a member of a block group handles its peers' cells and blocks, and large
//! messages in the total order.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::integer_division,
    clippy::panic
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/weak.rs"]
mod weak;

mod bad_input;
mod checked_cells;
mod closing;
mod completing;
mod large_messages;
mod many_members;
mod member;
mod root;
mod schedules;
mod weak_order;
mod whole_groups;
mod words;
