//! Shards: replicas and clients over shared memory and TCP.

mod calm;
mod clients;
mod restarts;
mod support;
