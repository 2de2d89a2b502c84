//! A next view over TCP that is prepared more than once, because its list may change until it is
//! decided (VIE-11).

use crate::support::{
    DIGEST, TcpMember, VIEW, assert_way, connections, guard, ids, key, members, open_frame,
    open_frame_of, settle, with_hand, write_frame, write_frame_in,
};
use tramontane_core::fabric::{ErrorKind, Event, Fabric, LossCause, ViewRows as _};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_tcp::{Rows, Settings};

const NEXT: ViewId = ViewId(2);

/// The digests of the lists that are proposed for the next view.
const ONE: u64 = 1001;
const OTHER: u64 = 1002;

fn copy(rows: &Rows, of: usize) -> Vec<u8> {
    let row = rows.rows()[of];
    let mut bytes = vec![0; row.bytes()];
    row.read(0, &mut bytes).expect("the whole row");
    bytes
}

fn is_fresh(rows: &Rows, of: usize) -> bool {
    copy(rows, of).iter().all(|byte| *byte == 0)
}

fn post(
    member: &mut TcpMember,
    view: ViewId,
    rows: &Rows,
    to: Rank,
    value: u64,
) -> Result<(), ErrorKind> {
    rows.row().cell(8).expect("a cell").publish(value);
    member.fabric.post(view, to, &[guard(8)], None)
}

#[test]
fn view_with_mismatched_member_lists_is_not_ready() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let (a, b) = (Rank(0), Rank(1));
        let at_a = members[0].open_as(NEXT, ONE).expect("it opens");
        let at_b = members[1].open_as(NEXT, OTHER).expect("it opens");
        settle(&mut members);
        assert!(!members[0].fabric.ready(NEXT, b) && !members[1].fabric.ready(NEXT, a));
        assert_eq!(post(&mut members[0], NEXT, &at_a, b, 1), Err(ErrorKind::QueueFull));
        assert_eq!(
            (members[0].events(), members[1].events()),
            (vec![], vec![]),
            "neither ready nor lost"
        );
        assert_way(&mut members, 0, 1, 7);
        // One of the two members switches to the other's list.
        assert!(members[1].fabric.retire(NEXT));
        let at_b_again = members[1].open_as(NEXT, ONE).expect("it was never installed");
        settle(&mut members);
        assert_eq!(members[0].events(), [Event::Ready { view: NEXT, peer: b }]);
        assert_eq!(members[1].events(), [Event::Ready { view: NEXT, peer: a }]);
        post(&mut members[0], NEXT, &at_a, b, 2).expect("it is ready");
        settle(&mut members);
        assert_eq!(at_b_again.rows()[0].cell(8).expect("a cell").load(), 2);
        assert!(is_fresh(&at_b, 0), "memory that was given up");
        assert_way(&mut members, 1, 0, 8);
    }
}

/// Both members change their lists, in any order, and end with the same list.
#[test]
fn view_may_be_prepared_repeatedly() {
    let mut members = members(None, Settings::default());
    for (at_a, at_b) in [(ONE, OTHER), (OTHER, OTHER), (OTHER, ONE), (ONE, ONE)] {
        for (index, digest) in [(1, at_b), (0, at_a)] {
            members[index].fabric.retire(NEXT);
            members[index].open_as(NEXT, digest).expect("it was never installed");
        }
        settle(&mut members);
        let is_same = at_a == at_b;
        assert_eq!(members[0].fabric.ready(NEXT, Rank(1)), is_same);
        assert_eq!(members[1].fabric.ready(NEXT, Rank(0)), is_same);
    }
    assert_eq!(members[0].open_as(NEXT, ONE).err(), Some(ErrorKind::Other), "it is open");
}

/// A post under a list that its reader has given up is not lost silently, nor stored in the memory
/// of another list.
#[test]
fn abandoning_a_used_member_list_loses_connection() {
    let mut members = members(key(), Settings::default());
    let (a, b) = (Rank(0), Rank(1));
    let at_a = members[0].open_as(NEXT, ONE).expect("it opens");
    members[1].open_as(NEXT, ONE).expect("it opens");
    settle(&mut members);
    members[0].events();
    members[1].events();
    post(&mut members[0], NEXT, &at_a, b, 1).expect("it is ready");
    // Before the frame arrives, its reader prepares another list.
    assert!(members[1].fabric.retire(NEXT));
    let other = members[1].open_as(NEXT, OTHER).expect("it was never installed");
    settle(&mut members);
    assert!(is_fresh(&other, 0));
    let lost = |peer| Event::PeerLost { view: NEXT, peer, cause: LossCause::Misbehaved };
    assert!(members[0].events().contains(&lost(b)), "the member that posted is told");
    members[1].loss();
    assert_eq!(members[1].fabric.post(VIEW, a, &[guard(8)], None), Err(ErrorKind::PeerLost));
    assert_way(&mut members, 2, 0, 5);
}

