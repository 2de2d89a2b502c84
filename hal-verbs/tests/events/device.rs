//! Device events: the resulting losses, and the connection of the next view.

use std::time::{Duration, Instant};

use super::members::{DeviceMembers, LONG_NS, LOSS_TIME, MILLISECOND_NS};
use tramontane_core::fabric::{
    BlockEvent, BlockStore as _, BlockUse, Blocks as _, Channel, ErrorKind, Fabric as _,
    HostBlocks as _, HostFabric as _, LossCause, Token, ViewRows as _, Way,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_verbs::Figures;
use tramontane_verbs::devices::{GidChoice, GidKind, LinkLayer, Wanted};
use tramontane_verbs::fake::{Fault, GidEntry, Link, PortProfile, Profile};

const FIRST: ViewId = ViewId(1);
const SECOND: ViewId = ViewId(2);
const NEXT: ViewId = ViewId(3);
const A: Rank = Rank(0);
const B: Rank = Rank(1);
const UNREACHABLE: LossCause = LossCause::Unreachable;

/// Returns members of one view that is up.
fn members_with(profile: &Profile, count: usize) -> DeviceMembers {
    up(DeviceMembers::new(profile, count))
}

fn members(count: usize) -> DeviceMembers {
    members_with(&Profile::strict(), count)
}

fn up(mut members: DeviceMembers) -> DeviceMembers {
    let all: Vec<usize> = (0..members.members.len()).collect();
    members.open(FIRST, &all);
    assert!(members.is_ready(FIRST) && members.carries(FIRST, 1, MILLISECOND_NS));
    assert_eq!(members.losses(), []);
    members
}

fn gid(address: &str) -> GidEntry {
    let address = address.parse().expect("an address");
    GidEntry { address, kind: GidKind::RoceV2, is_routed: true }
}

/// The entry of the address table that is in use at first.
const IN_USE: u8 = 1;

#[test]
fn failed_device_loses_peers_of_all_views() {
    let mut members = members(3);
    members.open(SECOND, &[0, 1, 2]);
    // A request in the old view remains unanswered, so the view is still being retired.
    members.network.inject(Fault::PortDown(members.devices[0].clone(), 1));
    members.post(FIRST, 0, 5);
    assert!(!members.member(0).fabric.retire(FIRST));
    members.losses();
    // The failure is only reported. Nothing else indicates it.
    members.network.announce_failure(&members.devices[0]);
    members.pass(MILLISECOND_NS);
    let lost = members.losses();
    let by_first = lost.iter().filter(|(process, ..)| *process == 0);
    let by_first: Vec<_> = by_first.map(|(_, view, peer, cause)| (*view, *peer, *cause)).collect();
    assert_eq!(by_first, [(SECOND, B, UNREACHABLE), (SECOND, Rank(2), UNREACHABLE)]);
    assert!(members.member(0).fabric.retire(FIRST), "nothing of it is under way any more");
}

#[test]
fn returned_device_is_reopened_for_next_view() {
    let mut members = members(2);
    let device = members.devices[0].clone();
    members.network.inject(Fault::DeviceFatal(device.clone()));
    members.pass(MILLISECOND_NS);
    let lost = members.losses();
    assert!(lost.contains(&(0, FIRST, B, UNREACHABLE)), "{lost:?}");
    let gone = members.try_open(SECOND, &[0, 1], 0).expect_err("it is not back");
    let text = gone.to_string();
    assert!(text.contains(device.as_str()) && text.contains("dmesg"), "{text}");
    members.network.bring_back(&device);
    members.pass(LONG_NS);
    members.assert_next_view(NEXT);
    assert!(members.member(0).fabric.retire(FIRST));
    members.pass(MILLISECOND_NS);
    assert!(members.carries(NEXT, 7, MILLISECOND_NS), "the old view ended, and the new one not");
}

/// The memory was allocated before the failure, and its owner keeps it.
#[test]
fn block_memory_survives_device_failure() {
    let mut members = members(2);
    let store =
        |members: &mut DeviceMembers, process: usize| members.member(process).fabric.block_store();
    let mut from = store(&mut members, 0).memory(100, BlockUse::Both).expect("memory");
    let into = store(&mut members, 1).memory(100, BlockUse::Both).expect("memory");
    let dropped = store(&mut members, 0).memory(100, BlockUse::Both).expect("memory");
    for process in [0, 1] {
        members.network.inject(Fault::DeviceFatal(members.devices[process].clone()));
        members.network.bring_back(&members.devices[process]);
    }
    // The device has not been checked when the next view is requested.
    members.assert_next_view(NEXT);
    from.write(0, &[3; 100]).expect("in it");
    let way = |peer| Way { view: NEXT, channel: Channel(0), peer };
    let receiver = &mut members.member(1).fabric;
    receiver.post_receive(way(A), into.area(0), 100, Token(1)).expect("room");
    let sender = &mut members.member(0).fabric;
    sender.send(way(B), from.area(0), 100, 9, Token(2)).expect("room");
    members.pass(MILLISECOND_NS);
    let came = members.member(1).fabric.poll_block();
    assert!(
        matches!(came, Some(BlockEvent::Received { immediate: 9, length: 100, .. })),
        "{came:?}"
    );
    let mut bytes = [0; 100];
    into.read(0, &mut bytes).expect("in it");
    assert_eq!(bytes, [3; 100]);
    // The number is reused for memory that is registered on the new device.
    let area = dropped.area(0);
    drop(dropped);
    let mut again = store(&mut members, 0).memory(100, BlockUse::Both).expect("memory");
    assert_eq!(again.area(0), area);
    again.write(0, &[4; 100]).expect("in it");
    members.member(1).fabric.post_receive(way(A), into.area(0), 100, Token(3)).expect("room");
    members.member(0).fabric.send(way(B), again.area(0), 100, 8, Token(4)).expect("room");
    members.pass(MILLISECOND_NS);
    let came = members.member(1).fabric.poll_block();
    assert!(matches!(came, Some(BlockEvent::Received { immediate: 8, .. })), "{came:?}");
    into.read(0, &mut bytes).expect("in it");
    assert_eq!(bytes, [4; 100]);
}

#[test]
fn short_port_loss_keeps_requests_in_flight() {
    let mut members = members(3);
    let device = members.devices[0].clone();
    members.network.inject(Fault::PortDown(device.clone(), 1));
    let posted = members.post(FIRST, 0, 77);
    assert!(posted.iter().all(Result::is_ok));
    members.pass(8 * MILLISECOND_NS);
    assert_eq!(members.seen(FIRST, 1, A), 1, "nothing passes");
    // A view that is created meanwhile waits for the port, as the old one does.
    for process in [0, 1, 2] {
        members.try_open(SECOND, &[0, 1, 2], process).expect("memory");
    }
    members.network.inject(Fault::PortUp(device, 1));
    members.pass(30 * MILLISECOND_NS);
    assert_eq!(members.losses(), []);
    assert_eq!((members.seen(FIRST, 1, A), members.seen(FIRST, 2, A)), (77, 77));
    assert!(members.is_ready(SECOND) && members.carries(SECOND, 5, MILLISECOND_NS));
    members.assert_next_view(NEXT);
}

#[test]
fn long_port_loss_loses_peers_until_next_view() {
    let mut members = members(3);
    let device = members.devices[0].clone();
    members.network.inject(Fault::PortDown(device.clone(), 1));
    members.post(FIRST, 0, 77);
    members.pass(u64::try_from(LOSS_TIME.as_nanos()).expect("short"));
    assert_eq!(members.losses(), [], "nobody is lost before the time is over");
    members.pass(LONG_NS);
    let lost = members.losses();
    assert_eq!(lost, [(0, FIRST, B, UNREACHABLE), (0, FIRST, Rank(2), UNREACHABLE)]);
    let told = told(&mut members, 0);
    assert!(told.contains("status 12") && told.contains("lost its link"), "{told}");
    members.network.inject(Fault::PortUp(device, 1));
    members.pass(MILLISECOND_NS);
    members.assert_next_view(NEXT);
}

/// Describes how a process lost B in the first view.
fn told(members: &mut DeviceMembers, process: usize) -> String {
    members.member(process).fabric.loss_of(FIRST, B).expect("a loss").to_string()
}

/// The device reports only flushes, but its event about the port gives the cause.
#[test]
fn flush_reason_names_port_of_downed_interface() {
    let mut members =
        members_with(&Profile { fails_without_link: true, ..Profile::soft_roce() }, 3);
    let device = members.devices[0].clone();
    members.network.inject(Fault::PortDown(device, 1));
    members.post(FIRST, 0, 77);
    // Processing all flushes takes more than one poll.
    (0..2).for_each(|_| members.pass(MILLISECOND_NS));
    let lost = members.losses();
    assert_eq!(lost, [(0, FIRST, B, UNREACHABLE), (0, FIRST, Rank(2), UNREACHABLE)]);
    let told = told(&mut members, 0);
    assert!(told.contains("status 5") && told.contains("port lost its link"), "{told}");
    let figures = figures(&mut members, 0);
    assert_eq!((figures.has_link, figures.link_losses), (false, 1));
    assert_eq!(figures.losses, [("flushed", 2)]);
}

fn figures(members: &mut DeviceMembers, process: usize) -> Figures {
    let mut figures = Figures::default();
    members.member(process).fabric.write_figures(&mut figures);
    figures
}

#[test]
fn device_statistics_cover_all_views() {
    let mut members = members(2);
    let device = members.devices[0].as_str().to_owned();
    let before = figures(&mut members, 0);
    assert_eq!((before.device.as_str(), before.port, before.has_link), (device.as_str(), 1, true));
    assert_eq!(before.counters.writes, 1, "what `up` posts");
    members.open(SECOND, &[0, 1]);
    members.post(SECOND, 0, 9);
    // The other member retires the view too, because a view does not end on one member only.
    for _ in 0..4 {
        for process in [0, 1] {
            members.member(process).fabric.retire(FIRST);
        }
        members.pass(MILLISECOND_NS);
    }
    let after = figures(&mut members, 0);
    assert_eq!((after.counters.writes, after.losses.len()), (2, 0), "what ended is counted");
    assert!(after.counters.doorbells > before.counters.doorbells);
}

#[test]
fn loss_reason_names_first_status_after_flushes() {
    let mut members =
        members_with(&Profile { flushes_receives_first: true, ..Profile::strict() }, 2);
    let (from, to) = (members.devices[0].clone(), members.devices[1].clone());
    members.network.inject(Fault::Link {
        from,
        to,
        link: Link { is_cut: true, ..Link::default() },
    });
    members.post(FIRST, 0, 77);
    members.pass(LONG_NS);
    assert_eq!(members.losses(), [(0, FIRST, B, UNREACHABLE)]);
    let told = told(&mut members, 0);
    assert!(told.contains("status 12") && !told.contains("link"), "{told}");
}

/// Both peers are healthy, and would halt if they were told that they are cut off.
#[test]
fn member_without_link_does_not_accuse_peers() {
    let profile = Profile { fails_without_link: true, ..Profile::soft_roce() };
    let mut members = members_with(&profile, 3);
    let device = members.devices[0].clone();
    members.network.inject(Fault::PortDown(device.clone(), 1));
    members.post(FIRST, 0, 77);
    (0..2).for_each(|_| members.pass(MILLISECOND_NS));
    let lost = members.losses();
    assert_eq!(lost, [(0, FIRST, B, UNREACHABLE), (0, FIRST, Rank(2), UNREACHABLE)]);
    for peer in [B, Rank(2)] {
        members.member(0).fabric.cut(FIRST, peer);
    }
    members.network.inject(Fault::PortUp(device, 1));
    members.pass(LONG_NS);
    assert_eq!(members.losses(), []);
}

/// The core then cuts the peer, and the event that would explain the loss is never polled.
#[test]
fn loss_found_by_post_is_counted_once() {
    let mut members = members(2);
    members.network.inject(Fault::PortDown(members.devices[0].clone(), 1));
    members.post(FIRST, 0, 77);
    members.run_until(members.network.now_ns() + LONG_NS);
    members.member(0).fabric.carry();
    assert_eq!(members.post(FIRST, 0, 78), [Err(ErrorKind::PeerLost)]);
    members.member(0).fabric.cut(FIRST, B);
    members.pass(MILLISECOND_NS);
    assert_eq!(members.losses(), []);
    assert_eq!(figures(&mut members, 0).losses, [("retries-exceeded", 1)]);
    let told = told(&mut members, 0);
    assert!(told.contains("port lost its link"), "{told}");
}

/// Returns a device with room in its address table.
fn with_room() -> Profile {
    let gids = vec![gid("::"), gid("::"), gid("::"), gid("::")];
    Profile { ports: vec![PortProfile { gids, ..PortProfile::default() }], ..Profile::strict() }
}

/// Writes an address into an entry of a process's device.
fn set_gid(members: &DeviceMembers, process: usize, index: u8, address: &str) {
    let address = address.parse().expect("an address");
    let device = members.devices[process].clone();
    members.network.inject(Fault::Gid { device, port: 1, index, address });
}

/// Returns two members whose devices have several addresses in their tables, with their
/// constraints.
fn with_addresses(wishes: [Wanted; 2]) -> DeviceMembers {
    let profiles = [1, 2].map(|number| {
        let mut profile = with_room();
        profile.ports[0].gids[usize::from(IN_USE)] = gid(&format!("::ffff:10.0.0.{number}"));
        profile
    });
    up(DeviceMembers::with_wishes(&profiles, &wishes))
}

#[test]
fn next_view_finds_address_at_new_index() {
    let mut members = with_addresses([Wanted::default(), Wanted::default()]);
    set_gid(&members, 0, 3, "::ffff:10.0.0.1");
    set_gid(&members, 0, IN_USE, "::");
    members.pass(MILLISECOND_NS);
    members.assert_next_view(NEXT);
}

#[test]
fn next_view_uses_replaced_address() {
    let mut members = with_addresses([Wanted::default(), Wanted::default()]);
    set_gid(&members, 0, IN_USE, "::");
    set_gid(&members, 0, 2, "::ffff:10.0.0.9");
    members.pass(MILLISECOND_NS);
    members.assert_next_view(NEXT);
}

/// Nothing outside the operator's constraints is chosen, and the member finds the address the next
/// time it checks.
#[test]
fn next_view_waits_for_required_address() {
    let insisted = "10.0.0.1".parse().expect("an address");
    let wanted = Wanted { gid: GidChoice::Address(insisted), ..Wanted::default() };
    let mut members = with_addresses([wanted, Wanted::default()]);
    set_gid(&members, 0, IN_USE, "::");
    set_gid(&members, 0, 2, "::ffff:10.0.0.9");
    members.pass(MILLISECOND_NS);
    members.open(SECOND, &[0, 1]);
    assert!(!members.is_ready(SECOND), "its address leads nowhere");
    // While no address is usable, the member checks again, with or without an event.
    let (device, address) = (members.devices[0].clone(), "::ffff:10.0.0.1".parse());
    members.network.set_address_silently(&device, (1, 3), address.expect("an address"));
    members.pass(LONG_NS);
    members.assert_next_view(NEXT);
}

#[test]
fn next_view_announces_changed_lid() {
    let port = PortProfile { link_layer: LinkLayer::InfiniBand, ..PortProfile::default() };
    let mut members = members_with(&Profile { ports: vec![port], ..Profile::strict() }, 2);
    members.network.inject(Fault::Lid(members.devices[0].clone(), 1, 99));
    members.pass(MILLISECOND_NS);
    members.post(FIRST, 1, 8);
    members.pass(LONG_NS);
    assert!(members.losses().contains(&(1, FIRST, A, UNREACHABLE)), "the old one leads nowhere");
    members.assert_next_view(NEXT);
}

#[test]
fn next_view_uses_smaller_packet_size() {
    for is_told in [true, false] {
        let mut members = members(2);
        let device = members.devices[0].clone();
        if is_told {
            members.network.inject(Fault::Mtu(device, 1, 1024));
        } else {
            members.network.shrink_packets_silently(&device, 1, 1024);
        }
        members.pass(MILLISECOND_NS);
        members.assert_next_view(NEXT);
        assert!(members.carries(FIRST, 3, MILLISECOND_NS), "short writes pass as before");
    }
}

#[test]
fn completion_queue_overflow_affects_only_its_view() {
    for (failing, is_told) in
        [FIRST, SECOND].into_iter().flat_map(|view| [(view, true), (view, false)])
    {
        let mut members = members(2);
        members.open(SECOND, &[0, 1]);
        assert!(members.is_ready(SECOND));
        // Queues are created in the order of the views.
        let index = if failing == FIRST { 0 } else { 1 };
        let context = members.member(0).context;
        if is_told {
            members.network.announce_queue_failure(context, index);
        } else {
            members.network.overrun(context, index);
        }
        members.pass(MILLISECOND_NS);
        let lost = members.losses();
        let of_first: Vec<_> = lost.iter().filter(|(process, ..)| *process == 0).collect();
        assert_eq!(of_first, [&(0, failing, B, UNREACHABLE)]);
        let other = if failing == FIRST { SECOND } else { FIRST };
        assert!(members.carries(other, 9, MILLISECOND_NS));
        members.assert_next_view(NEXT);
    }
}

#[test]
fn unreported_queue_pair_failure_loses_its_peer() {
    let mut members = members(3);
    let context = members.member(0).context;
    // The first connection is the row's to B. A report of an earlier failure may arrive late.
    members.network.announce_queue_pair_failure(context, 0);
    members.pass(MILLISECOND_NS);
    assert_eq!(members.losses(), [], "it is in order");
    members.network.fail_queue_pair_silently(context, 0);
    members.network.announce_queue_pair_failure(context, 0);
    members.pass(MILLISECOND_NS);
    assert_eq!(members.losses(), [(0, FIRST, B, UNREACHABLE)]);
    let told = members.member(0).fabric.loss_of(FIRST, B).expect("a loss").to_string();
    assert!(told.contains("state 'error'"), "{told}");
    assert_eq!(members.post(FIRST, 0, 6)[1], Ok(()), "the other is there");
    members.pass(MILLISECOND_NS);
    assert_eq!(members.seen(FIRST, 2, A), 6);
    members.assert_next_view(NEXT);
}

/// Real time passes here, because a thread sleeps.
#[test]
fn device_failure_wakes_a_sleeping_member() {
    let mut members = members(2);
    assert!(wakes(&mut members));
    members.pass(MILLISECOND_NS);
    assert!(members.losses().contains(&(0, FIRST, B, UNREACHABLE)));
    // A descriptor that stays readable must not keep a member awake.
    members.network.announce_failure(&members.devices[0]);
    let sleeper = &mut members.member(0).fabric;
    assert!(sleeper.arm());
    let busy = processor_time();
    assert!(!sleeper.sleep(Duration::from_millis(400)));
    assert!(processor_time() - busy < Duration::from_millis(20));
    sleeper.disarm();
    // After it has been reopened, the device wakes this member as before.
    members.assert_next_view(NEXT);
    members.losses();
    assert!(wakes(&mut members));
    members.pass(MILLISECOND_NS);
    assert!(members.losses().contains(&(0, NEXT, B, UNREACHABLE)));
}

/// Returns whether the first member wakes when its device reports a failure during its sleep.
fn wakes(members: &mut DeviceMembers) -> bool {
    const LONG: Duration = Duration::from_secs(20);
    let (network, device) = (members.network.clone(), members.devices[0].clone());
    let sleeper = &mut members.member(0).fabric;
    assert!(sleeper.arm());
    let teller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        // A change of the port does not keep the member awake.
        network.inject(Fault::Pkey(device.clone(), 1));
        std::thread::sleep(Duration::from_millis(20));
        network.announce_failure(&device);
    });
    let started = Instant::now();
    let is_woken = sleeper.sleep(LONG);
    sleeper.disarm();
    teller.join().expect("no panic");
    is_woken && started.elapsed() < LONG / 2
}

