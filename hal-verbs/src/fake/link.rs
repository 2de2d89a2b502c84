//! Ports as the ends of paths, and the defects of a path.

/// A port of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathPlace {
    pub(super) device: usize,
    pub(super) port: u8,
}

/// The defects of the path from one device to another, in that direction. There are none by
/// default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Whether the path is cut, so that nothing arrives.
    pub is_cut: bool,
    /// Number of lost messages per million.
    pub loss_per_million: u32,
    /// Additional delay of each message, in nanoseconds.
    pub delay_ns: u64,
    /// The packet payload in bytes above which packets are lost; zero means no limit.
    pub mtu_bytes: u32,
}
