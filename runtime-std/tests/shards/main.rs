//! Shards: replicas and clients over shared memory, TCP and RDMA.

mod calm;
mod clients;
mod rdma;
mod restarts;
mod support;