/// Returns this thread's processor time.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let used = text.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(used.expect("a number"))
}

/// The view's memory exists, but losses could not be reported yet.
#[test]
fn view_opened_after_device_failure_reports_losses() {
    let mut members = members(2);
    let rows = members.make(SECOND, &[0, 1], 0).expect("memory");
    members.network.announce_failure(&members.devices[0]);
    members.pass(MILLISECOND_NS);
    members.losses();
    members.member(0).fabric.open(SECOND, &rows.memory()).expect("it opens");
    members.pass(MILLISECOND_NS);
    assert_eq!(members.losses(), [(0, SECOND, B, UNREACHABLE)]);
}

#[test]
fn device_failure_is_reported_as_unreachable_peers() {
    let mut members = members(3);
    members.network.inject(Fault::DeviceFatal(members.devices[0].clone()));
    members.pass(MILLISECOND_NS);
    let lost = members.losses();
    assert!(lost.contains(&(0, FIRST, B, UNREACHABLE)), "{lost:?}");
    // The core does this with members that it suspects.
    for peer in [B, Rank(2)] {
        members.member(0).fabric.cut(FIRST, peer);
    }
    members.post(FIRST, 1, 5);
    members.pass(2_000 * MILLISECOND_NS);
    let lost = members.losses();
    let of_failed = (1, FIRST, Rank(0), UNREACHABLE);
    assert!(lost.contains(&of_failed), "they find out by themselves: {lost:?}");
    assert!(lost.iter().all(|(.., cause)| *cause == UNREACHABLE), "{lost:?}");
}
