//! Acceptance checks of RDMA between two hosts, over fake devices: each defect of a NIC or a
//! network leads to the verdict that names it, and a NIC without defects passes.

use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::Duration;

use tramontane_verbs::Limits;
use tramontane_verbs::check::{
    Check, CheckError, End, Finding, FindingVerdict, Options, TcpTalk, run,
};
use tramontane_verbs::devices::{GidKind, Wanted};
use tramontane_verbs::fake::{
    Clock, Fault, GidEntry, Link, Network, Placement, PortProfile, Profile,
};

/// Number of rounds of a check that needs random events to occur.
const ROUNDS: u64 = 60;

/// Number of rounds of a check that waits for a slow device in each round.
const SLOW_ROUNDS: u64 = 15;

/// Checks two devices of one kind, after a change to the network between them.
fn check(
    profile: &Profile,
    limits: &Limits,
    change: impl FnOnce(&Network, [&tramontane_verbs::fake::DeviceName; 2]),
) -> Vec<Finding> {
    check_in(ROUNDS, profile, limits, change)
}

/// Performs the same check with the given number of rounds.
fn check_in(
    rounds: u64,
    profile: &Profile,
    limits: &Limits,
    change: impl FnOnce(&Network, [&tramontane_verbs::fake::DeviceName; 2]),
) -> Vec<Finding> {
    let network = Network::new(7, Clock::Real);
    let devices = [network.add_device(profile.clone()), network.add_device(profile.clone())];
    change(&network, [&devices[0], &devices[1]]);
    let options = |device: &tramontane_verbs::fake::DeviceName| Options {
        wanted: Wanted { device: Some(device.as_str().to_owned()), ..Wanted::default() },
        limits: limits.clone(),
        meeting: None,
        rounds,
    };
    let [first, second] = both([options(&devices[0]), options(&devices[1])]);
    let (first, second) = (first.expect("the first end"), second.expect("the second end"));
    assert_eq!(first, second, "both ends come to the same findings");
    assert_eq!(first.len(), Check::ALL.len() * 2, "each check in both directions");
    first
}

/// Runs both ends, in two threads.
fn both(options: [Options; 2]) -> [Result<Vec<Finding>, CheckError>; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let [one, other] = options;
    std::thread::scope(|scope| {
        let second = scope.spawn(move || {
            let stream = TcpStream::connect(address).expect("it listens");
            run(&other, End::Second, &mut TcpTalk::new(stream).expect("a socket"), |_| {})
        });
        let (stream, _) = listener.accept().expect("it comes");
        let mut talk = TcpTalk::new(stream).expect("a socket");
        let first = run(&one, End::First, &mut talk, |found| println!("{found}"));
        // The first end has sent everything, so the second need not wait for more.
        drop(talk);
        [first, second.join().expect("no panic")]
    })
}

/// Returns limits with which peers are given up quickly, so that this check is short.
fn quick() -> Limits {
    Limits { loss_time: Duration::from_millis(20), ..Limits::default() }
}

#[track_caller]
fn assert_verdicts(findings: &[Finding], check: Check, verdict: FindingVerdict) -> &str {
    let found = || findings.iter().filter(|finding| finding.check == check);
    assert!(found().all(|finding| finding.verdict == verdict), "{check:?}: {findings:#?}");
    found().next().map_or("", |finding| &finding.text)
}

#[test]
fn conforming_nic_passes_every_check() {
    let findings = check(&Profile::strict(), &quick(), |_, _| {});
    for check in Check::ALL {
        assert_verdicts(&findings, check, FindingVerdict::Passed);
    }
}

#[test]
fn reordered_writes_fail_if_order_is_promised() {
    let profile = Profile {
        placement: Placement::WritesReordered,
        // The delay is longer than a thread waits for a processor.
        placement_delay_ns: 60_000_000,
        ..Profile::strict()
    };
    // Every placed write is acknowledged within the loss time, which is longer than the delay.
    let loss_time = Duration::from_millis(300);
    let limits = |promised| Limits { write_order: Some(promised), loss_time, ..Limits::default() };
    let findings = check_in(SLOW_ROUNDS, &profile, &limits(true), |_, _| {});
    let text = assert_verdicts(&findings, Check::WriteOrder, FindingVerdict::Failed);
    assert!(text.contains("overtook"), "{text}");
    let findings = check_in(SLOW_ROUNDS, &profile, &limits(false), |_, _| {});
    assert_verdicts(&findings, Check::WriteOrder, FindingVerdict::Note);
}

#[test]
fn reordered_bytes_are_only_noted_unless_promised() {
    let profile = Profile {
        placement: Placement::BytesReordered,
        placement_delay_ns: 20_000_000,
        ..Profile::strict()
    };
    let findings = check_in(SLOW_ROUNDS, &profile, &quick(), |_, _| {});
    assert_verdicts(&findings, Check::ByteOrder, FindingVerdict::Note);
    let promised = Limits { address_order: Some(true), ..quick() };
    let findings = check_in(SLOW_ROUNDS, &profile, &promised, |_, _| {});
    assert_verdicts(&findings, Check::ByteOrder, FindingVerdict::Failed);
}

