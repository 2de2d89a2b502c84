//! Opens the fabric that carries a process's writes, and the resources that the fabric needs on
//! this machine. Used by both groups and shards.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::Identity;
use tramontane_core::ids::NodeId;
use tramontane_verbs::{RdmaViews, Site};

use super::AnyFabric;
use crate::carrier::Carrier;
use crate::rdma::{DeviceOptions, NoFabric, open_site};
use crate::shared_memory;
use crate::shared_memory::{GroupName, Residence, Root, SharedMemory};
use crate::tcp::{Settings, Tcp};

/// Claims a node's directory in the folder where the processes of a group meet. Only shared memory
/// needs one.
pub(crate) fn claim_residence(
    carrier: Carrier,
    root: &Root,
    name: &str,
    identity: &Identity,
    time_limit: Duration,
    cancel: &AtomicBool,
) -> Result<Option<Arc<Residence>>, shared_memory::Error> {
    if !carrier.is_on_one_host() {
        return Ok(None);
    }
    let Identity { node, incarnation, digest } = *identity;
    let name = GroupName::new(name)?;
    let residence = Residence::claim(root, &name, node, digest, incarnation, time_limit, cancel)?;
    Ok(Some(Arc::new(residence)))
}

/// Opens the device that a fabric needs, which is the case only over RDMA. If the options name no
/// device, the device is found by the address at which the process meets the others.
pub(crate) fn open_device(
    carrier: Carrier,
    device: &DeviceOptions,
    failure_timeout: Duration,
    meeting: impl FnOnce() -> Option<IpAddr>,
) -> Result<Option<Site>, NoFabric> {
    let site = carrier.is_rdma().then(|| open_site(device, failure_timeout, meeting()));
    Ok(site.transpose()?)
}

/// Opens the fabric of a process that has not met any other process yet: over its device, in its
/// residence or, if it has neither, over TCP.
pub(crate) fn open(
    own: NodeId,
    residence: Option<&Arc<Residence>>,
    device: Option<Site>,
) -> std::io::Result<AnyFabric> {
    let tcp = || Tcp::new(own, Settings::default());
    Ok(match (residence, device) {
        (Some(residence), _) => AnyFabric::SharedMemory(SharedMemory::for_residence(residence)),
        (None, Some(device)) => AnyFabric::Verbs(RdmaViews::new(device, tcp()?)?),
        (None, None) => AnyFabric::Tcp(tcp()?),
    })
}
