//! Asynchronous events of a device.

/// An asynchronous event (`enum ibv_event_type`), as far as this crate distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsyncEvent {
    /// A completion queue, given by its [`CompletionQueue::id`], has overflowed or failed.
    ///
    /// [`CompletionQueue::id`]: super::CompletionQueue::id
    CompletionQueueError(u64),
    /// The queue pair with this number has failed.
    QueuePairError(u32),
    /// The device has failed or been removed. Nothing on it works any longer.
    DeviceFatal,
    /// A port may carry traffic again.
    PortActive(u8),
    /// A port has lost its link.
    PortError(u8),
    /// A port has a new local identifier.
    LidChange(u8),
    /// A port's table of partition keys has changed.
    PkeyChange(u8),
    /// A port's table of addresses has changed.
    GidChange(u8),
    /// A port's subnet manager has changed, or asks for addresses to be queried again.
    SubnetManager(u8),
    /// Any other event, by its number.
    Other(u32),
}