#[test]
fn early_completion_is_only_noted_unless_promised() {
    let profile = Profile {
        completes_before_visible: true,
        placement_delay_ns: 20_000_000,
        ..Profile::strict()
    };
    let limits = |promised| Limits { completion_visible: Some(promised), ..quick() };
    let findings = check_in(SLOW_ROUNDS, &profile, &limits(false), |_, _| {});
    assert_verdicts(&findings, Check::Visibility, FindingVerdict::Note);
    let findings = check_in(SLOW_ROUNDS, &profile, &limits(true), |_, _| {});
    assert_verdicts(&findings, Check::Visibility, FindingVerdict::Failed);
}

#[test]
fn path_dropping_full_packets_fails_the_check() {
    let link = Link { mtu_bytes: 1024, ..Link::default() };
    let findings = check(&Profile::strict(), &quick(), |network, [one, other]| {
        for (from, to) in [(one, other), (other, one)] {
            network.inject(Fault::Link { from: from.clone(), to: to.clone(), link });
        }
    });
    assert_verdicts(&findings, Check::Reach, FindingVerdict::Passed);
    let (size, others) = findings[2..].split_first().expect("more checks");
    assert_eq!((size.check, size.verdict), (Check::PacketSize, FindingVerdict::Failed), "{size}");
    assert!(size.text.contains("MTU"), "{size}");
    assert!(others.iter().all(|found| found.verdict == FindingVerdict::Skipped), "{findings:#?}");
}

#[test]
fn unreachable_network_skips_other_checks() {
    let link = Link { is_cut: true, ..Link::default() };
    let findings = check(&Profile::strict(), &quick(), |network, [one, other]| {
        network.inject(Fault::Link { from: one.clone(), to: other.clone(), link });
        network.inject(Fault::Link { from: other.clone(), to: one.clone(), link });
    });
    let (reach, others) = findings.split_at(1);
    assert_eq!(reach[0].verdict, FindingVerdict::Failed, "{findings:#?}");
    assert!(others.iter().all(|found| found.verdict == FindingVerdict::Skipped), "{findings:#?}");
}

#[test]
fn slow_firmware_timeout_is_noted() {
    let profile = Profile { timeout_exponent_min: 16, ..Profile::strict() };
    let limits = Limits { timeout_exponent_floor: Some(8), ..quick() };
    let findings = check(&profile, &limits, |_, _| {});
    let text = assert_verdicts(&findings, Check::Loss, FindingVerdict::Note);
    assert!(text.contains("firmware"), "{text}");
}

#[test]
fn early_firmware_timeout_fails_the_check() {
    let profile = Profile { retries_max: 2, ..Profile::strict() };
    let findings = check(&profile, &quick(), |_, _| {});
    let text = assert_verdicts(&findings, Check::Loss, FindingVerdict::Failed);
    assert!(text.contains("short loss of the link"), "{text}");
}

#[test]
fn check_refuses_mismatched_round_counts() {
    let network = Network::new(7, Clock::Real);
    let device = network.add_device(Profile::strict());
    let options = |rounds| Options {
        wanted: Wanted { device: Some(device.as_str().to_owned()), ..Wanted::default() },
        limits: quick(),
        meeting: None,
        rounds,
    };
    let ended = both([options(10), options(11)]);
    assert!(ended.iter().all(|ended| matches!(ended, Err(CheckError::Mismatch))), "{ended:?}");
}

/// A host has several networks, only one of which reaches the other host.
#[test]
fn checks_use_the_address_of_the_meeting() {
    let network = Network::new(7, Clock::Real);
    let port = |last: u8| {
        let gid = |address: [u8; 4], is_routed| GidEntry {
            address: std::net::Ipv4Addr::from(address).to_ipv6_mapped(),
            kind: GidKind::RoceV2,
            is_routed,
        };
        let gids = vec![gid([10, 1, 0, last], false), gid([10, 9, 0, last], true)];
        PortProfile { gids, ..PortProfile::default() }
    };
    let options = |last: u8, meeting: Option<IpAddr>| {
        let profile = Profile { ports: vec![port(last)], ..Profile::strict() };
        let device = network.add_device(profile);
        Options { wanted: device.wanted(), limits: quick(), meeting, rounds: 2 }
    };
    let at = |last: u8| Some(IpAddr::from([10, 9, 0, last]));
    let [found, _] = both([options(1, at(1)), options(2, at(2))]);
    assert_verdicts(&found.expect("the first end"), Check::Reach, FindingVerdict::Passed);
    let [found, _] = both([options(3, None), options(4, None)]);
    assert_eq!(found.expect("the first end")[0].verdict, FindingVerdict::Failed);
}

#[test]
fn check_refuses_mismatched_write_orders() {
    let network = Network::new(7, Clock::Real);
    let options = |write_order| Options {
        wanted: network.add_device(Profile::strict()).wanted(),
        limits: Limits { write_order, ..quick() },
        meeting: None,
        rounds: 10,
    };
    let ended = both([options(Some(false)), options(Some(true))]);
    assert!(ended.iter().all(|ended| matches!(ended, Err(CheckError::WriteOrders))), "{ended:?}");
}
