//! The memory map: the offset and size of every part of a row.
//!
//! Requirements: LAY-1, LAY-2.

use super::configuration::{Delivery, Group, LayoutError, Subgroup, each};
use super::digest::Digest;
use super::limits::{BLOCK, CACHE_LINE, ROW_MAX, SLOT_ALIGN, SLOT_HEADER, SLOT_HEADER_CHECKED};
use super::processor::{ByteOrder, LineSize};
use crate::check::Checks;
use crate::ids::{
    Rank, SenderRank, SubgroupId, index_from_u16, index_from_u32, u16_from_index, u64_from_index,
};

/// Version of the row format. It is part of the digest, so programs with different versions do not
/// connect.
const FORMAT: u64 = 2;

/// Version of the view protocol's columns. It is part of the digest of a group that has them.
const VIEWS_FORMAT: u64 = 1;

/// Version of the durable counts. It is part of the digest of a group that has them.
const LOGGED_FORMAT: u64 = 1;

/// Version of the header's cells. It is part of the digest of a group that has them.
const HEALTH_FORMAT: u64 = 1;

/// Version of the checks. It is part of the digest of a group that has them.
const CHECKS_FORMAT: u64 = 1;

/// Version of the channels' cells. It is part of the digest of a group that has them.
const CHANNELS_FORMAT: u64 = 1;

/// Version of the relays' trees. It is part of the digest of a group that has relays.
#[cfg(feature = "relays")]
const RELAYS_FORMAT: u64 = 1;

/// Version of layouts for other cache line sizes. It is part of the digest of a group that has one.
const LINES_FORMAT: u64 = 1;

/// Version of big-endian layouts, whose cells have the highest byte first. It is part of the digest
/// of such a layout.
const BIG_FORMAT: u64 = 1;

/// A cell of a subgroup's control block. All cells of an ordered subgroup share a cache line
/// (BAT-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ControlCell {
    /// Received frontier: a count of sequence positions.
    Received,
    /// Delivered frontier: a count of sequence positions.
    Delivered,
    /// Number of rounds that the row's owner used while it had declared silence (NUL-5).
    Silent,
    /// In a logged subgroup, the number of messages that the row's owner has made durable (DUR-1).
    Durable,
    /// In an unordered subgroup, the number of this sender's messages that the row's owner has
    /// consumed (DEL-3).
    Consumed(SenderRank),
}

impl ControlCell {
    /// Returns the offset in bytes from the start of the control block.
    #[must_use]
    pub const fn offset(self) -> usize {
        match self {
            Self::Received => 0,
            Self::Delivered => 8,
            Self::Silent => 16,
            Self::Durable => 24,
            Self::Consumed(sender) => sender.index().saturating_mul(8),
        }
    }
}

/// Position of a ring in its row, and the shape of its slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RingShape {
    /// Offset in bytes from the start of the row; a multiple of [`CACHE_LINE`].
    pub offset: usize,
    /// Distance in bytes from one slot to the next; a multiple of [`SLOT_ALIGN`].
    pub stride: usize,
    /// Number of slots in the ring; at least one.
    pub slots: u32,
    /// Largest payload in bytes; at most `stride` minus the slot's header.
    pub capacity: u32,
    /// Whether slots and counters carry checks.
    pub checks: Checks,
}

/// Required lengths of the slices of a node's private state (see [`State`](crate::node::State)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StateSizes {
    /// Number of subgroups that the node belongs to.
    pub subgroups: usize,
    /// Number of senders in all those subgroups, summed.
    pub senders: usize,
    /// Number of members in all those subgroups, summed.
    pub members: usize,
    /// Number of other members in all those subgroups, summed.
    pub links: usize,
    /// Number of subgroups that the node sends in. Each has a hand-off with one ready flag per
    /// slot.
    pub handoffs: usize,
    /// Number of ready flags in all those hand-offs, summed.
    pub ready: usize,
}

