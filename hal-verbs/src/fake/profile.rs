//! The properties of a device: its limits, its ports, and how it uses each freedom that verbs leave
//! it.

use std::net::Ipv6Addr;

use super::random::DeviceRandom;
use crate::devices::{DataInOrder, DeviceLimits, GidKind, LinkLayer, PartitionKey};

/// The order in which a device places the bytes of one connection's writes into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The writes land in the order in which they were posted, each as a whole.
    #[default]
    InOrder,
    /// Each write at once, but the writes of a connection in any order. A write may even land
    /// before an older write to the same bytes, which then keep the older content. Adaptive routing
    /// and relaxed ordering do this.
    WritesReordered,
    /// In pieces of 64 bytes, each at its own time.
    BytesReordered,
}

/// The effect of a queue pair's move to RESET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetMeans {
    /// Nothing more lands, and all posts are discarded.
    #[default]
    Reset,
    /// All posts are discarded, but writes of the peer land until the queue pair is connected
    /// again, moves to ERROR or is destroyed.
    NothingRevoked,
    /// The queue pair moves to ERROR: all posts are flushed with completions. A second move to
    /// RESET resets the queue pair; without that, it cannot be initialised.
    Error,
}

/// The number of inline bytes that a device grants if a number is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InlineGrant {
    /// Exactly the requested number. A request above the device's limit is refused.
    #[default]
    AsAsked,
    /// The next multiple of 64, within the limit; a request above the limit is refused.
    RoundedUp,
    /// At most half of the device's limit. Nothing is refused.
    Less,
}

/// The way in which a device numbers its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// Consecutive numbers, never reused.
    #[default]
    Consecutive,
    /// Random numbers.
    Drawn,
    /// The key of the last registration that ended is reused with a different lowest byte. After
    /// 256 reuses it is the same again.
    Reused,
    /// The key of the last registration that ended is reused at once.
    ReusedAtOnce,
}

/// The meaning that a device gives to seven retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SevenRetries {
    /// Seven retries.
    #[default]
    Seven,
    /// Retries without limit.
    ForEver,
}

/// An entry of a port's address table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// The address; all zero in an empty entry.
    pub address: Ipv6Addr,
    /// The packet format that is used with this address, on Ethernet.
    pub kind: GidKind,
    /// Whether packets to and from this address arrive.
    pub is_routed: bool,
}

/// A port of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortProfile {
    /// The port's link layer.
    pub link_layer: LinkLayer,
    /// The port's local identifier. On InfiniBand, zero lets the network choose one.
    pub lid: u16,
    /// The port's address table. The network fills an empty one: on Ethernet with a link-local
    /// address that leads nowhere and an IPv4 address; on InfiniBand with one address.
    pub gids: Vec<GidEntry>,
    /// The network interface on the port, if any.
    pub interface: Option<String>,
    /// The largest packet payload that the port supports, in bytes.
    pub mtu_bytes_max: u32,
    /// The largest packet payload in use, in bytes.
    pub mtu_bytes: u32,
    /// The longest message, in bytes.
    pub message_bytes_max: u32,
    /// Whether routes without a GID header (GRH) are refused.
    pub needs_global_route: bool,
    /// Whether the port reports that it requires a GID header.
    pub tells_of_global_route: bool,
    /// Whether traffic can flow at the start.
    pub is_up: bool,
    /// The port's partition table.
    pub partitions: Vec<PartitionKey>,
}

impl Default for PortProfile {
    /// Returns an Ethernet port that is up, with packets of 4096 bytes.
    fn default() -> Self {
        Self {
            link_layer: LinkLayer::Ethernet,
            lid: 0,
            gids: Vec::new(),
            interface: None,
            mtu_bytes_max: 4096,
            mtu_bytes: 4096,
            message_bytes_max: 1 << 30,
            needs_global_route: false,
            tells_of_global_route: true,
            is_up: true,
            partitions: vec![PartitionKey::USUAL],
        }
    }
}

