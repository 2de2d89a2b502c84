//! The checks: the promises of an atomic multicast, each with its id, and the judge of all of them.
//!
//! `docs/checks.md` in this crate defines each check. The checks are implemented twice, efficiently
//! here and naively under `tests/`, and both implementations must agree. This module knows no
//! implementation of multicast; it only reads a history.
//!
//! A [`Judge`] takes records one by one. It holds each message from the first record that names it
//! until no node is expected to deliver it. It then pops the message from its deliverers' queues,
//! judges its deliveries, counts it in a class of equivalent messages, and forgets it. A forgotten
//! message leaves its number in a run of numbers of one prefix, and 32 bytes, of which at most 64
//! MiB are kept; the bytes are needed only if an incarnation delivers the message again. If too
//! little is known by then, the checks that depend on the message are inconclusive, never held. The
//! nodes that had to deliver each class are determined at the end, when every fate is known.
//!
//! | file | contents |
//! |---|---|
//! | `registry`, `verdict` | the checks and their outcomes |
//! | `judge`, `finish` | records in, a verdict out |
//! | `roster`, `groups`, `name` | nodes and their incarnations, groups, names of messages |
//! | `ledger`, `message`, `queue`, `sweep` | held messages, and forgetting them |
//! | `class`, `archive` | forgotten messages |
//! | `integrity` | single deliveries |
//! | `due`, `who_delivers`, `liveness` | the nodes that must deliver each message |
//! | `sender_order`, `total_order`, `acyclic_order`, `prefix_order`, `tangle`, `order_cases` | order |
//! | `views` | views |
//! | `membership` | whether views follow the members |
//! | `durability`, `debt`, `trail` | durable deliveries |
//! | `quiescence` | rest |
//! | `tally`, `mixing`, `memory` | counts, tables, peak memory |
//!
//! If a message is definitely refused only after it has been delivered and forgotten, it still
//! breaks `integrity-sent`, but other checks keep what they have already counted for it.
//!
//! Memory is bounded by the number of messages in flight, unless the history itself prevents a
//! bound: by messages that no node delivers or sends, by a member that never starts in a group
//! without views or whose records come after all others, or by names that are not `prefix/NUMBER`,
//! each of which takes 64 bits.

mod acyclic_order;
mod archive;
mod class;
mod debt;
mod due;
mod durability;
mod finish;
mod groups;
mod integrity;
mod judge;
mod ledger;
mod liveness;
mod membership;
mod memory;
mod message;
mod mixing;
mod name;
mod order_cases;
mod prefix_order;
mod queue;
mod quiescence;
mod registry;
mod roster;
mod sender_order;
mod sweep;
mod tally;
mod tangle;
#[cfg(test)]
mod testing;
mod total_order;
mod trail;
mod verdict;
mod views;
mod who_delivers;

pub use judge::{Judge, judge};
pub use registry::{Check, CheckId, Strength};
pub use verdict::{Finding, Judgement, Outcome, Verdict, Witness};
