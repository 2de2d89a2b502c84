//! Successive views in shared memory, with real processes that are stopped, killed, and restarted.
//!
//! A "role" is a test that does nothing unless the program was started again to play it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::support::descriptors::{self, BELL_SEALS, SEALS, Said, row_file_bytes, signed};
use crate::support::views::{GROUP, Resident, bytes, claim, layout_of, see, store};
use crate::support::{LONG, RoleProcess, SharedFolder, role, say, wait_for_release};
use tramontane_core::fabric::{Event, Fabric as _, HostFabric as _, LossCause, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{Error, Mappings, Root};

/// Arguments: the folder, the node, its incarnation. Joins view 1 of nodes 1, 2 and 3, and view 2
/// of nodes 1 and 2, and then overwrites both of its rows repeatedly until it is released. Each
/// byte is 1 at first, and 255 at the end.
#[test]
fn role_write() {
    let Some(arguments) = role() else { return };
    let [folder, node, incarnation] = arguments.as_slice() else { panic!("three arguments") };
    let (node, incarnation) =
        (node.parse().expect("a number"), incarnation.parse().expect("a number"));
    let mut writer = Resident::new(&Root::under(Path::new(folder)), node, incarnation);
    // When this is done, the nodes that are present have the writer's rows.
    let old = writer.open(1, &[1, 2, 3]).expect("it opens");
    let mut memories = vec![old];
    if node == 2 {
        memories.push(writer.open(2, &[1, 2]).expect("it opens"));
    }
    std::thread::scope(|scope| {
        let released = scope.spawn(wait_for_release);
        say("WRITES");
        let mut byte = 1;
        while !released.is_finished() {
            memories.iter().for_each(|memory| fill(memory, byte));
            byte = byte % 200 + 1;
        }
        memories.iter().for_each(|memory| fill(memory, 255));
        say("HAS WRITTEN");
    });
}

/// Overwrites the whole local row.
fn fill(memory: &Mappings, byte: u8) {
    let row = memory.row();
    row.apply(0, &vec![byte; row.bytes()]).expect("the whole row");
}

fn write(place: &SharedFolder, node: u32, incarnation: u64) -> RoleProcess {
    let mut role = RoleProcess::start(
        module_path!(),
        "role_write",
        &format!("{} {node} {incarnation}", place.path().display()),
    );
    role.expect("WRITES");
    role
}

/// Returns all bytes of all rows of a view, as two members have them.
fn everything(memories: [&Mappings; 2]) -> Vec<Vec<u8>> {
    let of_one = |memory: &Mappings| {
        (0..memory.members().len()).map(|rank| bytes(memory, rank)).collect::<Vec<_>>()
    };
    memories.into_iter().flat_map(of_one).collect()
}

/// The intent of VIE-11: a process that was stopped cannot change the others' memory, whatever it
/// does to its own after its view has ended for them.
#[test]
fn stopped_process_cannot_change_next_view() {
    let place = SharedFolder::new();
    let root = place.root();
    let mut first = Resident::new(&root, 1, 100);
    let mut third = Resident::new(&root, 3, 300);
    let old = first.open(1, &[1, 2, 3]).expect("it opens");
    let old_third = third.open(1, &[1, 2, 3]).expect("it opens");
    let mut stopped = write(&place, 2, 200);
    first.await_ready(1, 1);
    third.await_ready(1, 1);
    let started = Instant::now();
    while see(&old, 1, 0) == 0 {
        assert!(started.elapsed() < LONG, "it never writes: inconclusive");
    }
    stopped.signal("STOP");
    // The others continue without it: it is cut off, and the next view has a list that it does not
    // know. That view's number, 2, is also the number under which the stopped process has memory,
    // for another list.
    for (resident, rank) in [(&mut first, 1), (&mut third, 1)] {
        resident.fabric.cut(ViewId(1), Rank(rank));
    }
    let new = first.open(2, &[1, 3]).expect("it opens");
    let new_third = third.open(2, &[1, 3]).expect("it opens");
    first.await_ready(2, 1);
    third.await_ready(2, 0);
    for (value, memory) in [(0x0101, &new), (0x0303, &new_third)] {
        let row = memory.row();
        for offset in (0..row.bytes()).step_by(8) {
            row.cell(offset).expect("a cell").publish(value + offset as u64);
        }
    }
    assert!(first.fabric.retire(ViewId(1)) && third.fabric.retire(ViewId(1)));
    assert_eq!((see(&new, 1, 512), see(&new_third, 0, 512)), (0x0303 + 512, 0x0101 + 512));
    let before = everything([&new, &new_third]);
    let old_row = bytes(&old, 1);
    stopped.signal("CONT");
    stopped.release();
    stopped.expect("HAS WRITTEN");
    assert_ne!(bytes(&old, 1), old_row, "it wrote into its old row: otherwise nothing is shown");
    assert!(bytes(&old, 1).iter().all(|byte| *byte == 255));
    assert!(before == everything([&new, &new_third]), "a byte of the next view changed");
    assert!(stopped.wait().success());
    drop((old, old_third, new, new_third, first, third));
    place.assert_empty();
}

/// An earlier incarnation of a node sent memory for the same view number and the same list. This
/// memory is not accepted, neither before the node has returned nor after.
#[test]
fn memory_of_earlier_incarnation_is_never_read() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let _old = first.open(1, &[1, 2, 3]).expect("it opens");
    // The process is also in view 2, and has sent its row for that.
    let mut killed = write(&place, 2, 200);
    killed.kill();
    let memory = first.open(2, &[1, 2]).expect("it opens");
    let layout = layout_of(&[1, 2]);
    let number = layout.digest();
    let left = signed(2, 200, number, row_file_bytes(&layout, 1));
    let left = descriptors::memory(&left, SEALS);
    let bell = descriptors::memory(&[0; 4096], BELL_SEALS);
    let send_again = |incarnation| {
        let said = Said { node: 2, incarnation, kind: 1, view: 2, number };
        descriptors::send(&place.root().path().join(GROUP), 1, said, &[&left, &bell]);
    };
    let assert_untouched = |first: &mut Resident| {
        first.fabric.check_peers();
        assert!(!first.fabric.ready(ViewId(2), Rank(1)));
        assert!(bytes(&memory, 1).iter().all(|byte| *byte == 0));
    };
    assert_untouched(&mut first);
    send_again(200);
    assert_untouched(&mut first);
    // Even if the message were sent in the name of the sender's successor, no process would accept
    // it.
    let mut second = Resident::new(&place.root(), 2, 201);
    for incarnation in [200, 201] {
        send_again(incarnation);
        assert_untouched(&mut first);
    }
    let theirs = second.open(2, &[1, 2]).expect("it opens");
    first.await_ready(2, 1);
    assert!(bytes(&memory, 1).iter().all(|byte| *byte == 0), "fresh");
    store(&theirs, 8, 5);
    assert_eq!(see(&memory, 1, 8), 5);
}