/// A checked group with its memory map. Create one with [`Layout::new`] or, if the membership may
/// change, with `Layout::with_views`.
///
/// ```
/// use tramontane_core::ids::{NodeId, Rank};
/// use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
///
/// const MEMBERS: [NodeId; 2] = [NodeId(7), NodeId(9)];
/// const RANKS: [Rank; 2] = [Rank(0), Rank(1)];
/// const GROUP: Group<'static> = Group {
///     members: &MEMBERS,
///     subgroups: &[Subgroup {
///         members: &RANKS,
///         senders: &RANKS,
///         window: 100,
///         message_max: 10_240,
///         delivery: Delivery::Ordered,
///     }],
/// };
/// // At compile time, as a partition does it:
/// const LAYOUT: Layout<'static> = match Layout::new(GROUP) {
///     Ok(layout) => layout,
///     Err(_) => panic!("the group is wrong"),
/// };
/// const ROW_BYTES: usize = LAYOUT.row_bytes(Rank(0));
/// assert_eq!(ROW_BYTES, 128 + 128 + 1_025_664);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Layout<'c> {
    pub(super) group: Group<'c>,
    /// Size in bytes of the view protocol's columns at the end of each row; zero with a fixed
    /// membership.
    pub(super) view_columns: usize,
    /// Subgroups whose senders may send large messages, each on its own channel.
    pub(super) large: &'c [SubgroupId],
    pub(super) channels: u16,
    /// Subgroups whose members log delivered messages.
    pub(super) logged: &'c [SubgroupId],
    /// Subgroups whose members pass on their sender's messages.
    #[cfg(feature = "relays")]
    pub(super) relayed: &'c [SubgroupId],
    /// Whether cells and slots carry checks.
    pub(super) checks: Checks,
    /// Whether headers hold incarnations and heartbeats.
    pub(super) health: bool,
    /// Cache line size that the rows are laid out for.
    pub(super) line: LineSize,
}

/// Rounds up to a multiple of `align`, a power of two.
pub(super) const fn round_up(value: usize, align: usize) -> usize {
    value.saturating_add(align.saturating_sub(1)) & !align.saturating_sub(1)
}

impl<'c> Layout<'c> {
    /// Checks a group and lays it out. The run time grows with the square of the number of members.
    ///
    /// # Errors
    /// Fails with the first error found in the group.
    pub const fn new(group: Group<'c>) -> Result<Self, LayoutError> {
        if let Err(error) = group.check() {
            return Err(error);
        }
        Self {
            group,
            view_columns: 0,
            large: &[],
            channels: 0,
            logged: &[],
            #[cfg(feature = "relays")]
            relayed: &[],
            checks: Checks::Off,
            health: false,
            line: LineSize::Bytes64,
        }
        .measured()
    }

    /// Returns whether rows have cells for block channels.
    pub(crate) const fn has_channels(&self) -> bool {
        self.channels > 0
    }

    /// Returns whether the senders of a subgroup may send large messages.
    #[must_use]
    pub const fn allows_large(&self, subgroup: SubgroupId) -> bool {
        each!(large in self.large, {
            if large.0 == subgroup.0 {
                return true;
            }
        });
        false
    }

    /// Returns whether the members of a subgroup log delivered messages.
    #[must_use]
    pub const fn is_logged(&self, subgroup: SubgroupId) -> bool {
        each!(logged in self.logged, {
            if logged.0 == subgroup.0 {
                return true;
            }
        });
        false
    }

    /// Returns this layout if every row can be addressed.
    pub(super) const fn measured(self) -> Result<Self, LayoutError> {
        let mut rank = Rank::ZERO;
        // bound: the members
        while rank.index() < self.members() {
            if self.row_bytes(rank) > ROW_MAX {
                return Err(LayoutError::RowTooLarge);
            }
            rank = rank.next();
        }
        Ok(self)
    }

