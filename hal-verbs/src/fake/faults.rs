//! Faults of devices, ports, links and processes.

use std::net::Ipv6Addr;

use super::identity::{ContextId, DeviceName};
use super::link::Link;

/// A fault, a change or a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A process is killed: the kernel destroys its objects one by one, and its calls fail from now
    /// on.
    Kill {
        /// The context that the process had opened.
        context: ContextId,
        /// Whether the oldest object is destroyed first. Linux begins with the newest: then
        /// registered memory may disappear before queue pairs that still answer.
        oldest_first: bool,
        /// The time from one object to the next, in nanoseconds.
        step_ns: u64,
    },
    /// A device fails for good: it reports so, all its queue pairs are flushed, and calls fail.
    DeviceFatal(DeviceName),
    /// A port loses its link: packets are lost, and contexts receive an event.
    PortDown(DeviceName, u8),
    /// A port has its link again, and contexts receive an event.
    PortUp(DeviceName, u8),
    /// A port gets another local identifier. Packets to the old one are lost.
    Lid(DeviceName, u8, u16),
    /// An entry of a port's table gets another address. Packets to the old one are lost. Nothing
    /// happens if there is no such entry.
    Gid {
        /// The device.
        device: DeviceName,
        /// The port.
        port: u8,
        /// The index of the entry.
        index: u8,
        /// The entry's new address.
        address: Ipv6Addr,
    },
    /// A port's largest packet payload in use changes, in bytes. Longer packets are lost. Contexts
    /// receive the event of a changed subnet manager, because verbs have none for this.
    Mtu(DeviceName, u8, u32),
    /// A port's table of partition keys changes: contexts receive an event, and nothing else
    /// happens.
    Pkey(DeviceName, u8),
    /// The path from one device to another changes, in that direction only.
    Link {
        /// The sending device.
        from: DeviceName,
        /// The receiving device.
        to: DeviceName,
        /// The new properties of the path.
        link: Link,
    },
}
