//! The order of writes on devices that keep none: it is violated without updates, and holds with
//! them. The tests use fake devices that place writes and bytes in any order, in virtual time.

mod group;

#[path = "write_order/bench.rs"]
mod bench;
#[path = "write_order/choosing.rs"]
mod choosing;
#[path = "write_order/cost.rs"]
mod cost;
#[path = "write_order/credits.rs"]
mod credits;
#[path = "write_order/nodes.rs"]
mod nodes;
#[path = "write_order/ordering.rs"]
mod ordering;
