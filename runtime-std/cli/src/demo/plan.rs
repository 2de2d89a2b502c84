//! The plan of a demo run.

use tramontane_local::options::JoinOption;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;
use tramontane_runtime::rdma::DeviceOptions;

/// The plan of a demo run, fully checked.
#[derive(Debug)]
pub(super) struct DemoPlan {
    /// The group, without the memory in which its members meet.
    pub(super) group: Description,
    /// Number of messages, including repetitions.
    pub(super) total: u64,
    pub(super) repeat: u64,
    pub(super) join: JoinOption,
    pub(super) fabric: Carrier,
    pub(super) device: DeviceOptions,
}