#[test]
fn restarted_process_replaces_its_old_files() {
    let place = SharedFolder::new();
    let mut first = Resident::new(&place.root(), 1, 100);
    let old = first.open(1, &[1, 2, 3]).expect("it opens");
    let mut second = write(&place, 2, 200);
    first.await_ready(1, 1);
    let living = claim(&place.root(), 2, 201).expect_err("it lives");
    assert!(matches!(
        living,
        Error::DuplicateId { id: NodeId(2), pid, .. } if pid != u64::from(std::process::id())
    ));
    let _next = first.open(2, &[1, 2]).expect("it opens");
    first.await_ready(2, 1);
    first.events();
    second.kill();
    assert!(first.fabric.check_peers() && !first.fabric.check_peers());
    let lost =
        |view| Event::PeerLost { view: ViewId(view), peer: Rank(1), cause: LossCause::Exited };
    assert_eq!(first.events(), [lost(1), lost(2)], "once in each view");
    let of_second = |place: &SharedFolder| {
        let is_of = |path: &&PathBuf| path.to_string_lossy().ends_with("-2");
        place.contents().iter().filter(|path| is_of(path)).count()
    };
    let door = first.residence.socket_path(NodeId(2));
    drop(std::os::unix::net::UnixListener::bind(&door).expect("a socket"));
    let stale = of_second(&place);
    assert_eq!(stale, 3, "file, socket and door");
    let mut again = Resident::new(&place.root(), 2, 201);
    let is_named = |ending: &str| place.contents().iter().any(|path| path.ends_with(ending));
    assert!(is_named("member-2") && is_named("memory-2") && !door.exists());
    assert_eq!(stale - of_second(&place), 1, "its door is gone");
    assert!(first.fabric.retire(ViewId(1)) && first.fabric.retire(ViewId(2)));
    let memory = first.open(3, &[1, 2]).expect("it opens");
    let theirs = again.open(3, &[1, 2]).expect("it opens");
    first.await_ready(3, 1);
    store(&theirs, 8, 7);
    assert_eq!(see(&memory, 1, 8), 7);
    assert_eq!(first.events(), [Event::Ready { view: ViewId(3), peer: Rank(1) }]);
    drop(old);
}
