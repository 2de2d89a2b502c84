//! Replicated state machines, whose members are threads of this process.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod answers;
mod durable;
mod ends;
mod large;
mod refusals;
mod shard_majorities;
mod shard_sessions;
mod shards;
mod support;
mod versions;
