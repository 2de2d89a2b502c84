//! What a run is to do.

use tramontane_local::options::JoinOption;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;
use tramontane_runtime::rdma::DeviceOptions;

/// What a run is to do, all checked.
#[derive(Debug)]
pub(super) struct Plan {
    /// Without the place where its members meet.
    pub(super) group: Description,
    /// Messages in all, repetitions included.
    pub(super) total: u64,
    pub(super) repeat: u64,
    pub(super) join: JoinOption,
    pub(super) fabric: Carrier,
    pub(super) device: DeviceOptions,
}
