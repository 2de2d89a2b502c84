//! The checks: what an atomic multicast promises, each promise with its id, and the judge of them
//! all.
//!
//! `docs/checks.md` beside this crate defines each of them; the code states them twice, fast here
//! and naively under `tests/`, and the two must agree. Nothing in here knows an implementation: it
//! reads a history.
//!
//! A [`Judge`] takes records one by one. It holds each message from the first record that names it
//! until nobody is expected to deliver it any more; then it pops it out of its deliverers' queues,
//! judges its deliveries, counts it in a class of messages that are alike, and forgets it. What is
//! left of a forgotten message is its number in a run of numbers of one prefix, and 32 bytes, of
//! which at most 64 MiB are held: they are needed only if a start delivers the message again. If
//! too little is known of it then, checks that depend on it are inconclusive, never held. Which
//! node had to deliver which message is asked at the end, of whole classes, when every fate is
//! known.
//!
//! | file | what it holds |
//! |---|---|
//! | `registry`, `verdict` | the checks, and what is said of them |
//! | `judge`, `finish` | records in, a verdict out |
//! | `roster`, `groups`, `name` | nodes and their starts, groups, names of messages |
//! | `ledger`, `message`, `queue`, `sweep` | held messages, and forgetting them |
//! | `class`, `archive` | forgotten messages |
//! | `integrity` | single deliveries |
//! | `due`, `who_delivers`, `liveness` | which nodes have to deliver what |
//! | `sender_order`, `total_order`, `acyclic_order`, `prefix_order`, `tangle`, `order_cases` | order |
//! | `views` | views |
//! | `durability`, `debt`, `trail` | what is durable |
//! | `quiescence` | rest |
//! | `tally`, `mixing`, `memory` | counts, tables, the memory that was used |
//!
//! A message that is surely refused only after it was delivered and forgotten is
//! `integrity-sent`'s, as ever; but what other checks had counted of it stays counted.
//!
//! Memory is bounded by what is in flight, apart from what a history makes unbounded by itself:
//! messages that nobody delivers or nobody sent; a member that never starts in a group without
//! views, or whose records come after all others'; names that are not `prefix/NUMBER`, of which 64
//! bits each are held.

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
