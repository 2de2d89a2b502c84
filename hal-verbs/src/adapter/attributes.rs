//! Properties of devices and ports.

/// The attributes of a device that are used here.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAttributes {
    pub(crate) firmware: String,
    pub(crate) node_guid: u64,
    pub(crate) vendor_id: u32,
    pub(crate) vendor_part_id: u32,
    pub(crate) ports: u8,
    pub(crate) queue_pairs_max: u32,
    pub(crate) work_requests_max: u32,
    pub(crate) scatter_max: u32,
    pub(crate) completion_entries_max: u32,
    pub(crate) memory_regions_max: u32,
    pub(crate) region_bytes_max: u64,
    pub(crate) reads_max: u32,
}

/// The attributes of a port that are used here, in libibverbs' form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortAttributes {
    pub(crate) state: u32,
    pub(crate) mtu_max: u32,
    pub(crate) mtu_active: u32,
    pub(crate) message_bytes_max: u32,
    pub(crate) gids: usize,
    pub(crate) lid: u16,
    pub(crate) link_layer: u8,
    /// Whether every packet must carry a GID header (GRH).
    pub(crate) needs_global_route: bool,
}

/// Properties of a device that are not among its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceFeatures {
    /// `enum ibv_transport_type`.
    pub(crate) transport: i32,
    /// The number of completion vectors.
    pub(crate) completion_vectors: u32,
}
