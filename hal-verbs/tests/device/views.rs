//! Views on one device: the memory, keys and connections of one view do not lead to another
//! (VIE-11), and peers arrive one by one.

use std::time::Duration;

use tramontane_core::fabric::{ErrorKind, Event, Fabric, LossCause, Token, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_verbs::status::WorkStatus;
use tramontane_verbs::{Limits, Site, Verbs, ViewOptions};

use super::group::device;
use super::{A, B, OpenMember, drain, guard, seen, settle, store, wait_for};

const OLD: ViewId = ViewId(1);
const NEW: ViewId = ViewId(2);
const ROW_BYTES: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(20);

/// The part of a card with the memory's address and key.
const MEMORY_IN_CARD: std::ops::Range<usize> = 34..46;

fn site() -> Site {
    Site::open(&device::wanted(), &Limits::default(), None).expect("a device")
}

/// Opens a view on a member, without connections.
fn alone(site: &Site, view: ViewId, own: Rank) -> OpenMember {
    let options = ViewOptions {
        view,
        own,
        members: &[NodeId(10), NodeId(11)],
        row_bytes: &[ROW_BYTES; 2],
        relayed: &[],
        regions: &[],
        blocks: false,
    };
    let mut fabric = site.view(&options).expect("memory");
    let rows = fabric.rows().clone();
    fabric.open(view, &rows.memory()).expect("it opens");
    OpenMember { fabric, rows }
}

/// Connects both members in a view.
fn together(sites: &[Site; 2], view: ViewId) -> (OpenMember, OpenMember) {
    let (mut a, mut b) = (alone(&sites[0], view, A), alone(&sites[1], view, B));
    let (of_a, of_b) = (a.fabric.card_for(B), b.fabric.card_for(A));
    assert!(a.fabric.connect(B, &of_b) && b.fabric.connect(A, &of_a));
    a.fabric.admit(B);
    b.fabric.admit(A);
    await_ready(&mut a, view, B);
    await_ready(&mut b, view, A);
    (a, b)
}

/// Waits until a first write to a peer has been acknowledged, which is reported once.
fn await_ready(member: &mut OpenMember, view: ViewId, peer: Rank) {
    let mut told = Vec::new();
    wait_for("the first answer", PATIENCE, || {
        told.extend(drain(&mut member.fabric));
        member.fabric.ready(view, peer)
    });
    told.extend(drain(&mut member.fabric));
    assert_eq!(told, [Event::Ready { view, peer }]);
}

fn loss_of(fabric: &mut Verbs) -> LossCause {
    let mut lost = None;
    wait_for("the loss", PATIENCE, || {
        lost = drain(fabric).into_iter().find_map(|event| match event {
            Event::PeerLost { cause, .. } => Some(cause),
            _ => None,
        });
        lost.is_some()
    });
    lost.expect("it came")
}

#[test]
fn writes_of_old_view_never_land_in_new() {
    let sites = [site(), site()];
    let (mut old_a, mut old_b) = together(&sites, OLD);
    let (mut new_a, new_b) = together(&sites, NEW);
    store(&old_a, 0, &[7; 64]);
    old_a.fabric.post(OLD, B, &[guard(0, 64)], None).expect("room");
    // Without this wait, a slow device would have written nothing when its peer ends the view.
    wait_for("the first write", PATIENCE, || seen(&old_b, A, 0, 64) == [7; 64]);
    // Posts as many writes as can be in flight when the other member ends the view.
    while old_a.fabric.post(OLD, B, &[guard(0, 64)], None).is_ok() {}
    wait_for("the end of the old view", PATIENCE, || {
        old_a.fabric.collect();
        old_b.fabric.retire(OLD)
    });
    assert_eq!(seen(&old_b, A, 0, 64), [7; 64], "it landed where it was to");
    // A member that has not left the old view may still post in it. Nothing lands, and nothing
    // fails.
    store(&old_a, 0, &[8; 64]);
    for token in 0..300 {
        let posted = old_a.fabric.post(OLD, B, &[guard(0, 64)], Some(Token(token)));
        assert!(matches!(posted, Ok(()) | Err(ErrorKind::QueueFull)), "{posted:?}");
        old_a.fabric.collect();
    }
    settle(&mut old_a);
    let events = drain(&mut old_a.fabric);
    assert!(events.iter().all(|event| matches!(event, Event::Completed(_))), "{events:?}");
    assert!(events.contains(&Event::Completed(Token(299))));
    assert_eq!(seen(&old_b, A, 0, 64), [7; 64]);
    assert_eq!(seen(&new_b, A, 0, ROW_BYTES), [0; ROW_BYTES]);
    // The new view continues to work.
    store(&new_a, 64, &[9; 8]);
    new_a.fabric.post(NEW, B, &[guard(64, 8)], None).expect("room");
    settle(&mut new_a);
    assert_eq!(seen(&new_b, A, 64, 8), [9; 8]);
    assert_eq!(seen(&old_b, A, 64, 8), [0; 8]);
}

#[test]
fn key_of_new_view_fails_on_old_connection() {
    let sites = [site(), site()];
    let (mut old_a, mut old_b) = (alone(&sites[0], OLD, A), alone(&sites[1], OLD, B));
    let new_b = alone(&sites[1], NEW, B);
    // A card for the old connection with the new memory's address.
    let (mut forged, of_new) = (old_b.fabric.card_for(A), new_b.fabric.card_for(A));
    forged[MEMORY_IN_CARD].copy_from_slice(&of_new[MEMORY_IN_CARD]);
    assert_ne!(forged, old_b.fabric.card_for(A));
    let of_a = old_a.fabric.card_for(B);
    assert!(old_a.fabric.connect(B, &forged) && old_b.fabric.connect(A, &of_a));
    // The first write with bytes is refused, before any part of a row is sent.
    old_a.fabric.admit(B);
    // The cause is not `Denied`, because the peer did not report that it cut this member off.
    assert_eq!(loss_of(&mut old_a.fabric), LossCause::Unreachable);
    let loss = old_a.fabric.loss_of(B).expect("it is lost");
    assert!(
        matches!(loss.status, Some(WorkStatus::RemoteAccess | WorkStatus::RemoteInvalidRequest)),
        "{loss}"
    );
    assert_eq!(seen(&new_b, A, 0, ROW_BYTES), [0; ROW_BYTES]);
}

#[test]
fn early_write_waits_until_peer_admits_member() {
    let sites = [site(), site()];
    let (mut a, mut b) = (alone(&sites[0], NEW, A), alone(&sites[1], NEW, B));
    assert_eq!(
        a.fabric.post(NEW, B, &[guard(0, 8)], None),
        Err(ErrorKind::QueueFull),
        "nobody is there"
    );
    let (of_a, of_b) = (a.fabric.card_for(B), b.fabric.card_for(A));
    assert!(b.fabric.connect(A, &of_a) && a.fabric.connect(B, &of_b));
    a.fabric.admit(B);
    await_ready(&mut a, NEW, B);
    store(&a, 0, &[5; 8]);
    a.fabric.post(NEW, B, &[guard(0, 8)], None).expect("room");
    // The member goes to sleep, and reports that to a peer that has not yet learned that it may
    // write.
    drain(&mut a.fabric);
    assert!(a.fabric.arm());
    settle(&mut a);
    b.fabric.collect();
    assert_eq!(seen(&b, A, 0, 8), [5; 8]);
    assert!(!b.fabric.ready(NEW, A));
    b.fabric.admit(A);
    await_ready(&mut b, NEW, A);
    b.fabric.post(NEW, A, &[guard(0, 8)], None).expect("room");
    assert!(a.fabric.sleep(PATIENCE), "the post rings");
    a.fabric.disarm();
}

#[test]
fn peer_with_malformed_card_is_lost() {
    let sites = [site(), site()];
    let mut a = alone(&sites[0], NEW, A);
    assert!(!a.fabric.connect(B, b"no card"));
    assert_eq!(loss_of(&mut a.fabric), LossCause::Unreachable);
    assert!(!a.fabric.connect(B, &alone(&sites[1], NEW, B).fabric.card_for(A)), "lost for good");
    a.fabric.admit(B);
    assert!(!a.fabric.ready(NEW, B));
}

#[test]
fn view_without_peers_retires_at_once() {
    let sites = [site(), site()];
    let (mut a, mut b) = (alone(&sites[0], NEW, A), alone(&sites[1], NEW, B));
    assert!(a.fabric.retire(NEW));
    let (of_a, of_b) = (a.fabric.card_for(B), b.fabric.card_for(A));
    assert!(!a.fabric.connect(B, &of_b), "its connections are gone");
    assert!(!b.fabric.connect(A, &of_a), "and told as none");
    assert_eq!(loss_of(&mut b.fabric), LossCause::Unreachable);
}
