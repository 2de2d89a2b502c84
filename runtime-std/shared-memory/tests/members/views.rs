//! Successive views in shared memory, with all members in this process. For other processes, see
//! `views_processes`.

use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::views::{
    DESCRIPTION, GROUP, Resident, bytes, claim, layout_of, layout_with, see, store,
};
use crate::support::{LONG, NEVER, RoleProcess, SharedFolder, name, role, say};
use tramontane_core::fabric::{
    ErrorKind, Event, Fabric as _, HostFabric as _, Kind, LossCause, Token, ViewPlan,
    ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{Error, Residence, Root};

const WRITE: [Write; 1] = [Write::of_row(0, 8, Kind::Guard)];

const fn ready(view: u64, peer: u16) -> Event {
    Event::Ready { view: ViewId(view), peer: Rank(peer) }
}

const fn lost(view: u64, peer: u16, cause: LossCause) -> Event {
    Event::PeerLost { view: ViewId(view), peer: Rank(peer), cause }
}

#[test]
fn row_mapped_later_keeps_its_address() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let memory = first.open(1, &[1, 2]).expect("it opens before its peer is there");
    let before = memory.rows();
    assert!(bytes(&memory, 1).iter().all(|byte| *byte == 0), "not there yet");
    assert!(!first.fabric.ready(ViewId(1), Rank(1)));
    assert_eq!(first.fabric.post(ViewId(1), Rank(1), &WRITE, None), Err(ErrorKind::QueueFull));
    assert_eq!(first.events(), []);

    let mut second = Resident::new(&place.root(), 2, 200);
    let theirs = second.make(1, &layout_of(&[1, 2]), Rank(1)).expect("memory");
    store(&theirs, 8, 5);
    second.open_on(1, &theirs).expect("it opens");
    first.await_ready(1, 1);
    assert_eq!(
        before[1].cell(8).expect("a cell").load(),
        5,
        "through a row that was borrowed before"
    );
    assert_eq!(memory.rows()[1].base(), before[1].base());
    assert_eq!(second.events(), [ready(1, 0)]);
    store(&memory, 8, 6);
    assert_eq!(first.fabric.post(ViewId(1), Rank(1), &WRITE, Some(Token(3))), Ok(()));
    assert_eq!(see(&theirs, 0, 8), 6);
    assert!(first.events().contains(&Event::Completed(Token(3))));
    drop((memory, theirs, first, second));
    place.assert_empty();
}

/// A peer's queue of descriptors is full when the view opens, as in a group of more members than
/// the queue has room for. A member that counted the peer as ready would stop polling before it has
/// sent the peer its row.
#[test]
fn peer_is_ready_only_after_receiving_row() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let mut second = Resident::new(&place.root(), 2, 200);
    let memory = first.open(1, &[1, 2]).expect("it opens");
    let filler = UnixDatagram::unbound().expect("a socket");
    filler.set_nonblocking(true).expect("a socket");
    let queue = place.root().path().join(GROUP).join("memory-1");
    while filler.send_to(b"nothing", &queue).is_ok() {}
    let theirs = second.open(1, &[1, 2]).expect("it opens");
    store(&memory, 8, 5);
    assert_eq!(see(&theirs, 0, 8), 5, "the first member's row has arrived");
    assert!(!second.fabric.ready(ViewId(1), Rank(0)), "the first member lacks the other's row");

    first.fabric.check_peers();
    second.await_ready(1, 0);
    first.await_ready(1, 1);
}

/// A reader in another thread never faults, and never reads an earlier value than before, even
/// while a row is being mapped there.
#[test]
fn row_can_be_mapped_while_being_read() {
    let place = SharedFolder::new();
    for round in 0..50 {
        let mut first = Resident::new(&place.root(), 1, round);
        let memory = first.open(1, &[1, 2]).expect("it opens");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = 0;
                while !over.load(Ordering::Acquire) {
                    let value = see(&memory, 1, 512);
                    assert!(value >= seen, "{value} after {seen}");
                    seen = value;
                }
                see(&memory, 1, 512)
            });
            let mut second = Resident::new(&place.root(), 2, round);
            let theirs = second.open(1, &[1, 2]).expect("it opens");
            store(&theirs, 512, 1);
            first.await_ready(1, 1);
            store(&theirs, 512, 2);
            over.store(true, Ordering::Release);
            assert_eq!(reader.join().expect("no fault"), 2);
        });
    }
}

