//! Counters of the fabric, for comparison with the design's predictions.

/// Counts since the start. For `n` lists of `w` writes each to one peer that is awake, with
/// completions according to [`Limits::signal_every`](crate::Limits) and without tokens, the design
/// predicts: `n` lists, `n*w` writes and `n` doorbells; `n*w / signal_every` signalled, rounded
/// down, if `w` divides it; as many completions; and inline every write that is not longer than the
/// device takes inline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Lists that were accepted.
    pub lists: u64,
    /// Writes in them that have bytes.
    pub writes: u64,
    /// Bytes in those writes.
    pub bytes: u64,
    /// Writes that went inline.
    pub inline: u64,
    /// Guards that did not fit inline and were staged.
    pub staged: u64,
    /// Calls that hand requests to the device: one per list, and one per separate request.
    pub doorbells: u64,
    /// Requests with a completion.
    pub signalled: u64,
    /// Completions of requests that were taken off the queue.
    pub completions: u64,
    /// Lists that found no room.
    pub refused: u64,
    /// Notices sent, including rings that follow a list: the cost of sleeping.
    pub notices_sent: u64,
    /// Notices received.
    pub notices_taken: u64,
    /// Updates sent: one per list if the fabric keeps the order of writes, and those that only
    /// report what was processed.
    pub updates: u64,
    /// Bytes of those updates, including all heads.
    pub update_bytes: u64,
    /// Updates received and applied.
    pub updates_taken: u64,
    /// Blocks written to peers: a doorbell and a completion each.
    pub blocks: u64,
    /// Messages about blocks that were sent: a doorbell each.
    pub block_messages: u64,
    /// Messages about blocks that were received.
    pub block_messages_taken: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, more: Self) {
        // Lists every field, so that a forgotten counter does not compile.
        let Self {
            lists,
            writes,
            bytes,
            inline,
            staged,
            doorbells,
            signalled,
            completions,
            refused,
            notices_sent,
            notices_taken,
            updates,
            update_bytes,
            updates_taken,
            blocks,
            block_messages,
            block_messages_taken,
        } = more;
        self.lists += lists;
        self.writes += writes;
        self.bytes += bytes;
        self.inline += inline;
        self.staged += staged;
        self.doorbells += doorbells;
        self.signalled += signalled;
        self.completions += completions;
        self.refused += refused;
        self.notices_sent += notices_sent;
        self.notices_taken += notices_taken;
        self.updates += updates;
        self.update_bytes += update_bytes;
        self.updates_taken += updates_taken;
        self.blocks += blocks;
        self.block_messages += block_messages;
        self.block_messages_taken += block_messages_taken;
    }
}
