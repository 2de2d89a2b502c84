//! Settings and states of queue pairs.

use std::net::Ipv6Addr;

use crate::devices::{Choice, LinkLayer, Service};

/// The limits of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuePairLimits {
    pub(crate) sends_max: u32,
    pub(crate) receives_max: u32,
    pub(crate) inline_bytes_max: u32,
}

/// The states of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePairState {
    Reset,
    Initialised,
    ReadyToReceive,
    ReadyToSend,
    Draining,
    SendError,
    Error,
    Unknown,
}

impl QueuePairState {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Initialised => "initialised",
            Self::ReadyToReceive => "ready to receive",
            Self::ReadyToSend => "ready to send",
            Self::Draining => "draining",
            Self::SendError => "error in sending",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

/// The route to the remote end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) port: u8,
    /// The index of the local partition in the port's table.
    pub(crate) partition_index: u16,
    pub(crate) gid_index: u8,
    /// `enum ibv_mtu`.
    pub(crate) mtu: u32,
    pub(crate) remote_gid: Ipv6Addr,
    pub(crate) remote_lid: u16,
    pub(crate) remote_number: u32,
    /// The first packet number of the remote end; 24 bits.
    pub(crate) remote_packet: u32,
    /// Whether packets carry a GID header; always on Ethernet.
    pub(crate) is_global: bool,
    /// The treatment of the packets by switches and routers.
    pub(crate) service: Service,
    /// Number of concurrent reads by the remote end that this end serves.
    pub(crate) reads_max: u8,
}

/// Returns the `enum ibv_mtu` for a packet payload in bytes; other sizes give the smallest one.
pub(crate) const fn mtu_raw(bytes: u32) -> u32 {
    match bytes {
        512 => 2,
        1024 => 3,
        2048 => 4,
        4096 => 5,
        _ => 1,
    }
}

impl Route {
    /// Returns the route from the chosen port to a queue pair on the same port.
    pub(crate) fn to_itself(choice: &Choice, number: u32, first_packet: u32) -> Self {
        Self {
            port: choice.port,
            partition_index: choice.partition.index,
            gid_index: choice.gid.index,
            mtu: mtu_raw(choice.mtu_bytes),
            remote_gid: choice.gid.address,
            remote_lid: choice.lid,
            remote_number: number,
            remote_packet: first_packet,
            is_global: choice.link_layer == LinkLayer::Ethernet || choice.service.has_global_route,
            service: choice.service,
            reads_max: 1,
        }
    }
}

/// The times after which an unanswered packet is retransmitted, and after which it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendTimes {
    pub(crate) timeout_exponent: u8,
    pub(crate) retries: u8,
    /// The first packet number of this end; 24 bits.
    pub(crate) first_packet: u32,
    /// Maximum number of local reads in flight.
    pub(crate) reads_max: u8,
}
