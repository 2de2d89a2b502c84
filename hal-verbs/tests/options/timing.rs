//! Timeouts: the requested values, and how the device interprets them.

use std::time::Duration;

use tramontane_verbs::Limits;
use tramontane_verbs::fake::{Link, Profile};

use super::{PairShape, SECOND_NS, Two};

#[test]
fn nics_use_seven_retries_and_soft_roce_fewer() {
    for (profile, is_adapter) in [(Profile::strict(), true), (Profile::soft_roce(), false)] {
        let profiles = [profile.clone(), profile];
        let mut two = Two::new(&PairShape { profiles, ..PairShape::default() });
        two.admit();
        let told = two.network.connections(&two.devices[0]);
        assert!(!told.is_empty());
        for connection in told {
            let retries = connection.retries;
            assert!(if is_adapter { retries == 7 } else { retries < 7 }, "{connection:?}");
            let report = two.report.loss_times;
            assert_eq!(connection.timeout_exponent, report.timeout_exponent);
        }
    }
}

/// For every firmware floor and every delay of retransmissions, a silent peer is given up no
/// earlier than the reported minimum and no later than the reported maximum.
#[test]
fn silent_peer_is_abandoned_within_reported_times() {
    for kind in [Profile::strict(), Profile::soft_roce()] {
        // A software driver has no firmware.
        let floors: &[u8] = if kind.vendor_id == 0x02c9 { &[0, 12, 16] } else { &[0] };
        for (floor, stretch, milliseconds) in floors
            .iter()
            .flat_map(|floor| [1, 2, 4].map(|stretch| (*floor, stretch)))
            .flat_map(|(floor, stretch)| [10, 300, 1000].map(|time| (floor, stretch, time)))
        {
            let profile = Profile {
                timeout_exponent_min: floor,
                timeout_stretch_max: stretch,
                ..kind.clone()
            };
            let limits =
                Limits { loss_time: Duration::from_millis(milliseconds), ..Limits::default() };
            let shape =
                PairShape { profiles: [profile.clone(), profile], limits, ..PairShape::default() };
            let mut two = Two::new(&shape);
            two.link(Link { is_cut: true, ..Link::default() });
            two.admit();
            let started = two.network.now_ns();
            let times = two.report.loss_times;
            assert!(times.least() >= Duration::from_millis(milliseconds));
            two.run_until_lost(60 * SECOND_NS);
            let took = Duration::from_nanos(two.network.now_ns() - started);
            let way = Duration::from_millis(1);
            let what = format!("floor {floor}, stretch {stretch}, {milliseconds} ms: {took:?}");
            assert!(took + way >= times.least(), "{what}, {:?}", times.least());
            assert!(took <= times.longest() + way, "{what}, {:?}", times.longest());
        }
    }
}

#[test]
fn known_firmware_floor_shortens_longest_loss_time() {
    let longest = |timeout_exponent_floor| {
        let loss_time = Duration::from_millis(10);
        let limits = Limits { timeout_exponent_floor, loss_time, ..Limits::default() };
        Two::new(&PairShape { limits, ..PairShape::default() }).report.loss_times.longest()
    };
    assert!(longest(Some(12)) * 10 < longest(None), "{:?}", longest(Some(12)));
    assert_eq!(longest(Some(16)), longest(None));
}
