//! Where the cells of channels lie.

use tramontane_core::fabric::Channel;
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::{BLOCK, CHANNEL_BYTES, Layout, LayoutError};

#[test]
fn channels_stand_before_the_subgroups_at_one_place_in_every_row() {
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
