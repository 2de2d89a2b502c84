//! Counters of the fabric, for comparison with the design's predictions.

/// Defines the counters and their addition from one list, so that no counter is forgotten.
macro_rules! counters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: u64,)+ }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)+
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, more: Self) {
                $(self.$field += more.$field;)+
            }
        }
    };
}

counters! {
    /// Counts since the start. For `n` lists of `w` writes each to one peer that is awake, with
    /// completions according to [`Limits::signal_every`](crate::Limits) and without tokens, the
    /// design predicts: `n` lists, `n*w` writes and `n` doorbells; `n*w / signal_every` signalled,
    /// rounded down, if `w` divides it; as many completions; and, as inline writes, all writes that
    /// are no longer than the device sends inline.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    pub struct Counters {
        /// Number of lists that were accepted.
        pub lists: u64,
        /// Number of writes in those lists that have bytes.
        pub writes: u64,
        /// Total size of those writes in bytes.
        pub bytes: u64,
        /// Number of writes that were sent inline.
        pub inline: u64,
        /// Number of guards that could not be sent inline and were staged.
        pub staged: u64,
        /// Number of calls that pass requests to the device: one per list, and one per separate
        /// request.
        pub doorbells: u64,
        /// Number of requests with a completion.
        pub signalled: u64,
        /// Number of request completions taken from the queue.
        pub completions: u64,
        /// Number of lists that found no room.
        pub refused: u64,
        /// Number of notices sent, including rings that follow a list. They are the cost of sleep.
        pub notices_sent: u64,
        /// Notices received.
        pub notices_taken: u64,
        /// Number of updates sent: one per list if the fabric keeps the order of writes, plus those
        /// that only report progress.
        pub updates: u64,
        /// Total size of those updates in bytes, including all headers.
        pub update_bytes: u64,
        /// Number of updates received and applied.
        pub updates_taken: u64,
        /// Number of blocks written to peers, each with one doorbell and one completion.
        pub blocks: u64,
        /// Number of messages about blocks that were sent, each with one doorbell.
        pub block_messages: u64,
        /// Number of messages about blocks that were received.
        pub block_messages_taken: u64,
    }
}
