//! The memory map of a group: the sections of each row, and their total size.

use serde::Serialize;
use tramontane_core::fabric::ViewPlan;
use tramontane_core::ids::{Rank, SubgroupId};
use tramontane_core::layout::{BLOCK, Delivery, Layout};
use tramontane_core::multicast::{Link, MemberState, SenderState, SubgroupState};
use tramontane_core::smc::{HandOffCells, ReadyFlag};

use tramontane_runtime::group::FIRST_VIEW;
use tramontane_runtime::shared_memory::Residence;

/// The whole map.
#[derive(Debug, Serialize)]
pub(super) struct MemoryMap {
    /// Digest of the layout, in hexadecimal. Members whose digests differ do not meet.
    pub(super) digest: String,
    pub(super) members: usize,
    pub(super) subgroups: usize,
    pub(super) rows: Vec<RowMap>,
    /// Total size, in bytes, of the rows of one view, which each member maps or registers.
    pub(super) view_bytes: usize,
    /// Total size, in bytes, of the rows of two views with the same members: a view change holds
    /// both at once.
    pub(super) change_bytes: usize,
    /// Size in bytes of one view in shared memory, including headers, doorbells and padding to
    /// whole pages.
    pub(super) shared_memory_bytes: u64,
}

/// A member's row and its private state.
#[derive(Debug, Serialize)]
pub(super) struct RowMap {
    pub(super) rank: u16,
    pub(super) id: u32,
    pub(super) bytes: usize,
    pub(super) parts: Vec<MapPart>,
    pub(super) state: StateMap,
}

/// One section of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct MapPart {
    /// Offset from the start of the row.
    pub(super) offset: usize,
    pub(super) bytes: usize,
    #[serde(flatten)]
    pub(super) what: What,
}

/// The kind of a section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum What {
    /// The header of the row.
    Header,
    /// Frontiers of a subgroup; also consumed counts if it is unordered.
    Control { subgroup: u16, unordered: bool },
    /// Slots of one sender.
    Ring { subgroup: u16, slots: u32, stride: usize, message_max: u32 },
}

/// Memory, in bytes, that a member needs in addition to the rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct StateMap {
    pub(super) subgroups: usize,
    pub(super) senders: usize,
    pub(super) members: usize,
    pub(super) links: usize,
    pub(super) handoffs: usize,
    pub(super) ready: usize,
    pub(super) bytes: usize,
}

impl MemoryMap {
    /// Of a layout.
    pub(super) fn of(layout: &Layout<'_>) -> Self {
        let plan = ViewPlan::of_layout(FIRST_VIEW, Rank::ZERO, layout);
        let view_bytes = layout.view_bytes();
        Self {
            digest: format!("{:016x}", layout.digest()),
            members: layout.members(),
            subgroups: layout.group().subgroups.len(),
            rows: (0..)
                .map(Rank)
                .take(layout.members())
                .map(|rank| RowMap::of(layout, rank))
                .collect(),
            view_bytes,
            change_bytes: view_bytes.saturating_mul(2),
            shared_memory_bytes: Residence::view_bytes(&plan),
        }
    }
}

impl RowMap {
    fn of(layout: &Layout<'_>, rank: Rank) -> Self {
        let bytes = layout.row_bytes(rank);
        let mut parts = vec![MapPart { offset: 0, bytes: BLOCK, what: What::Header }];
        let ids = (0..).map(SubgroupId).take(layout.group().subgroups.len());
        for (id, subgroup) in ids.zip(layout.group().subgroups) {
            let Some(offset) = layout.control_offset(rank, id) else { continue };
            let unordered = subgroup.delivery == Delivery::Unordered;
            parts.push(MapPart {
                offset,
                bytes: 0,
                what: What::Control { subgroup: id.get(), unordered },
            });
            if let Some(ring) = layout.ring(rank, id) {
                let what = What::Ring {
                    subgroup: id.get(),
                    slots: ring.slots,
                    stride: ring.stride,
                    message_max: ring.capacity,
                };
                parts.push(MapPart { offset: ring.offset, bytes: 0, what });
            }
        }
        // Each section extends to the start of the next, and the last section to the end of the
        // row.
        let ends: Vec<usize> =
            parts.iter().skip(1).map(|part| part.offset).chain([bytes]).collect();
        for (part, end) in parts.iter_mut().zip(ends) {
            part.bytes = end.saturating_sub(part.offset);
        }
        let id = layout.group().members.get(rank.index()).map_or(0, |id| id.get());
        Self { rank: rank.get(), id, bytes, parts, state: StateMap::of(layout, rank) }
    }