    /// Returns the group that was laid out.
    #[must_use]
    pub const fn group(&self) -> &Group<'c> {
        &self.group
    }

    /// Returns the number of members.
    #[must_use]
    pub const fn members(&self) -> usize {
        self.group.members.len()
    }

    /// Returns the size in bytes of a member's row: a multiple of [`BLOCK`]. Saturates if the row
    /// cannot be addressed.
    #[must_use]
    pub const fn row_bytes(&self, owner: Rank) -> usize {
        self.multicast_bytes(owner).saturating_add(self.view_columns)
    }

    /// Returns the offset of the subgroups in every row, after the header and the channels.
    const fn subgroups_offset(&self) -> usize {
        let channels = index_from_u16(self.channels).saturating_mul(self.line.bytes());
        BLOCK.saturating_add(round_up(channels, BLOCK))
    }

    /// Returns the number of bytes in a row that do not belong to the view protocol.
    pub(super) const fn multicast_bytes(&self, owner: Rank) -> usize {
        let mut bytes = self.subgroups_offset();
        each!(subgroup in self.group.subgroups, {
            bytes = bytes.saturating_add(share_bytes(subgroup, owner, self.checks));
        });
        bytes
    }

    /// Returns the offset of a subgroup's control block in a member's row, if the member belongs to
    /// it.
    #[must_use]
    pub const fn control_offset(&self, owner: Rank, subgroup: SubgroupId) -> Option<usize> {
        let mut offset = self.subgroups_offset();
        let mut id = SubgroupId::ZERO;
        each!(candidate in self.group.subgroups, {
            if id.0 == subgroup.0 {
                return if candidate.has_member(owner) { Some(offset) } else { None };
            }
            offset = offset.saturating_add(share_bytes(candidate, owner, self.checks));
            id = id.next();
        });
        None
    }

    /// Returns the ring of a member in a subgroup, if the member sends there.
    #[must_use]
    pub const fn ring(&self, owner: Rank, subgroup: SubgroupId) -> Option<RingShape> {
        let Some(group) = self.subgroup(subgroup) else {
            return None;
        };
        let Some(control) = self.control_offset(owner, subgroup) else {
            return None;
        };
        if !group.has_sender(owner) {
            return None;
        }
        Some(RingShape {
            offset: control.saturating_add(control_bytes(group)),
            stride: slot_stride(group, self.checks),
            slots: group.window,
            capacity: group.message_max,
            checks: self.checks,
        })
    }

    /// Returns a subgroup by its id.
    #[must_use]
    pub const fn subgroup(&self, id: SubgroupId) -> Option<&'c Subgroup<'c>> {
        let mut at = SubgroupId::ZERO;
        each!(subgroup in self.group.subgroups, {
            if at.0 == id.0 {
                return Some(subgroup);
            }
            at = at.next();
        });
        None
    }

    /// Returns a member's index in a subgroup's sender list, if it is a sender.
    #[must_use]
    pub const fn sender_rank(&self, owner: Rank, subgroup: SubgroupId) -> Option<SenderRank> {
        let Some(group) = self.subgroup(subgroup) else {
            return None;
        };
        let mut at = 0_usize;
        each!(sender in group.senders, {
            if sender.0 == owner.0 {
                return match u16_from_index(at) {
                    Some(rank) => Some(SenderRank(rank)),
                    None => None,
                };
            }
            at = at.saturating_add(1);
        });
        None
    }

    /// Returns the total size in bytes of all rows of one view; each node maps or registers this
    /// much memory per view. A view change holds the memory of two views at once (SMC-1).
    #[must_use]
    pub const fn view_bytes(&self) -> usize {
        let mut bytes = 0_usize;
        let mut rank = Rank::ZERO;
        // bound: the members
        while rank.index() < self.members() {
            bytes = bytes.saturating_add(self.row_bytes(rank));
            rank = rank.next();
        }
        bytes
    }

    /// Returns the sizes of a member's private state.
    #[must_use]
    pub const fn state_sizes(&self, owner: Rank) -> StateSizes {
        let mut sizes =
            StateSizes { subgroups: 0, senders: 0, members: 0, links: 0, handoffs: 0, ready: 0 };
        each!(subgroup in self.group.subgroups, {
            if subgroup.has_member(owner) {
                sizes.subgroups = sizes.subgroups.saturating_add(1);
                sizes.senders = sizes.senders.saturating_add(subgroup.senders.len());
                sizes.members = sizes.members.saturating_add(subgroup.members.len());
                sizes.links =
                    sizes.links.saturating_add(subgroup.members.len().saturating_sub(1));
            }
            if subgroup.has_sender(owner) {
                sizes.handoffs = sizes.handoffs.saturating_add(1);
                sizes.ready = sizes.ready.saturating_add(index_from_u32(subgroup.window));
            }
        });
        sizes
    }

    /// Returns a number that two layouts share only if they have the same format, members,
    /// subgroups, sizes and byte order.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest_as(ByteOrder::OWN, self.line)
    }

    /// Returns the digest that this layout has on another processor.
    pub(super) const fn digest_as(&self, order: ByteOrder, line: LineSize) -> u64 {
        let mut digest = Digest::new().with(FORMAT).with(u64_from_index(self.members()));
        if self.view_columns > 0 {
            digest = digest.with(u64::MAX).with(VIEWS_FORMAT);
        }
        if self.channels > 0 {
            let channels = u64_from_index(index_from_u16(self.channels));
            digest = digest.with(u64::MAX - 1).with(CHANNELS_FORMAT).with(channels);
        }
        each!(large in self.large, {
            digest = digest.with(u64_from_index(large.index()));
        });
        if !self.logged.is_empty() {
            digest = digest.with(u64::MAX - 2).with(LOGGED_FORMAT);
        }
        each!(logged in self.logged, {
            digest = digest.with(u64_from_index(logged.index()));
        });
        #[cfg(feature = "relays")]
        if !self.relayed.is_empty() {
            digest = digest.with(u64::MAX - 7).with(RELAYS_FORMAT);
            each!(relayed in self.relayed, {
                digest = digest.with(u64_from_index(relayed.index()));
            });
        }
        if self.checks.is_on() {
            digest = digest.with(u64::MAX - 3).with(CHECKS_FORMAT);
        }
        if self.health {
            digest = digest.with(u64::MAX - 4).with(HEALTH_FORMAT);
        }
        if !matches!(line, LineSize::Bytes64) {
            digest = digest.with(u64::MAX - 5).with(LINES_FORMAT);
            digest = digest.with(u64_from_index(line.bytes()));
        }
        if matches!(order, ByteOrder::Big) {
            digest = digest.with(u64::MAX - 6).with(BIG_FORMAT);
        }
        each!(member in self.group.members, {
            digest = digest.with(widen_u32(member.0));
        });
        each!(subgroup in self.group.subgroups, {
            digest = digest
                .with(u64_from_index(subgroup.members.len()))
                .with(u64_from_index(subgroup.senders.len()))
                .with(widen_u32(subgroup.window))
                .with(widen_u32(subgroup.message_max))
                .with(match subgroup.delivery {
                    Delivery::Ordered => 0,
                    Delivery::Unordered => 1,
                });
            each!(rank in subgroup.members, {
                digest = digest.with(u64_from_index(rank.index()));
            });
            each!(rank in subgroup.senders, {
                digest = digest.with(u64_from_index(rank.index()));
            });
        });
        digest.get()
    }
}

