//! The RDMA fabric of a process, which serves all its views, with TCP as the side channel.

use std::net::IpAddr;
use std::time::Duration;

use tramontane_verbs::{JoinError, Site};

use super::{DeviceOptions, tell};

/// The reason why a process has no fabric.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoFabric {
    /// There is no usable device.
    #[error(transparent)]
    Rdma(#[from] JoinError),
    /// The system has no descriptors left.
    #[error("cannot start: {0}; resolve the cause, and try again")]
    Io(#[from] std::io::Error),
}

/// Opens a device. Unless the options say otherwise, it gives up a peer no sooner than the protocol
/// would. If the options name no device, the device is found by the address at which the process
/// meets the others.
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
