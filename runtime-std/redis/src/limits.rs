//! Limits of the server.

/// The resources that clients may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerLimits {
    /// The maximum number of connections.
    pub(crate) clients_max: usize,
    /// The maximum number of bytes of replies that a client has not read. A client above it is
    /// disconnected.
    pub(crate) unsent_max: usize,
    /// The maximum number of bytes of incomplete requests, unanswered slow requests and unread
    /// replies of all clients together. Clients that need more are disconnected.
    pub(crate) memory_max: usize,
    /// The maximum number of bytes of an encoded request.
    pub(crate) request_max: usize,
    /// The maximum number of bytes of a batch with several requests.
    pub(crate) batch_max: usize,
}

/// The maximum number of sums with [long](crate::long_double::is_long) numbers in one batch.
pub(crate) const LONG_SUMS_MAX: usize = 32;
