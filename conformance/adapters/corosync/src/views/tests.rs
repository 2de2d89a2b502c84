//! What must hold of ids: one for a view, at all members that install it; another for each other
//! view; rising.

use std::path::Path;
use std::time::Duration;

use super::*;

const RING: Ring = Ring { seq: 8, nodeid: 1 };

fn at(nodeid: u32) -> Address {
    Address { nodeid, pid: nodeid + 100 }
}

fn all(nodes: &[u32]) -> Vec<Address> {
    nodes.iter().copied().map(at).collect()
}

fn change(members: &[u32], left: &[(u32, Reason)], joined: &[(u32, Reason)]) -> Change {
    let list =
        |of: &[(u32, Reason)]| of.iter().map(|(node, reason)| (at(*node), *reason)).collect();
    Change { members: all(members), left: list(left), joined: list(joined) }
}

fn numbering(shared: &Path, node: u32) -> Numbering {
    Numbering::new(at(node), Registry::new(shared, "g0", Duration::from_secs(5)))
}

/// A member that joins, and is told so and the ring.
fn joined(shared: &Path, ring: Ring, node: u32, members: &[u32]) -> (Numbering, u64) {
    let mut member = numbering(shared, node);
    assert_eq!(member.change(change(members, &[], &[(node, Reason::Join)])), None);
    let views = member.ring(ring);
    assert_eq!(views.len(), 1);
    (member, views[0].id)
}

#[test]
fn a_joiner_learns_the_place_from_earlier_members_and_counts_on() {
    let shared = tempfile::tempdir().expect("a folder");
    let (mut first, id) = joined(shared.path(), RING, 1, &[1]);
    assert_eq!(id, 800_101_000);
    let joins = change(&[1, 2], &[], &[(2, Reason::Join)]);
    let waiting = std::thread::spawn({
        let shared = shared.path().to_owned();
        move || joined(&shared, RING, 2, &[1, 2])
    });
    let told = first.change(joins).map(|view| view.id);
    let (mut second, learned) = waiting.join().expect("no panic");
    assert_eq!(told, Some(800_101_001));
    assert_eq!(told, Some(learned));
    let leaves = change(&[1, 2], &[(3, Reason::ProcessDown)], &[]);
    assert_eq!(second.change(leaves.clone()), first.change(leaves));
}

#[test]
fn the_same_members_again_are_another_view() {
    let shared = tempfile::tempdir().expect("a folder");
    let (mut first, alone) = joined(shared.path(), RING, 1, &[1]);
    let both = first.change(change(&[1, 2], &[], &[(2, Reason::Join)])).map(|view| view.id);
    let again = first.change(change(&[1], &[(2, Reason::Leave)], &[])).map(|view| view.id);
    assert!(Some(alone) < both && both < again);
}

#[test]
fn a_joiner_comes_after_members_that_are_all_gone() {
    let shared = tempfile::tempdir().expect("a folder");
    let (mut first, _) = joined(shared.path(), RING, 1, &[1]);
    let before = first.change(change(&[1, 2], &[], &[(2, Reason::Join)])).map(|view| view.id);
    let (_, alone) = joined(shared.path(), RING, 4, &[4]);
    assert!(Some(alone) > before);
    let mut late = Numbering::new(at(5), Registry::new(shared.path(), "g0", Duration::ZERO));
    let _ = late.change(change(&[3, 5], &[], &[(5, Reason::Join)]));
    assert!(late.ring(RING)[0].id > alone);
}

#[test]
fn a_ring_s_changes_wait_for_its_id_and_differ_where_the_members_do() {
    let shared = tempfile::tempdir().expect("a folder");
    let next = Ring { seq: 12, nodeid: 1 };
    let arrive = |from: &[u32]| {
        let from: Vec<_> = from.iter().map(|node| (*node, Reason::NodeUp)).collect();
        change(&[1, 3], &[], &from)
    };
    let (mut one, before) = joined(shared.path(), RING, 1, &[1]);
    assert_eq!(one.change(change(&[1], &[(2, Reason::NodeDown)], &[])), None);
    assert_eq!(one.change(arrive(&[3])), None);
    assert!(one.holds());
    let (mut three, _) = joined(shared.path(), Ring { seq: 8, nodeid: 3 }, 3, &[3]);
    assert_eq!(three.change(change(&[3], &[(4, Reason::NodeDown)], &[])), None);
    assert_eq!(three.change(arrive(&[1])), None);
    let (one_views, three_views) = (one.ring(next), three.ring(next));
    assert!(before < one_views[0].id && one_views[0].id < one_views[1].id);
    assert_ne!(one_views[0].id, three_views[0].id);
    assert_eq!(one_views[1], three_views[1]);
    let leaves = change(&[1], &[(3, Reason::Leave)], &[]);
    assert_eq!(one.change(leaves.clone()).map(|view| view.id), Some(1_200_101_000));
    assert_eq!(three.change(leaves).map(|view| view.id), Some(1_200_101_000));
}
