//! Asynchronous events of a device.

/// An asynchronous event (`enum ibv_event_type`), as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsyncEvent {
    /// A completion queue, given by its [`CompletionQueue::id`], overflowed or failed.
    ///
    /// [`CompletionQueue::id`]: super::CompletionQueue::id
    CompletionQueueError(u64),
    /// The queue pair with this number failed.
    QueuePairError(u32),
    /// The device failed or was removed: nothing on it works then.
    DeviceFatal,
    /// A port may carry traffic again.
    PortActive(u8),
    /// A port lost its link.
    PortError(u8),
    /// A port has a new local identifier.
    LidChange(u8),
    /// A port's table of partition keys changed.
    PkeyChange(u8),
    /// A port's table of addresses changed.
    GidChange(u8),
    /// A port's subnet manager changed, or asks for addresses to be queried again.
    SubnetManager(u8),
    /// Any other event, by its number.
    Other(u32),
}
