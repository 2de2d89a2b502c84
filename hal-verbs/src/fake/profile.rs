//! What a device is like: its limits, its ports, and what it makes of each freedom that verbs
//! leave.

use std::net::Ipv6Addr;

use super::random::Random;
use crate::devices::{DataInOrder, DeviceLimits, GidKind, LinkLayer, PartitionKey};

/// The order in which a device places the bytes of the writes of one connection into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// In the order in which the writes were posted, and each at once.
    #[default]
    InOrder,
    /// Each write at once, but the writes of a connection in any order: a write may even land
    /// before an older one to the same bytes, which then stay old. Adaptive routing and relaxed
    /// ordering do this.
    WritesReordered,
    /// In pieces of 64 bytes, each at a time of its own.
    BytesReordered,
}

/// What a queue pair's move to RESET does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetMeans {
    /// Nothing more lands, and all that was posted is forgotten.
    #[default]
    Reset,
    /// All that was posted is forgotten, but writes of the peer land until the queue pair is
    /// connected anew, goes to ERROR or is destroyed.
    NothingRevoked,
    /// It goes to ERROR: all that was posted is flushed with completions. A second move to RESET
    /// resets it; without that, it cannot be initialised.
    Error,
}

/// How many bytes a device lets go inline, of those that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InlineGrant {
    /// Exactly as many, and none above the device's limit: such a queue pair is refused.
    #[default]
    AsAsked,
    /// The next multiple of 64 above, within the limit; more is refused.
    RoundedUp,
    /// At most half of the device's limit. Nothing is refused.
    Less,
}

/// How a device numbers keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// One after the other; none comes again.
    #[default]
    Consecutive,
    /// At random.
    Drawn,
    /// The key of the registration that ended last comes again, with another lowest byte: after 256
    /// of them it is the same.
    Reused,
    /// The key of what ended last comes again at once.
    ReusedAtOnce,
}

/// What a device makes of memory windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Windows {
    /// A key that was taken back is refused.
    #[default]
    Kept,
    /// It has none.
    None,
    /// A key that was taken back works on, until the window ends.
    NotTakenBack,
}

/// What seven retries mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SevenRetries {
    /// Seven.
    #[default]
    Seven,
    /// For ever.
    ForEver,
}

/// One entry of a port's table of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// The address; all zero in an entry that is empty.
    pub address: Ipv6Addr,
    /// How packets from it look, on Ethernet.
    pub kind: GidKind,
    /// Whether packets to and from it arrive.
    pub is_routed: bool,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortProfile {
    /// What it runs on.
    pub link_layer: LinkLayer,
    /// Its local identifier. Zero stands for one of the network's choice on InfiniBand.
    pub lid: u16,
    /// Its table of addresses. An empty one is filled by the network: on Ethernet a link-local
    /// address that leads nowhere, and an IPv4 address; on InfiniBand one address.
    pub gids: Vec<GidEntry>,
    /// The network interface that stands on it, if any.
    pub interface: Option<String>,
    /// The largest packet payload that it could use, in bytes.
    pub mtu_bytes_max: u32,
    /// The largest in use.
    pub mtu_bytes: u32,
    /// The longest message, in bytes.
    pub message_bytes_max: u32,
    /// Whether ways without the GID (GRH) are refused.
    pub needs_global_route: bool,
    /// Whether it says so.
    pub tells_of_global_route: bool,
    /// Whether traffic can flow at the start.
    pub is_up: bool,
    /// Its table of partitions.
    pub partitions: Vec<PartitionKey>,
}

