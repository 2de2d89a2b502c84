//! Limits on commands that wait to be sent.

/// Limits of a replicated state machine at one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicatedOptions {
    /// The maximum number of commands that wait until they can be sent. More are refused with
    /// [`NotAnswered::Overloaded`](super::NotAnswered::Overloaded).
    pub waiting_max: usize,
    /// The maximum number of bytes of these commands. One command may exceed it.
    pub waiting_bytes_max: usize,
    /// The number of earlier versions of the state that this member keeps, for
    /// [`state_at`](super::Replicated::state_at). If zero, it keeps none. Clients of shards keep
    /// none.
    pub history: u64,
}

impl ReplicatedOptions {
    /// Returns whether a command of `bytes` bytes must not wait after `waiting` commands with
    /// `waiting_bytes` bytes in total.
    pub(super) const fn is_full(&self, waiting: usize, waiting_bytes: usize, bytes: usize) -> bool {
        waiting >= self.waiting_max
            || waiting > 0 && waiting_bytes.saturating_add(bytes) > self.waiting_bytes_max
    }
}

impl Default for ReplicatedOptions {
    fn default() -> Self {
        Self { waiting_max: 10_000, waiting_bytes_max: 64 << 20, history: 0 }
    }
}