    /// Returns whether two rows have the same layout.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.bytes, &self.parts, &self.state) == (other.bytes, &other.parts, &other.state)
    }
}

impl StateMap {
    fn of(layout: &Layout<'_>, rank: Rank) -> Self {
        let sizes = layout.state_sizes(rank);
        let subgroups = sizes.subgroups.saturating_mul(size_of::<SubgroupState>());
        let senders = sizes.senders.saturating_mul(size_of::<SenderState>());
        let members = sizes.members.saturating_mul(size_of::<MemberState>());
        let links = sizes.links.saturating_mul(size_of::<Link>());
        let handoffs = sizes.handoffs.saturating_mul(size_of::<HandOffCells>());
        let ready = sizes.ready.saturating_mul(size_of::<ReadyFlag>());
        let parts = [subgroups, senders, members, links, handoffs, ready];
        let bytes = parts.into_iter().fold(0, usize::saturating_add);
        Self { subgroups, senders, members, links, handoffs, ready, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tramontane_runtime::group::{Description, DescriptionBuilder, SubgroupDescription, View};

    fn map(group: DescriptionBuilder) -> MemoryMap {
        let group = group.fixed().build().expect("a group");
        let layout = group.view_layout(&View::of_all(&group)).expect("a layout");
        MemoryMap::of(layout.get())
    }

    #[test]
    fn layout_map_shows_rings_only_for_senders() {
        let map = map(Description::builder("g").nodes(3).senders(2));
        let ring = What::Ring { subgroup: 0, slots: 100, stride: 10_256, message_max: 10_240 };
        let control = What::Control { subgroup: 0, unordered: false };
        let header = MapPart { offset: 0, bytes: 128, what: What::Header };
        let control = MapPart { offset: 128, bytes: 128, what: control };
        let ring = MapPart { offset: 256, bytes: 1_025_664, what: ring };
        assert_eq!(map.rows[0].parts, [header.clone(), control.clone(), ring]);
        assert_eq!(map.rows[2].parts, [header, control]);
        assert!(map.rows[0].is_like(&map.rows[1]) && !map.rows[0].is_like(&map.rows[2]));
        assert_eq!(map.view_bytes, 2 * 1_025_920 + 256);
        assert_eq!(map.change_bytes, 2 * map.view_bytes);
        assert!(map.shared_memory_bytes > map.view_bytes as u64);
        assert!(map.rows[2].state.ready == 0 && map.rows[0].state.ready > 0);
    }

    #[test]
    fn row_parts_add_up_for_any_subgroups() {
        let subgroup = |name, members: &[u32], senders: &[u32], unordered| SubgroupDescription {
            members: Some(members.to_vec()),
            senders: Some(senders.to_vec()),
            window: 3,
            message_max: 5,
            unordered,
            ..SubgroupDescription::named(name)
        };
        let group = Description::builder("g")
            .node_ids([10, 20, 30])
            .subgroup(subgroup("a", &[10, 20], &[20], false))
            .subgroup(subgroup("b", &[10, 30], &[10, 30], true))
            .subgroup(subgroup("c", &[10, 20, 30], &[], false));
        for row in map(group).rows {
            let mut end = 0;
            for part in &row.parts {
                assert_eq!(part.offset, end);
                assert!(part.bytes > 0);
                end += part.bytes;
            }
            assert_eq!(end, row.bytes);
        }
    }
}