impl Default for PortProfile {
    /// Ethernet, up, with packets of 4096 bytes.
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

/// What a device is like. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The vendor's number. [`Profile::strict`] has that of an adapter in hardware.
    pub vendor_id: u32,
    /// The vendor's number for the part.
    pub vendor_part_id: u32,
    /// The firmware's version.
    pub firmware: String,
    /// What carries its traffic: `enum ibv_transport_type`. Zero is InfiniBand, and RoCE.
    pub transport: i32,
    /// How much it takes. More is refused.
    pub limits: DeviceLimits,
    /// How many vectors completion queues can be on.
    pub completion_vectors: u32,
    /// How many bytes a process may hold in place on it, if not any number: registrations, and the
    /// rings of its queues.
    pub locked_bytes_max: Option<u64>,
    /// Its ports; the first has the number 1.
    pub ports: Vec<PortProfile>,
    /// How long a packet takes to another device.
    pub latency_ns: u64,
    /// What is added to that at most, drawn for each message. A connection's messages stay in
    /// order.
    pub jitter_ns: u64,
    /// How fast a port sends, in bytes a microsecond; zero stands for no limit.
    pub bytes_per_us: u64,
    /// The order of placement.
    pub placement: Placement,
    /// How long after its arrival a piece is placed at most, where [`Profile::placement`] or
    /// [`Profile::completes_before_visible`] allow that.
    pub placement_delay_ns: u64,
    /// Whether the sender's completion may come before all is placed.
    pub completes_before_visible: bool,
    /// How long after the post a request executes at most, and what is not inline is read; on a
    /// retransmission it is read once more. Zero: it is read at the post.
    pub late_read_ns: u64,
    /// Whether a queue pair's access flags deny nothing.
    pub ignores_access_flags: bool,
    /// What RESET does.
    pub reset: ResetMeans,
    /// Whether completions of a queue pair stay in the completion queue when it is reset or
    /// destroyed.
    pub keeps_completions: bool,
    /// How much goes inline.
    pub inline: InlineGrant,
    /// How long each command to the kernel takes: what creates, destroys, changes or asks for an
    /// object.
    pub command_ns: u64,
    /// How long a queue pair takes to RTR, on top of that.
    pub ready_to_receive_ns: u64,
    /// The firmware's floor for the exponent of timeouts.
    pub timeout_exponent_min: u8,
    /// By how much a timeout is multiplied at most: verbs allow up to four.
    pub timeout_stretch_max: u8,
    /// What seven retries mean.
    pub seven_retries: SevenRetries,
    /// How often a request is sent again at most, whatever was asked for.
    pub retries_max: u8,
    /// Whether the completions of flushed receives come before that of the request that failed:
    /// verbs promise an order within each of a connection's two queues alone.
    pub flushes_receives_first: bool,
    /// Whether a request that is to go out while the port has no link ends its connection at once,
    /// with flushes and no other status: so does RoCE in software of Linux 6.12 when its network
    /// interface is taken down, and the routes with it.
    pub fails_without_link: bool,
    /// How keys are numbered.
    pub keys: Keys,
    /// What it makes of memory windows.
    pub windows: Windows,
    /// Whether the key of a registration works on after its end.
    pub keeps_ended_keys: bool,
    /// What it says of the order of data.
    pub data_in_order: DataInOrder,
}

impl Profile {
    /// A device that takes no freedom at all, and says so, with the number of an adapter.
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
            windows: Windows::default(),
            keeps_ended_keys: false,
            data_in_order: DataInOrder::Yes,
        }
    }

    /// RoCE in software, as far as this project knows it: strict, with its number, and seven
    /// retries that never come to an end.
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

    /// A device whose freedoms a seed decides. What no adapter of one kind varies stays: its
    /// number, limits and ports.
    #[must_use]
    pub fn drawn(seed: u64) -> Self {
        let mut random = Random::new(seed);
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
    /// No device says yes that places out of order.
    fn honest(self) -> Self {
        match (self.placement, self.data_in_order) {
            (Placement::InOrder, _) | (_, DataInOrder::NotKnown) => self,
            (_, DataInOrder::Yes | DataInOrder::No) => {
                Self { data_in_order: DataInOrder::No, ..self }
            }
        }
    }

    /// How much goes inline of what is asked for; none if the queue pair is refused.
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