/// Returns the distance in bytes from one slot to the next: payload, length and counter, rounded up
/// to a multiple of 16 (SMC-1).
pub(super) const fn slot_stride(subgroup: &Subgroup<'_>, checks: Checks) -> usize {
    let header = if checks.is_on() { SLOT_HEADER_CHECKED } else { SLOT_HEADER };
    round_up(index_from_u32(subgroup.message_max).saturating_add(header), SLOT_ALIGN)
}

/// Returns the size in bytes of a subgroup's control block.
const fn control_bytes(subgroup: &Subgroup<'_>) -> usize {
    match subgroup.delivery {
        Delivery::Ordered => BLOCK,
        Delivery::Unordered => {
            let cells = round_up(subgroup.senders.len().saturating_mul(8), BLOCK);
            if cells == 0 { BLOCK } else { cells }
        }
    }
}

/// Returns the number of bytes that one subgroup occupies in a member's row: a multiple of
/// [`BLOCK`].
const fn share_bytes(subgroup: &Subgroup<'_>, owner: Rank, checks: Checks) -> usize {
    if !subgroup.has_member(owner) {
        return 0;
    }
    let control = control_bytes(subgroup);
    if !subgroup.has_sender(owner) {
        return control;
    }
    let ring = slot_stride(subgroup, checks).saturating_mul(index_from_u32(subgroup.window));
    control.saturating_add(round_up(ring, BLOCK))
}

#[allow(clippy::as_conversions)]
const fn widen_u32(value: u32) -> u64 {
    value as u64
}

// The ring follows the control block, so a multiple of the block size must also be aligned for the
// ring's lines.
const _: () = assert!(BLOCK.is_multiple_of(CACHE_LINE));
const _: () = assert!(BLOCK.is_multiple_of(LineSize::Bytes128.bytes()));