#[test]
fn frames_from_old_views_are_ignored() {
    for key in [None, key()] {
        let (mut members, mut hand) = with_hand(key);
        hand.send(&[open_frame(), open_frame_of(NEXT, ONE)].concat());
        settle(&mut members);
        members[0].open_as(NEXT, ONE).expect("it opens");
        assert!(members[0].fabric.retire(NEXT));
        let first = members[0].open_as(NEXT, OTHER).expect("it was not used");
        // This frame belongs to the previous list, because the peer cannot know that the list has
        // been given up.
        hand.send(&write_frame_in(NEXT, 8, &[7; 64]));
        // Covers a view that ends in the middle of a write, and one that ends after it.
        let write = write_frame(128, &[9; 4096]);
        hand.send(&write[..1024]);
        settle(&mut members);
        assert!(members[0].fabric.retire(VIEW));
        let ended = members[0].copy(Rank(1));
        hand.send(&write[1024..]);
        hand.send(&write_frame(0, &[9; 64]));
        settle(&mut members);
        assert_eq!(members[0].copy(Rank(1)), ended, "a view that ended");
        assert!(is_fresh(&first, 1), "a list that was given up");
        let events = members[0].events();
        let is_lost = events.iter().any(|event| matches!(event, Event::PeerLost { .. }));
        assert!(!is_lost && !members[0].fabric.ready(NEXT, Rank(1)), "{events:?}");
    }
}

/// A network that loses packets may keep an admitted process from reaching a member until the
/// following view.
#[test]
fn admitted_node_is_distinguished_from_earlier_process() {
    let mut all = members(key(), Settings::default());
    let last = Rank(2);
    drop(all.pop());
    all[0].loss();
    let member = &mut all[0];
    member.open_without_last(NEXT).expect("the last is out");
    assert!(member.fabric.retire(VIEW));
    // The node is admitted again, but does not arrive in the first view in which it is a member.
    for (view, before) in [(ViewId(3), NEXT), (ViewId(4), ViewId(3))] {
        member.open(view).expect("there is room");
        assert!(member.fabric.retire(before));
        assert_eq!(member.fabric.post(view, last, &[guard(8)], None), Err(ErrorKind::QueueFull));
        let events = member.events();
        assert!(
            !events.iter().any(|event| matches!(event, Event::PeerLost { .. })),
            "{view}: {events:?}"
        );
    }
    let mut again = connections(key());
    let came = again[0][2].take().expect("a connection");
    member.fabric.add_peer(ids()[last.index()], came).expect("its place is free");
    let mut came = TcpMember::new(last, again.swap_remove(2), Settings::default());
    came.open(ViewId(4)).expect("it opens");
    all.push(came);
    settle(&mut all);
    assert!(all[0].fabric.ready(ViewId(4), last));
}

/// The end of a process that has left may be read only after its next process has arrived.
#[test]
fn connection_of_removed_process_can_be_replaced() {
    let mut all = members(key(), Settings::default());
    let last = Rank(2);
    // The process lives as long as this value, and nobody receives anything from it.
    let _out = all.pop();
    let member = &mut all[0];
    member.open_without_last(NEXT).expect("the last is out");
    assert!(member.fabric.retire(VIEW));
    let mut again = connections(key());
    let came = again[0][2].take().expect("a connection");
    member.fabric.part_from(ids()[last.index()]);
    assert!(!member.fabric.has_peer(ids()[last.index()]));
    member.open(ViewId(3)).expect("there is room");
    member.fabric.add_peer(ids()[last.index()], came).expect("its place is free");
    assert!(member.fabric.has_peer(ids()[last.index()]));
    let mut came = TcpMember::new(last, again.swap_remove(2), Settings::default());
    came.open(ViewId(3)).expect("it opens");
    all.push(came);
    settle(&mut all);
    assert!(all[0].fabric.ready(ViewId(3), last));
    // A member's connection is never replaced.
    let other = connections(key())[0][2].take().expect("a connection");
    let taken = all[0].fabric.add_peer(ids()[last.index()], other).expect_err("it is there");
    assert_eq!(taken.kind(), std::io::ErrorKind::AlreadyExists);
}

/// Both views have the same process, because it could not be admitted twice.
#[test]
fn peer_connecting_between_views_is_in_both() {
    let mut all = members(None, Settings::default());
    let (third, fourth) = (ViewId(3), ViewId(4));
    let (first, last) = (Rank(0), Rank(2));
    drop(all.pop());
    all[0].loss();
    let member = &mut all[0];
    member.open_without_last(NEXT).expect("the last is out");
    assert!(member.fabric.retire(VIEW));
    member.open(third).expect("there is room");
    assert!(member.fabric.retire(NEXT));
    member.open(fourth).expect("there is room");
    let mut again = connections(None);
    member
        .fabric
        .add_peer(ids()[2], again[0][2].take().expect("a connection"))
        .expect("its place is free");
    let mut came = TcpMember::new(last, again.swap_remove(2), Settings::default());
    came.open(third).expect("it opens");
    all.push(came);
    settle(&mut all);
    let [member, .., came] = &mut all[..] else { unreachable!("three") };
    assert!(
        member.fabric.ready(third, last) && came.fabric.ready(third, first),
        "the view that is installed"
    );
    came.open(fourth).expect("there is room");
    settle(&mut all);
    assert!(all[0].fabric.ready(fourth, last), "the view that is prepared");
}

/// Only the digest decides: a row of the same length is not enough.
#[test]
fn only_peer_with_equal_digest_is_ready() {
    let (mut members, mut hand) = with_hand(None);
    hand.send(&open_frame_of(VIEW, DIGEST ^ (1 << 63)));
    settle(&mut members);
    assert!(!members[0].fabric.ready(VIEW, Rank(1)));
    assert_eq!(members[0].fabric.post(VIEW, Rank(1), &[guard(8)], None), Err(ErrorKind::QueueFull));
    hand.send(&open_frame());
    settle(&mut members);
    assert!(members[0].fabric.ready(VIEW, Rank(1)), "it takes the place of what was said before");
    hand.send(&write_frame(0, &[7; 64]));
    settle(&mut members);
    assert_eq!(members[0].copy(Rank(1))[..64], [7; 64]);
}
