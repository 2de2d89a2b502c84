//! Shards: replicas and clients over shared memory and TCP.

mod calm;
mod support;
