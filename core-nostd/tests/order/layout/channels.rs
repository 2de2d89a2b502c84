//! Offsets of the channels' cells.

use tramontane_core::fabric::Channel;
use tramontane_core::ids::{NodeId, Rank, SenderRank, SubgroupId};
use tramontane_core::layout::{
    BLOCK, CHANNEL_BYTES, Delivery, Group, Layout, LayoutError, Subgroup,
};

#[test]
fn channels_precede_subgroups_in_every_row() {
    let nodes = [NodeId(3), NodeId(4)];
    let layout = Layout::of_channels(&nodes, 3).expect("members");
    let offsets: Vec<_> = (0..4).map(|channel| layout.channel_offset(Channel(channel))).collect();
    assert_eq!(
        offsets,
        [Some(BLOCK), Some(BLOCK + CHANNEL_BYTES), Some(BLOCK + 2 * CHANNEL_BYTES), None]
    );
    for rank in [Rank(0), Rank(1)] {
        assert_eq!(layout.row_bytes(rank), BLOCK + 2 * BLOCK, "whole blocks");
    }
    let digests =
        [0, 1, 3].map(|channels| Layout::of_channels(&nodes, channels).expect("members").digest());
    assert!(
        digests[0] != digests[1] && digests[1] != digests[2],
        "members that disagree do not meet"
    );
    let twice = [NodeId(3), NodeId(3)];
    assert_eq!(Layout::of_channels(&twice, 1).err(), Some(LayoutError::DuplicateMember));
    assert_eq!(Layout::of_channels(&[], 1).err(), Some(LayoutError::NoMembers));
}

/// RDM-7: each sender of a subgroup with large messages has a channel, identified by a 16-bit
/// number.
#[test]
fn too_many_senders_of_large_messages_are_refused() {
    let nodes: Vec<NodeId> = (0..1024).map(NodeId).collect();
    let ranks: Vec<Rank> = (0..1024).map(Rank).collect();
    let subgroup = Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 1,
        message_max: 1,
        delivery: Delivery::Ordered,
    };
    let subgroups = [subgroup; 64];
    let group = Group { members: &nodes, subgroups: &subgroups };
    let layout = Layout::new(group).expect("a good group");
    let ids: Vec<SubgroupId> = (0..64).map(SubgroupId).collect();
    let most = layout.with_large(&ids[..63]).expect("one less than 64 times 1,024");
    let last = most.large_channel(SubgroupId(62), SenderRank(1023));
    assert_eq!(last, Some(Channel(63 * 1024 - 1)));
    assert_eq!(most.large_channel(SubgroupId(62), SenderRank(1024)), None, "no such sender");
    assert_eq!(most.large_channel(SubgroupId(63), SenderRank(0)), None, "it was not named");
    assert_eq!(layout.with_large(&ids).err(), Some(LayoutError::TooManyChannels));
}