#[test]
fn two_open_views_never_share_writes() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let mut second = Resident::new(&place.root(), 2, 200);
    let (old, old_theirs) =
        (first.open(1, &[1, 2]).expect("opens"), second.open(1, &[1, 2]).expect("opens"));
    // In the next view, the ranks are different.
    let (new, new_theirs) =
        (first.open(2, &[2, 1]).expect("opens"), second.open(2, &[2, 1]).expect("opens"));
    for (resident, peer_old, peer_new) in [(&mut first, 1, 0), (&mut second, 0, 1)] {
        resident.await_ready(1, peer_old);
        resident.await_ready(2, peer_new);
    }
    store(&old, 8, 1);
    store(&new, 8, 2);
    assert_eq!((see(&old_theirs, 0, 8), see(&new_theirs, 1, 8)), (1, 2));
    assert_eq!((see(&old_theirs, 1, 8), see(&new_theirs, 0, 8)), (0, 0));
    assert!(first.fabric.retire(ViewId(1)) && first.fabric.retire(ViewId(1)));
    assert_eq!(first.fabric.post(ViewId(1), Rank(1), &WRITE, None), Err(ErrorKind::Other));
    assert_eq!(first.fabric.post(ViewId(2), Rank(0), &WRITE, None), Ok(()));
    assert_eq!(see(&old_theirs, 0, 8), 1, "who is behind reads on");
    first.open(3, &[1, 2]).expect("there is room for more");
    assert_eq!(second.open(2, &[1, 2]).err(), Some(ErrorKind::Other), "it is open");
    drop((old, new, old_theirs, new_theirs, first, second));
    place.assert_empty();
}

#[test]
fn opening_a_view_wakes_waiting_member() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let mut second = Resident::new(&place.root(), 2, 200);
    let _memory = first.open(1, &[1, 2]).expect("it opens");
    assert_eq!(first.events(), []);
    assert!(first.fabric.arm());
    std::thread::scope(|scope| {
        scope.spawn(|| second.open(1, &[1, 2]).expect("it opens"));
        assert!(first.fabric.sleep(LONG));
    });
    first.fabric.disarm();
    assert_eq!(first.fabric.poll(), Some(Event::Woken));
    assert_eq!(first.fabric.poll(), Some(ready(1, 1)));
}

/// When another member takes over the view change, it may change the next view's list before it is
/// decided, and change it back.
#[test]
fn view_can_be_prepared_with_changed_members() {
    let place = SharedFolder::new();
    let mut members: Vec<Resident> =
        (1..=3).map(|node| Resident::new(&place.root(), node, u64::from(node))).collect();
    let old: Vec<_> =
        members.iter_mut().map(|member| member.open(1, &[1, 2, 3]).expect("opens")).collect();
    let (one, two) = members.split_at_mut(1);
    let (one, two) = (&mut one[0], &mut two[0]);
    let theirs = two.open(2, &[1, 2]).expect("it opens");
    let given_up = one.open(2, &[1, 2]).expect("it opens");
    one.await_ready(2, 1);
    two.await_ready(2, 0);
    store(&given_up, 8, 1);
    // The new view has a different list of members, for which the peer is not ready.
    assert!(one.fabric.retire(ViewId(2)));
    let other = one.open(2, &[1, 2, 3]).expect("it was never installed");
    assert!(!one.fabric.ready(ViewId(2), Rank(1)));
    // The first list returns, in new memory.
    assert!(one.fabric.retire(ViewId(2)));
    let again = one.open(2, &[1, 2]).expect("it was never installed");
    one.await_ready(2, 1);
    two.fabric.check_peers();
    store(&again, 16, 3);
    assert_eq!(
        (see(&theirs, 0, 8), see(&theirs, 0, 16)),
        (0, 3),
        "the memory of now, not that of before"
    );
    assert!(one.fabric.ready(ViewId(1), Rank(1)), "the old view is not concerned");
    drop((given_up, other));
    drop((old, theirs, again, members));
    place.assert_empty();
}

#[test]
fn row_memory_serves_only_one_view() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let layout = layout_of(&[1, 2]);
    let memory = first.make(1, &layout, Rank(0)).expect("memory");
    let twice = first.make(1, &layout, Rank(0)).expect_err("it is there");
    assert!(matches!(twice, Error::ViewIsThere { view: ViewId(1) }), "{twice}");
    let outside = first.make(1, &layout, Rank(2)).expect_err("no such rank");
    assert!(matches!(outside, Error::NotAMember { .. }), "{outside}");
    let other = first.make(1, &layout, Rank(1)).expect_err("that is node 2");
    assert!(matches!(other, Error::OtherMember { .. }), "{other}");
    assert_eq!(first.open_on(2, &memory), Err(ErrorKind::WrongMemory), "another view's");
    first.open_on(1, &memory).expect("its view");
    assert!(first.fabric.retire(ViewId(1)));
    assert_eq!(first.open_on(1, &memory), Err(ErrorKind::WrongMemory), "it was used");
    first.residence.leave();
    let left = first.make(2, &layout, Rank(0)).expect_err("it left");
    assert!(matches!(left, Error::HasLeft { .. }), "{left}");
    place.assert_empty();
}