/// The properties of a device. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The vendor's number. [`Profile::strict`] has that of a hardware NIC.
    pub vendor_id: u32,
    /// The vendor's number for the part.
    pub vendor_part_id: u32,
    /// The firmware's version.
    pub firmware: String,
    /// The transport: `enum ibv_transport_type`. Zero is InfiniBand and RoCE.
    pub transport: i32,
    /// The device's limits. A request above them is refused.
    pub limits: DeviceLimits,
    /// The number of completion vectors.
    pub completion_vectors: u32,
    /// Maximum number of bytes that a process may lock on the device, if there is a limit.
    /// Registrations and the rings of queues count.
    pub locked_bytes_max: Option<u64>,
    /// The device's ports, numbered from 1.
    pub ports: Vec<PortProfile>,
    /// The travel time of a packet to another device.
    pub latency_ns: u64,
    /// Maximum random addition to the travel time, drawn for each message. A connection's messages
    /// stay in order.
    pub jitter_ns: u64,
    /// The sending speed of a port, in bytes per microsecond; zero means no limit.
    pub bytes_per_us: u64,
    /// The order in which writes are placed in memory.
    pub placement: Placement,
    /// Maximum delay from a piece's arrival to its placement, if [`Profile::placement`] or
    /// [`Profile::completes_before_visible`] allow a delay.
    pub placement_delay_ns: u64,
    /// Whether the sender's completion may come before everything is placed.
    pub completes_before_visible: bool,
    /// Maximum delay from the post to the execution of a request, at which bytes that are not
    /// inline are read; a retransmission reads them again. If zero, they are read at the post.
    pub late_read_ns: u64,
    /// Whether a queue pair's access flags have no effect.
    pub ignores_access_flags: bool,
    /// The effect of moving a queue pair to RESET.
    pub reset: ResetMeans,
    /// Whether completions of a queue pair stay in the completion queue when it is reset or
    /// destroyed.
    pub keeps_completions: bool,
    /// The number of inline bytes that is granted.
    pub inline: InlineGrant,
    /// The duration of each kernel command that creates, destroys, changes or queries an object.
    pub command_ns: u64,
    /// The additional duration of a queue pair's move to RTR.
    pub ready_to_receive_ns: u64,
    /// The firmware's floor for timeout exponents.
    pub timeout_exponent_min: u8,
    /// Maximum factor by which a timeout is stretched: verbs allow up to four.
    pub timeout_stretch_max: u8,
    /// The meaning of seven retries.
    pub seven_retries: SevenRetries,
    /// Maximum number of retransmissions of a request, even if more were requested.
    pub retries_max: u8,
    /// Whether the completions of flushed receives precede that of the failed request. Verbs
    /// promise an order only within each of a connection's two queues.
    pub flushes_receives_first: bool,
    /// Whether a request sent while the port has no link ends its connection at once, with flushes
    /// and no other status. Linux 6.12's software RoCE does this when its network interface is
    /// taken down, and the routes with it.
    pub fails_without_link: bool,
    /// The numbering of keys.
    pub keys: Keys,
    /// Whether the key of a registration still works after its end.
    pub keeps_ended_keys: bool,
    /// The device's answer about the order of data.
    pub data_in_order: DataInOrder,
}

impl Profile {
    /// Returns a device that uses none of its freedoms and reports that, with the vendor number of
    /// a NIC.
    #[must_use]
    pub fn strict() -> Self {
        Self {
            vendor_id: 0x02c9,
            vendor_part_id: 4125,
            firmware: "1.0.0".into(),
            transport: 0,
            completion_vectors: 4,
            locked_bytes_max: None,
            limits: DeviceLimits {
                queue_pairs_max: 131_072,
                work_requests_max: 32_768,
                ranges_max: 30,
                completion_entries_max: 4_194_303,
                memory_regions_max: 16_777_216,
                region_bytes_max: 1 << 46,
                reads_max: 16,
                inline_bytes_max: 512,
            },
            ports: vec![PortProfile::default()],
            latency_ns: 2_000,
            jitter_ns: 0,
            bytes_per_us: 0,
            placement: Placement::default(),
            placement_delay_ns: 10_000,
            completes_before_visible: false,
            late_read_ns: 0,
            ignores_access_flags: false,
            reset: ResetMeans::default(),
            keeps_completions: false,
            inline: InlineGrant::default(),
            command_ns: 0,
            ready_to_receive_ns: 0,
            timeout_exponent_min: 0,
            timeout_stretch_max: 1,
            seven_retries: SevenRetries::default(),
            retries_max: 7,
            flushes_receives_first: false,
            fails_without_link: false,
            keys: Keys::default(),
            keeps_ended_keys: false,
            data_in_order: DataInOrder::Yes,
        }
    }

