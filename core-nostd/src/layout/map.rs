//! The memory map: where everything lies in a row, and how much of everything there is.
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

/// The version of the row format. It is part of the digest: programs that differ in it do not meet.
const FORMAT: u64 = 1;

/// The version of the view protocol's columns. It is part of the digest of a group that has them.
const VIEWS_FORMAT: u64 = 1;

/// The version of the durable counts. It is part of the digest of a group that has them.
const LOGGED_FORMAT: u64 = 1;

/// The version of the header's cells. It is part of the digest of a group that has them.
const HEALTH_FORMAT: u64 = 1;

/// The version of the checks. It is part of the digest of a group that has them.
const CHECKS_FORMAT: u64 = 1;

/// The version of the channels' cells. It is part of the digest of a group that has them.
const CHANNELS_FORMAT: u64 = 1;

/// The version of layouts for other cache lines. It is part of the digest of a group that has them.
const LINES_FORMAT: u64 = 1;

/// What follows where the highest byte of a cell comes first. It is part of the digest there.
const BIG_FORMAT: u64 = 1;

/// A cell of a subgroup's control block. All cells of an ordered one share a cache line (BAT-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ControlCell {
    /// The received frontier: a count of places.
    Received,
    /// The delivered frontier: a count of places.
    Delivered,
    /// Rounds that the row's owner used while it had declared silence (NUL-5).
    Silent,
    /// In a logged subgroup: how many messages the row's owner has made durable (DUR-1).
    Durable,
    /// In an unordered subgroup: messages of this sender that the row's owner has consumed (DEL-3).
    Consumed(SenderRank),
}

impl ControlCell {
    /// Bytes from the start of the control block.
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

/// Where a ring lies in its row and how its slots are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RingShape {
    /// Bytes from the start of the row. A multiple of [`CACHE_LINE`].
    pub offset: usize,
    /// Bytes from one slot to the next. A multiple of [`SLOT_ALIGN`].
    pub stride: usize,
    /// Slots of the ring; at least one.
    pub slots: u32,
    /// The largest payload, in bytes. At most `stride` without the slot's header.
    pub capacity: u32,
    /// Whether slots and counters carry checks.
    pub checks: Checks,
}

/// How long each slice of a node's private state must be (see [`State`](crate::node::State)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StateSizes {
    /// Subgroups that the node belongs to.
    pub subgroups: usize,
    /// Senders of all those subgroups, added up.
    pub senders: usize,
    /// Members of all those subgroups, added up.
    pub members: usize,
    /// Other members of all those subgroups, added up.
    pub links: usize,
    /// Subgroups that the node sends in; each has a hand-off with one ready flag a slot.
    pub handoffs: usize,
    /// Ready flags of all those hand-offs, added up.
    pub ready: usize,
}

/// A checked group with its memory map.
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
    /// Bytes of the view protocol's columns at the end of each row; none with a fixed membership.
    pub(super) view_columns: usize,
    /// Subgroups whose senders may send large messages, each by a channel of its own.
    pub(super) large: &'c [SubgroupId],
    pub(super) channels: u16,
    /// Subgroups whose members log what they deliver.
    pub(super) logged: &'c [SubgroupId],
    /// Whether cells and slots carry checks.
    pub(super) checks: Checks,
    /// Whether headers show incarnations and heartbeats.
    pub(super) health: bool,
    /// The cache lines that rows are laid out for.
    pub(super) line: LineSize,
}

/// Rounds up to a multiple of `align`, a power of two.
pub(super) const fn round_up(value: usize, align: usize) -> usize {
    value.saturating_add(align.saturating_sub(1)) & !align.saturating_sub(1)
}

impl<'c> Layout<'c> {
    /// Checks a group and lays it out. Time grows with the square of the members.
    ///
    /// # Errors
    /// The first thing that is wrong with the group.
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
            checks: Checks::Off,
            health: false,
            line: LineSize::Bytes64,
        }
        .measured()
    }

    /// Whether rows have cells of channels, for blocks.
    pub(crate) const fn has_channels(&self) -> bool {
        self.channels > 0
    }

    /// Whether the senders of a subgroup may send large messages.
    #[must_use]
    pub const fn allows_large(&self, subgroup: SubgroupId) -> bool {
        each!(large in self.large, {
            if large.0 == subgroup.0 {
                return true;
            }
        });
        false
    }

    /// Whether the members of a subgroup log what they deliver.
    #[must_use]
    pub const fn is_logged(&self, subgroup: SubgroupId) -> bool {
        each!(logged in self.logged, {
            if logged.0 == subgroup.0 {
                return true;
            }
        });
        false
    }

    /// This layout, if every row can be addressed.
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

    /// The group that was laid out.
    #[must_use]
    pub const fn group(&self) -> &Group<'c> {
        &self.group
    }

    /// How many members the group has.
    #[must_use]
    pub const fn members(&self) -> usize {
        self.group.members.len()
    }

    /// The row of a member, in bytes; a multiple of [`BLOCK`]. Saturates where it cannot be
    /// addressed.
    #[must_use]
    pub const fn row_bytes(&self, owner: Rank) -> usize {
        self.multicast_bytes(owner).saturating_add(self.view_columns)
    }

    /// Where the subgroups begin, in every row: behind the header and the channels.
    const fn subgroups_offset(&self) -> usize {
        let channels = index_from_u16(self.channels).saturating_mul(self.line.bytes());
        BLOCK.saturating_add(round_up(channels, BLOCK))
    }

    /// The part of a row that does not belong to the view protocol.
    pub(super) const fn multicast_bytes(&self, owner: Rank) -> usize {
        let mut bytes = self.subgroups_offset();
        each!(subgroup in self.group.subgroups, {
            bytes = bytes.saturating_add(share_bytes(subgroup, owner, self.checks));
        });
        bytes
    }

    /// Where a subgroup's control block starts in a member's row, if the member belongs to it.
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

    /// The ring of a sender in a subgroup, if it is one.
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

    /// A subgroup by its id.
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

    /// A member's place in a subgroup's sender list, if it is there.
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

    /// All rows of one view, in bytes: what each node maps or registers for it. A view change holds
    /// two views' worth at once (SMC-1).
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

    /// How much private state a member needs.
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

    /// A number that two layouts share only if they are the same: format, members, subgroups,
    /// sizes, and the processor's order of bytes.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest_as(ByteOrder::OWN, self.line)
    }

    /// The digest that this layout has on another processor.
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

/// Bytes from one slot to the next: payload, length and counter, on a multiple of 16 (SMC-1).
pub(super) const fn slot_stride(subgroup: &Subgroup<'_>, checks: Checks) -> usize {
    let header = if checks.is_on() { SLOT_HEADER_CHECKED } else { SLOT_HEADER };
    round_up(index_from_u32(subgroup.message_max).saturating_add(header), SLOT_ALIGN)
}

/// The control block of a subgroup, in bytes.
const fn control_bytes(subgroup: &Subgroup<'_>) -> usize {
    match subgroup.delivery {
        Delivery::Ordered => BLOCK,
        Delivery::Unordered => {
            let cells = round_up(subgroup.senders.len().saturating_mul(8), BLOCK);
            if cells == 0 { BLOCK } else { cells }
        }
    }
}

/// What one subgroup takes in a member's row, in bytes; a multiple of [`BLOCK`].
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

// The ring follows the control block, so the block's multiple must do for the ring's line.
const _: () = assert!(BLOCK.is_multiple_of(CACHE_LINE));
const _: () = assert!(BLOCK.is_multiple_of(LineSize::Bytes128.bytes()));
