//! Additions to a layout for block multicast: the channels' cells in every row, and the subgroups
//! whose senders may send large messages.
//!
//! Requirement: LAY-1.

use super::configuration::{Group, LayoutError, each};
use super::limits::BLOCK;
use super::map::Layout;
use super::processor::LineSize;
use crate::check::Checks;
use crate::fabric::Channel;
use crate::ids::{NodeId, SenderRank, SubgroupId, index_from_u16, u16_from_index};

impl<'c> Layout<'c> {
    /// Lays out rows with the cells of `channels` channels and nothing else, for block groups
    /// without subgroups (RDM-5).
    ///
    /// # Errors
    /// Fails if the list of members is not valid.
    pub const fn of_channels(members: &'c [NodeId], channels: u16) -> Result<Self, LayoutError> {
        let group = Group { members, subgroups: &[] };
        if let Err(error) = group.check_members() {
            return Err(error);
        }
        Self {
            group,
            view_columns: 0,
            large: &[],
            channels,
            logged: &[],
            #[cfg(feature = "relays")]
            relayed: &[],
            checks: Checks::Off,
            health: false,
            line: LineSize::Bytes64,
        }
        .measured()
    }

    /// Allows large messages in some subgroups. Each of their senders gets a channel for a block
    /// group whose root is the sender and whose members are those of the subgroup (RDM-7).
    ///
    /// # Errors
    /// Fails if a subgroup does not exist or is named twice, or if there are too many senders.
    pub const fn with_large(self, large: &'c [SubgroupId]) -> Result<Self, LayoutError> {
        let mut channels = 0_usize;
        let mut rest = large;
        // bound: the listed subgroups
        while let [first, tail @ ..] = rest {
            each!(other in tail, {
                if other.0 == first.0 {
                    return Err(LayoutError::BadLargeSubgroup);
                }
            });
            let Some(subgroup) = self.subgroup(*first) else {
                return Err(LayoutError::BadLargeSubgroup);
            };
            channels = channels.saturating_add(subgroup.senders.len());
            rest = tail;
        }
        match u16_from_index(channels) {
            Some(channels) => Self { large, channels, ..self }.measured(),
            None => Err(LayoutError::TooManyChannels),
        }
    }

    /// Returns the channel of a sender's large messages in a subgroup, if it may send any.
    #[must_use]
    pub const fn large_channel(&self, subgroup: SubgroupId, sender: SenderRank) -> Option<Channel> {
        let mut before = 0_usize;
        each!(large in self.large, {
            let senders = match self.subgroup(*large) {
                Some(subgroup) => subgroup.senders.len(),
                None => 0,
            };
            if large.0 == subgroup.0 {
                if sender.index() >= senders {
                    return None;
                }
                return match u16_from_index(before.saturating_add(sender.index())) {
                    Some(channel) => Some(Channel(channel)),
                    None => None,
                };
            }
            before = before.saturating_add(senders);
        });
        None
    }

    /// Returns the number of channels that have cells in each row.
    #[must_use]
    pub const fn channels(&self) -> u16 {
        self.channels
    }

    /// Returns the offset of a channel's cells, in bytes from the start of every row: a multiple of
    /// the layout's cache line. Returns `None` if there is no such channel.
    #[must_use]
    pub const fn channel_offset(&self, channel: Channel) -> Option<usize> {
        if channel.0 >= self.channels {
            return None;
        }
        Some(BLOCK.saturating_add(index_from_u16(channel.0).saturating_mul(self.line.bytes())))
    }
}
