//! Tests that need real processes: crashes, kills, faults, and wakeups across address spaces.
//!
//! A "role" is a test that does nothing unless the program was started again to play it.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{
    LONG, MappedMember, RoleProcess, SharedFolder, VIEW, join, meet, role, say, small,
    wait_for_release,
};
use tramontane_core::fabric::{
    Event, Fabric as _, HostFabric as _, Kind, LossCause, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_shared_memory::{Error, Root};

/// Arguments: the folder, the group, members, rank. Joins, reports that, and stays until it is
/// released.
#[test]
fn role_stay() {
    let Some(arguments) = role() else { return };
    let [folder, group, members, rank] = arguments.as_slice() else { panic!("four arguments") };
    let layout = small(members.parse().expect("a number"));
    let root = Root::under(Path::new(folder));
    match join(&root, group, &layout, rank.parse().expect("a rank")) {
        Ok(member) => {
            let member = member.await_peers();
            say("JOINED");
            wait_for_release();
            member.leave();
        }
        Err(error) => say(&format!("REFUSED {error}")),
    }
}

fn stay(place: &SharedFolder, group: &str, members: u16, rank: u16) -> RoleProcess {
    RoleProcess::start(
        module_path!(),
        "role_stay",
        &format!("{} {group} {members} {rank}", place.path().display()),
    )
}

#[test]
fn successor_removes_files_of_killed_member() {
    let place = SharedFolder::new();
    let mut first = stay(&place, "killed", 1, 0);
    first.expect("JOINED");
    let before = place.contents();
    assert_eq!(before.len(), 4, "root, group, file and socket: {before:?}");
    first.kill();
    assert_eq!(place.contents(), before, "a killed process leaves its files");
    let next = meet(&place.root(), "killed", &small(1), 0);
    assert_eq!(next.rows()[0].cell(0).expect("a cell").load(), 0);
    drop(next);
    place.assert_empty();
}

#[test]
fn sweep_removes_only_files_of_dead_groups() {
    let place = SharedFolder::new();
    let mut dead = stay(&place, "dead", 1, 0);
    let mut live = stay(&place, "live", 1, 0);
    dead.expect("JOINED");
    live.expect("JOINED");
    dead.kill();
    assert_eq!(place.root().sweep().expect("swept"), ["dead"]);
    assert_eq!(place.contents().len(), 4);
    assert!(live.wait().success());
    place.assert_empty();
}

#[test]
fn stopped_member_counts_as_alive() {
    let place = SharedFolder::new();
    let mut member = stay(&place, "stopped", 1, 0);
    member.expect("JOINED");
    member.signal("STOP");
    assert_eq!(place.root().sweep().expect("swept"), Vec::<String>::new());
    let error = join(&place.root(), "stopped", &small(1), 0).err().expect("it lives");
    assert!(matches!(error, Error::DuplicateId { id: NodeId(10), .. }), "{error}");
    member.signal("CONT");
    assert!(member.wait().success());
    place.assert_empty();
}

#[test]
fn killed_peer_is_reported_and_its_files_removed() {
    let place = SharedFolder::new();
    let mut peer = stay(&place, "loss", 2, 1);
    let mut member = meet(&place.root(), "loss", &small(2), 0);
    peer.expect("JOINED");
    member.poll_away();
    let fabric = &mut member.fabric;
    assert!(!fabric.check_peers());
    peer.kill();
    assert!(fabric.check_peers());
    assert_eq!(
        fabric.poll(),
        Some(Event::PeerLost { view: VIEW, peer: Rank(1), cause: LossCause::Exited })
    );
    member.leave();
    place.assert_empty();
}

/// Arguments: the folder. Joins as member 1 of 2, and writes into member 0's row.
#[test]
fn role_trespass() {
    let Some(arguments) = role() else { return };
    let member = meet(&Root::under(Path::new(&arguments[0])), "mmu", &small(2), 1);
    let base = member.rows()[0].base();
    say("JOINED");
    // If this process were killed before the other had joined too, it would count as never having
    // joined.
    wait_for_release();
    // SAFETY: none. The memory management unit exists to stop this write.
    unsafe { base.as_ptr().write_volatile(1) };
    say("WRITTEN");
}

#[test]
fn writing_to_a_peers_row_faults() {
    const SIGSEGV: i32 = 11;
    let place = SharedFolder::new();
    let mut trespasser =
        RoleProcess::start(module_path!(), "role_trespass", &place.path().display().to_string());
    let member = meet(&place.root(), "mmu", &small(2), 0);
    trespasser.expect("JOINED");
    assert_eq!(trespasser.wait().signal(), Some(SIGSEGV));
    assert_eq!(member.rows()[0].cell(0).expect("a cell").load(), 0);
    drop(member);
    place.assert_empty();
}

/// The number of turns of the ping-pong game. Each has two sleeps and two wakeups.
const TURNS: u64 = 100_000;

/// Arguments: the folder. Plays the other side of the ping-pong game.
#[test]
fn role_pong() {
    let Some(arguments) = role() else { return };
    ping_pong(&Root::under(Path::new(&arguments[0])), 1);
}

/// Both sides sleep whenever it is not their turn. A lost wakeup shows up as a sleep of [`LONG`].
fn ping_pong(root: &Root, own: u16) -> (Duration, u64) {
    let MappedMember { mappings, mut fabric } = meet(root, "ping-pong", &small(2), own);
    let peer = Rank(1 - own);
    let theirs = mappings.rows()[peer.index()].cell(0).expect("a cell");
    let ours = mappings.row().cell(0).expect("a cell");
    let write = [Write::of_row(0, 8, Kind::Guard)];
    let (started, mut sleeps, mut early) = (Instant::now(), 0, 0);
    for turn in 1..=TURNS {
        let awaited = if own == 0 { turn - 1 } else { turn };
        while theirs.load() < awaited {
            if fabric.arm() && theirs.load() < awaited {
                let asleep = Instant::now();
                early += u64::from(!fabric.sleep(LONG));
                assert!(asleep.elapsed() < LONG, "a lost wake-up in turn {turn}");
                sleeps += 1;
            }
            fabric.disarm();
            while fabric.poll().is_some() {}
        }
        ours.publish(turn);
        fabric.post(VIEW, peer, &write, None).expect("posted");
    }
    while own == 0 && theirs.load() < TURNS {
        std::thread::yield_now();
    }
    println!("{sleeps} sleeps on this side, {early} of them ended for no reason");
    (started.elapsed(), sleeps)
}

#[test]
fn no_wakeup_is_lost_between_processes() {
    let place = SharedFolder::new();
    let mut pong =
        RoleProcess::start(module_path!(), "role_pong", &place.path().display().to_string());
    let (took, sleeps) = ping_pong(&place.root(), 0);
    println!(
        "{TURNS} turns, {sleeps} sleeps on this side, {:?} a turn",
        took / u32::try_from(TURNS).unwrap_or(1)
    );
    assert!(sleeps > TURNS / 10, "it hardly slept: inconclusive");
    assert!(pong.wait().success());
    place.assert_empty();
}

#[test]
fn post_wakes_sleeping_process() {
    let place = SharedFolder::new();
    let mut sleeper =
        RoleProcess::start(module_path!(), "role_sleep", &place.path().display().to_string());
    let MappedMember { mappings: member, mut fabric } =
        meet(&place.root(), "sleeper", &small(2), 0);
    // Released only now, because a member that had received its row earlier would ring it.
    sleeper.release();
    sleeper.expect("SLEEPS");
    std::thread::sleep(Duration::from_millis(30));
    let started = Instant::now();
    member.row().cell(0).expect("a cell").publish(1);
    fabric.post(VIEW, Rank(1), &[Write::of_row(0, 8, Kind::Guard)], None).expect("posted");
    sleeper.expect("WOKEN");
    assert!(started.elapsed() < LONG / 2, "by the post, not by the timeout");
    assert!(sleeper.wait().success());
}

/// Arguments: the folder. Sleeps until it is rung.
#[test]
fn role_sleep() {
    let Some(arguments) = role() else { return };
    let root = Root::under(Path::new(&arguments[0]));
    let MappedMember { mappings: member, mut fabric } = meet(&root, "sleeper", &small(2), 1);
    wait_for_release();
    while fabric.poll().is_some() {}
    assert!(fabric.arm());
    say("SLEEPS");
    assert!(fabric.sleep(LONG));
    assert_eq!(member.rows()[0].cell(0).expect("a cell").load(), 1);
    say("WOKEN");
}

#[test]
fn oversized_group_is_refused_before_allocation() {
    let place = SharedFolder::new();
    let layout = crate::support::layout(16, 1 << 20, 1 << 28);
    let started = Instant::now();
    let error = join(&place.root(), "huge", &layout, 0).err().expect("petabytes");
    assert!(matches!(error, Error::NoMemory { .. }), "{error}");
    assert!(started.elapsed() < LONG / 2);
    place.assert_empty();
}

#[test]
fn root_accessible_to_others_or_linked_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = SharedFolder::new();
    let root = place.root();
    std::fs::create_dir(root.path()).expect("a folder");
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755))
        .expect("its mode");
    let refused = |root: &Root| {
        let error = join(root, "root", &small(1), 0).err().expect("not ours alone");
        assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
        assert!(matches!(root.sweep(), Err(Error::NotPermitted { .. })));
    };
    refused(&root);
    std::fs::remove_dir(root.path()).expect("removed");
    std::fs::create_dir(place.path().join("elsewhere")).expect("a folder");
    symlink(place.path().join("elsewhere"), root.path()).expect("a link");
    refused(&root);
}

/// Any user can create a folder with this user's name in a shared parent. The error then says what
/// to do.
#[test]
fn root_of_another_user_is_refused_with_remedy() {
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    const NOBODY: u32 = 65_534;
    let place = SharedFolder::new();
    let root = place.root();
    std::fs::create_dir(root.path()).expect("a folder");
    if let Err(error) = std::os::unix::fs::chown(root.path(), Some(NOBODY), Some(NOBODY)) {
        println!("not tested: only root can give a folder away: {error}");
        return;
    }
    let assert_refused = || {
        let error = join(&root, "root", &small(1), 0).err().expect("not ours").to_string();
        assert!(
            error.contains("another user; set TRAMONTANE_SHM_DIR to a folder of your own"),
            "{error}"
        );
    };
    for mode in [0o755, 0o700] {
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(mode))
            .expect("its mode");
        assert_refused();
    }
    // A user to whom permissions apply cannot even open the folder.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sets = capabilities(None).expect("a thread has some, or none");
            sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
            set_capabilities(None, sets).expect("one may have fewer");
            assert_refused();
        });
    });
}
