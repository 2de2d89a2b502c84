//! The fabric of a process over RDMA, through all its views, with TCP as the side channel.

use std::net::IpAddr;
use std::time::Duration;

use tramontane_verbs::{JoinError, Site};

use super::{DeviceOptions, tell};

/// Why a process has nothing to carry its writes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoFabric {
    /// There is no device.
    #[error(transparent)]
    Rdma(#[from] JoinError),
    /// The system has no descriptors left.
    #[error("cannot start: {0}; see what the system says, and try again")]
    Io(#[from] std::io::Error),
}

/// Opens a device, which gives a peer up no sooner than the protocol would, unless the options say
/// otherwise. Where they choose none, the address at which the process meets others shows which.
pub(crate) fn open_site(
    device: &DeviceOptions,
    failure_timeout: Duration,
    meeting: Option<IpAddr>,
) -> Result<Site, JoinError> {
    let mut limits = device.limits();
    limits.loss_time = device.loss_timeout.unwrap_or(failure_timeout);
    let site = Site::open(&device.wanted(), &limits, meeting)?;
    tell(&site.report());
    Ok(site)
}
