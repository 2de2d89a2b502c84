//! Shards: replicas and clients over shared memory, TCP and RDMA.

mod calm;
mod clients;
mod durable;
#[path = "../../local/src/free_addresses.rs"]
mod free_addresses;
mod many_clients;
mod rdma;
mod restarts;
mod support;
