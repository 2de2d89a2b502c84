//! The options for a subgroup's large messages. They are the same at all members, because they
//! follow from the group file.

use tramontane_core::ids::SubgroupId;
use tramontane_core::rdmc::Algorithm;

use super::limits::{DESCRIPTION_BYTES, LARGE_MAX, LargeBlocks, WINDOW_MAX};
use crate::block_transfer::options::GroupOptions;
use crate::group::description::terms::{Description, SubgroupDescription};

/// The settings for sending large messages in one subgroup.
pub(crate) struct LargeOptions {
    pub(super) options: GroupOptions,
    pub(crate) window: usize,
    pub(crate) bytes_max: usize,
}

impl LargeOptions {
    /// Returns the size of the largest buffer that a receiver needs: a number of whole blocks, and
    /// at least two in a pipeline.
    pub(super) fn whole_blocks_max(&self) -> usize {
        let blocks = usize::try_from(self.options.blocks_max()).unwrap_or(usize::MAX);
        blocks.saturating_mul(self.options.block_bytes)
    }
}

impl SubgroupDescription {
    /// Returns whether the subgroup's settings for large messages are valid.
    pub(crate) fn has_possible_large(&self) -> bool {
        let has_slots =
            usize::try_from(self.message_max).is_ok_and(|bytes| bytes >= DESCRIPTION_BYTES);
        let is_possible =
            self.large_max <= LARGE_MAX && (1..=WINDOW_MAX).contains(&self.large_window);
        let has_blocks = self.large_blocks.is_none_or(|blocks| blocks.bytes > 0);
        self.large_max == 0 || (has_slots && is_possible && has_blocks)
    }
}

impl Description {
    /// Returns the options for large messages in a subgroup, if it allows them.
    pub(crate) fn large(&self, subgroup: SubgroupId) -> Option<LargeOptions> {
        let described =
            self.subgroups.get(subgroup.index()).filter(|subgroup| subgroup.large_max > 0)?;
        let bytes_max = usize::try_from(described.large_max).unwrap_or(usize::MAX);
        let mut options = GroupOptions::for_fabric(self.fabric, bytes_max);
        if described.senders().len() > 1 {
            // With several roots at a time, a pipeline uses the ports of all members.
            options.algorithm = Algorithm::Pipeline;
        }
        options.algorithm = self.over_racks(options.algorithm);
        if let Some(LargeBlocks { algorithm, bytes }) = described.large_blocks {
            (options.algorithm, options.block_bytes) = (algorithm, bytes);
        }
        options.block_bytes = options.block_bytes.min(bytes_max);
        let window = usize::try_from(described.large_window).unwrap_or(usize::MAX);
        Some(LargeOptions { options, window, bytes_max })
    }

    /// Returns the number of buffers that all large messages in flight may need at a member: for
    /// each sender, a window, a block, and one message that is arriving.
    pub(crate) fn large_buffers(&self) -> usize {
        let large = self.subgroups.iter().filter(|subgroup| subgroup.large_max > 0);
        let buffers = large.map(|subgroup| {
            let window = usize::try_from(subgroup.large_window).unwrap_or(usize::MAX);
            window.saturating_add(2).saturating_mul(subgroup.senders().len())
        });
        buffers.fold(0, usize::saturating_add)
    }

    /// Returns the number of buffer bytes kept for reuse, which is the number of bytes that can be
    /// in flight.
    pub(crate) fn large_pool_bytes(&self) -> usize {
        let bytes = (0..).map(SubgroupId).zip(&self.subgroups).filter_map(|(id, described)| {
            let large = self.large(id)?;
            Some(
                large
                    .bytes_max
                    .saturating_mul(large.window)
                    .saturating_mul(described.senders().len()),
            )
        });
        bytes.fold(0, usize::saturating_add)
    }
}
