//! What the commands know of RDMA whether or not it is built in: the choice of a device, counts,
//! and what to say where it is not.
//!
//! The fabric itself is `tramontane-verbs`, behind the cargo feature `verbs`.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Whether this program has RDMA.
pub const BUILT: bool = cfg!(feature = "verbs");

/// RDMA is wanted of a program that was built without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this program was built without RDMA; build it with 'cargo build --release --features verbs'; the \
     guide lists the packages that this needs (docs/guide/src/operators/rdma.md)"
)]
pub struct NotBuilt;

/// Members that have a key would go on in clear, and nobody said that they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "RDMA is never encrypted: the key protects TCP alone; on a network that you trust give --allow-clear or set \
     allow_clear = true in the group file; on any other network take fabric \"tcp\""
)]
pub struct ClearNotAllowed;

/// Whether members may go on over RDMA: with a key only if they allow what it does not seal.
///
/// # Errors
/// [`ClearNotAllowed`].
pub const fn check_clear(is_keyed: bool, allow_clear: bool) -> Result<(), ClearNotAllowed> {
    if is_keyed && !allow_clear { Err(ClearNotAllowed) } else { Ok(()) }
}

/// Which device is taken, where the first that works is not wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceOptions {
    /// The RDMA device [default: the first usable one; see 'tramontane verbs devices']
    pub device: Option<String>,
    /// The port of the device [default: the first active port]
    pub port: Option<u8>,
    /// The GID, by index or as an address [default: the address at which the members meet, if the
    /// device has it, else RoCE v2 over IPv4 first]
    pub gid: Option<Gid>,
    /// The largest packet payload, in bytes [default: that of the port]
    pub mtu: Option<u32>,
    /// How long a peer may leave writes unacknowledged before it counts as lost, in seconds
    /// [default: 1]
    pub loss_timeout: Option<Duration>,
}

/// An entry of a port's table of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gid {
    /// By its place.
    Index(u8),
    /// By what stands there.
    Address(IpAddr),
}

impl FromStr for Gid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let index = text.parse().map(Self::Index);
        index.or_else(|_| text.parse().map(Self::Address)).map_err(|_| {
            "neither an index from 0 to 254, nor an address such as 10.9.0.1 or fe80::1".to_owned()
        })
    }
}

impl DeviceOptions {
    /// As the fabric wants it.
    #[cfg(feature = "verbs")]
    #[must_use]
    pub fn wanted(&self) -> tramontane_verbs::devices::Wanted {
        use tramontane_verbs::devices::{GidChoice, Wanted};
        Wanted {
            device: self.device.clone(),
            port: self.port,
            gid: match self.gid {
                None => GidChoice::Auto,
                Some(Gid::Index(index)) => GidChoice::Index(index),
                Some(Gid::Address(address)) => GidChoice::Address(address),
            },
            mtu_bytes: self.mtu,
        }
    }

    /// How the fabric is to behave.
    #[cfg(feature = "verbs")]
    #[must_use]
    pub fn limits(&self) -> tramontane_verbs::Limits {
        let usual = tramontane_verbs::Limits::default();
        tramontane_verbs::Limits {
            loss_time: self.loss_timeout.unwrap_or(usual.loss_time),
            ..usual
        }
    }
}

/// The devices of this machine.
///
/// # Errors
/// If the kernel does not say.
#[cfg(feature = "verbs")]
pub fn discover() -> Result<tramontane_verbs::devices::Devices, tramontane_verbs::JoinError> {
    use tramontane_verbs::JoinError;
    tramontane_verbs::devices::Devices::discover().map_err(|source| match source.kind() {
        std::io::ErrorKind::PermissionDenied => JoinError::NotPermitted { source },
        _ => JoinError::Device {
            device: "libibverbs".to_owned(),
            action: "list the devices",
            source,
        },
    })
}

/// What would be taken of them.
///
/// # Errors
/// If nothing can be, or the kernel does not say.
#[cfg(feature = "verbs")]
pub fn choose(
    device: &DeviceOptions,
) -> Result<tramontane_verbs::devices::Choice, tramontane_verbs::JoinError> {
    Ok(discover()?.choose(&device.wanted())?)
}

/// What was chosen and rounded, for whoever asks (HAL-3, HAL-4).
#[cfg(feature = "verbs")]
pub(crate) fn tell(report: &tramontane_verbs::Report) {
    let tramontane_verbs::Report { choice, order, loss_times, .. } = report;
    tracing::info!(
        device = choice.name,
        port = choice.port,
        gid = choice.gid.index,
        address = %choice.gid.address,
        mtu_bytes = choice.mtu_bytes,
        ?order,
        loss_time = ?loss_times.total(),
        depth = report.depth,
        signal_every = report.signal_every,
        inline_bytes_max = report.inline_bytes_max,
        "writes go over RDMA"
    );
}

/// What a fabric did, counted, for a report: see `tramontane_verbs::Counters`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostCounts {
    /// Lists of writes that were taken.
    pub lists: u64,
    /// Writes in them.
    pub writes: u64,
    /// Bytes in those.
    pub bytes: u64,
    /// Writes that went inline.
    pub inline: u64,
    /// Guards that were staged.
    pub staged: u64,
    /// Calls that hand requests to the device.
    pub doorbells: u64,
    /// Requests of which a completion was asked for.
    pub signalled: u64,
    /// Completions that were taken.
    pub completions: u64,
    /// Lists that found no room.
    pub refused: u64,
    /// Notices sent: what sleeping costs.
    pub notices_sent: u64,
    /// Notices that came.
    pub notices_taken: u64,
}

#[cfg(feature = "verbs")]
impl From<&tramontane_verbs::Counters> for PostCounts {
    fn from(counters: &tramontane_verbs::Counters) -> Self {
        Self {
            lists: counters.lists,
            writes: counters.writes,
            bytes: counters.bytes,
            inline: counters.inline,
            staged: counters.staged,
            doorbells: counters.doorbells,
            signalled: counters.signalled,
            completions: counters.completions,
            refused: counters.refused,
            notices_sent: counters.notices_sent,
            notices_taken: counters.notices_taken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_by_place_or_by_itself() {
        assert_eq!("1".parse(), Ok(Gid::Index(1)));
        assert_eq!("10.9.0.1".parse(), Ok(Gid::Address(IpAddr::from([10, 9, 0, 1]))));
        assert!(matches!("fe80::1".parse(), Ok(Gid::Address(IpAddr::V6(_)))));
        for bad in ["", "256", "-1", "10.9.0", "rxe0"] {
            assert!(bad.parse::<Gid>().is_err(), "{bad}");
        }
    }
}