    /// Returns software RoCE, as far as this project knows it: strict, with the vendor number of
    /// software RoCE, and with seven retries that never end.
    #[must_use]
    pub fn soft_roce() -> Self {
        Self {
            vendor_id: 0x00ff_ffff,
            vendor_part_id: 0,
            firmware: String::new(),
            seven_retries: SevenRetries::ForEver,
            keeps_completions: true,
            data_in_order: DataInOrder::NotKnown,
            ..Self::strict()
        }
    }

    /// Returns a device whose freedoms are determined by a seed. Properties that do not vary
    /// between NICs of one kind stay the same: number, limits and ports.
    #[must_use]
    pub fn drawn(seed: u64) -> Self {
        let mut random = DeviceRandom::new(seed);
        let random = &mut random;
        let mut yes = || random.below(2) == 1;
        let (completes_before_visible, ignores_access_flags, keeps_completions) =
            (yes(), yes(), yes());
        let reordered = [Placement::WritesReordered, Placement::BytesReordered];
        Self {
            jitter_ns: random.pick(0, &[1_000, 20_000]),
            placement: random.pick(Placement::InOrder, &reordered),
            placement_delay_ns: random.pick(2_000, &[50_000, 500_000]),
            completes_before_visible,
            late_read_ns: random.pick(0, &[1_000, 50_000]),
            ignores_access_flags,
            reset: random.pick(ResetMeans::Reset, &[ResetMeans::NothingRevoked, ResetMeans::Error]),
            keeps_completions,
            inline: random.pick(InlineGrant::AsAsked, &[InlineGrant::RoundedUp, InlineGrant::Less]),
            command_ns: random.pick(0, &[50_000, 1_000_000]),
            ready_to_receive_ns: random.pick(0, &[1_000_000, 1_000_000_000]),
            timeout_exponent_min: random.pick(0, &[12, 16]),
            timeout_stretch_max: random.pick(1, &[2, 4]),
            seven_retries: random.pick(SevenRetries::Seven, &[SevenRetries::ForEver]),
            keys: random.pick(Keys::Consecutive, &[Keys::Drawn, Keys::Reused]),
            data_in_order: random.pick(DataInOrder::NotKnown, &[DataInOrder::Yes, DataInOrder::No]),
            flushes_receives_first: random.pick(false, &[true]),
            ..Self::strict()
        }
        .honest()
    }
}

impl Profile {
    /// Corrects a profile so that a device that places writes out of order never claims order.
    fn honest(self) -> Self {
        match (self.placement, self.data_in_order) {
            (Placement::InOrder, _) | (_, DataInOrder::NotKnown) => self,
            (_, DataInOrder::Yes | DataInOrder::No) => {
                Self { data_in_order: DataInOrder::No, ..self }
            }
        }
    }

    /// Returns the inline bytes granted for a request; `None` if the queue pair is refused.
    pub(super) fn inline_grant(&self, asked: u32) -> Option<u32> {
        let most = self.limits.inline_bytes_max;
        match self.inline {
            InlineGrant::AsAsked => (asked <= most).then_some(asked),
            InlineGrant::RoundedUp => (asked <= most).then(|| asked.next_multiple_of(64).min(most)),
            InlineGrant::Less => Some(asked.min(most / 2)),
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::strict()
    }
}