#[test]
fn duplicate_id_and_mismatched_description_are_refused() {
    let place = SharedFolder::new();
    let root = place.root();
    let mut first = Resident::new(&root, 1, 100);
    let error = claim(&root, 1, 101).expect_err("it lives");
    assert!(matches!(error, Error::DuplicateId { id: NodeId(1), .. }), "{error}");
    let stranger =
        Residence::claim(&root, &name(GROUP), NodeId(2), DESCRIPTION + 1, 1, LONG, &NEVER)
            .expect("a place");
    let stranger = Arc::new(stranger);
    let _theirs = stranger
        .rows(&ViewPlan::of_layout(ViewId(1), Rank(1), &layout_of(&[1, 2])))
        .expect("memory");
    let _memory = first.open(1, &[1, 2]).expect("it opens");
    first.fabric.check_peers();
    assert!(!first.fabric.ready(ViewId(1), Rank(1)));
    let error = first.residence.is_live(NodeId(2)).expect_err("it goes by another description");
    assert!(matches!(error, Error::WrongDigest { peer: NodeId(2) }), "{error}");
    assert!(first.residence.is_live(NodeId(1)).expect("it does"));
    assert!(!first.residence.is_live(NodeId(3)).expect("nobody"));
}

#[test]
fn control_socket_is_removed_with_its_owner() {
    let place = SharedFolder::new();
    let first = Resident::new(&place.root(), 1, 100);
    let path = first.residence.socket_path(NodeId(1));
    assert!(path.starts_with(place.path()) && path.ends_with("views/door-1"), "{}", path.display());
    let _socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    drop(first);
    place.assert_empty();
}

#[test]
fn loss_is_reported_once_per_open_view() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let mut leaver = Resident::new(&place.root(), 2, 200);
    let mut failing = Resident::new(&place.root(), 3, 300);
    let old = first.open(1, &[1, 2, 3]).expect("it opens");
    let new = first.open(2, &[3, 1, 2]).expect("it opens");
    let kept = [&mut leaver, &mut failing].map(|peer| {
        (peer.open(1, &[1, 2, 3]).expect("opens"), peer.open(2, &[3, 1, 2]).expect("opens"))
    });
    first.fabric.check_peers();
    assert_eq!(first.events(), [ready(1, 1), ready(1, 2), ready(2, 0), ready(2, 2)]);
    leaver.fabric.leave();
    assert!(first.fabric.check_peers() && !first.fabric.check_peers());
    assert_eq!(first.events(), [lost(1, 1, LossCause::Left), lost(2, 2, LossCause::Left)]);
    for (view, peer) in [(1, 1), (2, 2)] {
        let post = first.fabric.post(ViewId(view), Rank(peer), &WRITE, None);
        assert_eq!(post, Err(ErrorKind::PeerLost));
    }
    assert!(first.fabric.retire(ViewId(1)));
    drop((kept, failing));
    assert!(first.fabric.check_peers());
    assert_eq!(first.events(), [lost(2, 0, LossCause::Exited)]);
    drop((old, new, first, leaver));
    place.assert_empty();
}

#[test]
fn lost_node_returns_only_in_later_views() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let mut second = Resident::new(&place.root(), 2, 200);
    let old = first.open(1, &[1, 2]).expect("it opens");
    drop(second.open(1, &[1, 2]).expect("it opens"));
    first.await_ready(1, 1);
    drop(second);
    assert!(first.fabric.check_peers());
    assert_eq!(first.events(), [ready(1, 1), lost(1, 1, LossCause::Exited)]);
    let mut again = Resident::new(&place.root(), 2, 201);
    // The node may not know that it is no longer a member of the old view.
    let theirs = again.open(1, &[1, 2]).expect("it opens");
    store(&theirs, 8, 99);
    let new = first.open(2, &[1, 2]).expect("it opens");
    let theirs_new = again.open(2, &[1, 2]).expect("it opens");
    first.await_ready(2, 1);
    store(&theirs_new, 8, 5);
    assert_eq!(see(&new, 1, 8), 5);
    assert_eq!(see(&old, 1, 8), 0, "another process's row, in the old view");
    assert!(!first.fabric.ready(ViewId(1), Rank(1)));
    assert_eq!(first.events(), [ready(2, 1)]);
}

