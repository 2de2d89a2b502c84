//! The barrier of a fixed membership, as long as it is here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{LONG, NEVER, Place, layout, name, small};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::Layout;
use tramontane_shared_memory::{Error, Mappings, Rendezvous, Root};

fn join(
    root: &Root,
    group: &str,
    layout: &Layout<'_>,
    own: u16,
    limit: Duration,
) -> Result<Mappings, Error> {
    Rendezvous::new(root, &name(group), layout, Rank(own))?.join(limit, &NEVER)
}

fn join_all(root: &Root, group: &str, layout: &Layout<'_>) -> Vec<Mappings> {
    std::thread::scope(|scope| {
        let members: Vec<_> = (0..layout.members())
            .map(|rank| {
                let rank = u16::try_from(rank).expect("a rank");
                scope.spawn(move || join(root, group, layout, rank, LONG).expect("it joins"))
            })
            .collect();
        members.into_iter().map(|member| member.join().expect("no panic")).collect()
    })
}

#[test]
fn members_that_do_not_come_are_named_and_nothing_is_left() {
    let place = Place::new();
    let started = Instant::now();
    let error = join(&place.root(), "lonely", &small(3), 1, Duration::from_millis(150))
        .expect_err("nobody else comes");
    assert!(started.elapsed() < LONG / 2);
    let Error::MissingMembers { missing, .. } = &error else { panic!("{error}") };
    assert_eq!(missing, &[NodeId(10), NodeId(12)]);
    place.assert_empty();
}

#[test]
fn another_configuration_is_refused_by_both_sides() {
    let place = Place::new();
    let root = place.root();
    let (one, other) = (layout(2, 8, 100), layout(2, 8, 101));
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| join(&root, "digest", &one, 0, LONG));
        let second = scope.spawn(|| join(&root, "digest", &other, 1, LONG));
        (first.join().expect("no panic"), second.join().expect("no panic"))
    });
    assert!(matches!(first, Err(Error::WrongDigest { peer: NodeId(11) })), "{first:?}");
    assert!(matches!(second, Err(Error::WrongDigest { peer: NodeId(10) })), "{second:?}");
    place.assert_empty();
}

#[test]
fn waiting_can_be_cancelled() {
    let place = Place::new();
    let (root, layout, cancel) = (place.root(), small(2), AtomicBool::new(false));
    let started = Instant::now();
    std::thread::scope(|scope| {
        let member = scope.spawn(|| {
            let group = name("cancel");
            Rendezvous::new(&root, &group, &layout, Rank(0)).expect("a rank").join(LONG, &cancel)
        });
        std::thread::sleep(Duration::from_millis(20));
        cancel.store(true, Ordering::Relaxed);
        assert!(matches!(member.join().expect("no panic"), Err(Error::Cancelled)));
    });
    assert!(started.elapsed() < LONG / 2);
    place.assert_empty();
}

#[test]
fn a_member_that_was_restarted_alone_does_not_join_the_old_run() {
    let place = Place::new();
    let (root, layout) = (place.root(), small(3));
    let mut members = join_all(&root, "restart", &layout);
    drop(members.remove(1));
    let error = join(&root, "restart", &layout, 1, Duration::from_millis(200))
        .expect_err("the others run without it");
    let Error::StillEnding { peers, .. } = &error else { panic!("{error}") };
    assert_eq!(peers, &[NodeId(10), NodeId(12)]);
    // Once the others have ended too, it waits for their next run.
    std::thread::scope(|scope| {
        let restarted = scope.spawn(|| join(&root, "restart", &layout, 1, LONG).expect("it joins"));
        std::thread::sleep(Duration::from_millis(20));
        drop(members);
        let others = [0, 2].map(|rank| {
            let (root, layout) = (&root, &layout);
            scope.spawn(move || join(root, "restart", layout, rank, LONG).expect("it joins"))
        });
        let _others = others.map(|other| other.join().expect("no panic"));
        restarted.join().expect("no panic");
    });
    place.assert_empty();
}
