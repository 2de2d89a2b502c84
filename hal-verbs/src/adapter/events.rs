//! What a device says of itself between calls.

/// An asynchronous event (`enum ibv_event_type`), as far as somebody acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsyncEvent {
    /// A completion queue ran over or failed: its [`CompletionQueue::id`].
    ///
    /// [`CompletionQueue::id`]: super::CompletionQueue::id
    CompletionQueueError(u64),
    /// A queue pair failed: its number.
    QueuePairError(u32),
    /// The device failed, or was taken away: nothing on it works any more.
    DeviceFatal,
    /// A port may carry traffic again.
    PortActive(u8),
    /// A port lost its link.
    PortError(u8),
    /// A port has another local identifier.
    LidChange(u8),
    /// A port's table of partition keys changed.
    PkeyChange(u8),
    /// A port's table of addresses changed.
    GidChange(u8),
    /// A port's subnet manager changed, or asks that addresses be looked at again.
    SubnetManager(u8),
    /// Anything else, by its number.
    Other(u32),
}