#[test]
fn disconnecting_a_process_affects_all_its_views() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let mut second = Resident::new(&place.root(), 2, 200);
    let mut memories = Vec::new();
    for view in 1..=2 {
        memories.push(first.open(view, &[1, 2]).expect("it opens"));
        memories.push(second.open(view, &[1, 2]).expect("it opens"));
        first.await_ready(view, 1);
    }
    first.fabric.cut(ViewId(2), Rank(1));
    first.fabric.cut(ViewId(2), Rank(1));
    for view in 1..=2 {
        let post = first.fabric.post(ViewId(view), Rank(1), &WRITE, None);
        assert_eq!(post, Err(ErrorKind::PeerLost), "view {view}");
    }
    assert!(first.fabric.retire(ViewId(1)) && second.fabric.retire(ViewId(1)));
    memories.push(first.open(3, &[1, 2]).expect("it opens"));
    memories.push(second.open(3, &[1, 2]).expect("it opens"));
    first.fabric.check_peers();
    assert_eq!(first.fabric.post(ViewId(3), Rank(1), &WRITE, None), Err(ErrorKind::PeerLost));

    first.fabric.meet(NodeId(2));
    memories.push(first.open(4, &[1, 2]).expect("it opens"));
    memories.push(second.open(4, &[1, 2]).expect("it opens"));
    first.await_ready(4, 1);
    assert_eq!(first.fabric.post(ViewId(4), Rank(1), &WRITE, None), Ok(()));
    for view in 2..=3 {
        let post = first.fabric.post(ViewId(view), Rank(1), &WRITE, None);
        assert_eq!(post, Err(ErrorKind::PeerLost), "view {view} was open before they met again");
    }
}

/// Arguments: the folder. Runs three members through 200 views.
#[test]
fn role_views() {
    let Some(arguments) = role() else { return };
    let at = std::path::PathBuf::from(&arguments[0]);
    let root = Root::under(&at);
    let mut members: Vec<Resident> =
        (1..=3).map(|node| Resident::new(&root, node, u64::from(node))).collect();
    let mut held = Vec::new();
    let mut counts = Vec::new();
    for view in 1..=200 {
        let fresh: Vec<_> = members
            .iter_mut()
            .map(|member| member.open(view, &[1, 2, 3]).expect("opens"))
            .collect();
        for (own, member) in members.iter_mut().enumerate() {
            for peer in (0..3_u16).filter(|peer| usize::from(*peer) != own) {
                member.await_ready(view, peer);
            }
            if view > 1 {
                assert!(member.fabric.retire(ViewId(view - 1)));
            }
            member.events();
        }
        held = fresh;
        let files = std::fs::read_dir(root.path().join(GROUP)).expect("a folder").count();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let maps = maps.lines().filter(|line| line.contains("/memfd:tramontane")).count();
        let descriptors = std::fs::read_dir("/proc/self/fd").expect("a folder").flatten();
        let is_memory = |entry: &std::fs::DirEntry| {
            std::fs::read_link(entry.path())
                .is_ok_and(|path| path.to_string_lossy().starts_with("/memfd:tramontane"))
        };
        counts.push((files, maps, descriptors.filter(is_memory).count()));
    }
    assert!(counts[1].1 >= 15 && counts[1].2 >= 12, "memory is told by its name: {:?}", counts[1]);
    say(&format!("COUNTS {:?} {:?}", counts[1], counts[199]));
    drop((held, members));
}

/// Runs in a separate process, because unnamed memory cannot be told apart from that of other
/// tests.
#[test]
fn two_hundred_views_leak_no_resources() {
    let place = SharedFolder::new();
    let mut role =
        RoleProcess::start(module_path!(), "role_views", &place.path().display().to_string());
    let counts = role.expect("COUNTS");
    let (early, late) = counts.split_once(") (").expect("two of them");
    assert_eq!(
        early.trim_start_matches('('),
        late.trim_end_matches(')'),
        "(files, mappings, descriptors) in view 2 and in view 200"
    );
    assert!(role.wait().success());
    place.assert_empty();
}

#[test]
fn refused_oversized_view_leaves_no_memory() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let before = place.contents();
    let layout = layout_with(&[1, 2, 3], 1 << 20, 1 << 28);
    let error = first.make(1, &layout, Rank(0)).expect_err("petabytes");
    assert!(matches!(error, Error::NoMemory { .. }), "{error}");
    assert_eq!(place.contents(), before);
    first.make(1, &layout_of(&[1, 2]), Rank(0)).expect("a small one fits");
    assert_eq!(place.contents(), before, "memory that nobody opened");
}
