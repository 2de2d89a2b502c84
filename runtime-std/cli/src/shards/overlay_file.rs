//! The overlay file on a command line.

use std::path::Path;

use tramontane_local::exit::Failure;
use tramontane_local::options::DeviceArguments;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shards::Description;

/// Reads an overlay file.
pub(super) fn read(path: &Path) -> Result<Description, Failure> {
    Ok(Description::read(path)?)
}

/// Reads the file for a process that uses the overlay's fabric. RDMA options on the command line
/// take precedence over the file.
pub(super) fn read_with_device(
    path: &Path,
    device: &DeviceArguments,
) -> Result<Description, Failure> {
    let mut description = read(path)?;
    if let (true, Some(option)) = (description.fabric != Carrier::Verbs, device.given()) {
        let what = format_args!("{option} applies only to RDMA devices");
        let advice = "omit it, or set fabric = \"verbs\" in the overlay file everywhere";
        return Err(Failure::usage(what, advice));
    }
    description.rdma = device.options().or(&description.rdma);
    Ok(description)
}
