//! Group numbers, and the generations and channels that they map to.

use tramontane_core::fabric::Channel;
use tramontane_core::ids::NodeId;
use tramontane_core::layout::{Layout, LayoutError};

/// Number of groups per generation. Each has a cache line in every row.
pub(super) const CHANNELS: u16 = 1024;

/// The channel of a node's wish, after the channels of all groups.
pub(crate) const WISH: Channel = Channel(CHANNELS);

/// Returns the layout of every generation's rows.
pub(super) fn layout_of(nodes: &[NodeId]) -> Result<Layout<'_>, LayoutError> {
    Layout::of_channels(nodes, CHANNELS + 1)
}

/// Returns the generation of a group number.
pub(super) const fn generation_of(number: u64) -> u64 {
    number / CHANNELS as u64
}

pub(crate) fn channel_of(number: u64) -> Channel {
    // Less than CHANNELS.
    Channel(u16::try_from(number % u64::from(CHANNELS)).unwrap_or(0))
}
