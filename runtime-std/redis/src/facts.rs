//! Facts about the server and its group, for INFO.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Instant;

/// The state of the group and of its keys, as INFO shows it.
#[derive(Debug, Default)]
pub(crate) struct GroupFacts {
    pub(crate) view: u64,
    pub(crate) members: Vec<u32>,
    pub(crate) keys: usize,
    pub(crate) expiring: usize,
}

/// Facts about this server.
pub(crate) struct ServerFacts {
    pub(crate) node: u32,
    pub(crate) group: String,
    pub(crate) port: u16,
    pub(crate) is_logged: bool,
    pub(crate) clients_max: usize,
    pub(crate) started: Instant,
    pub(crate) clients: AtomicUsize,
    pub(crate) connections: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) batches: AtomicU64,
    /// Bytes of incomplete requests, unanswered slow requests and unread replies.
    pub(crate) memory: AtomicUsize,
    pub(crate) group_facts: Box<dyn Fn() -> GroupFacts + Send + Sync>,
}
