//! The networks of the two ends, and the treatment of packets in them.

use tramontane_core::fabric::LossCause;
use tramontane_verbs::devices::{ChoiceError, LinkLayer, PartitionKey, Service, Transport, Wanted};
use tramontane_verbs::fake::{Clock, Network, PortProfile, Profile};
use tramontane_verbs::{JoinError, Limits, LossReason, Site};

use super::{A, B, PairShape, SECOND_NS, Two};

fn infiniband() -> Profile {
    let port = PortProfile { link_layer: LinkLayer::InfiniBand, ..PortProfile::default() };
    Profile { ports: vec![port], ..Profile::strict() }
}

#[test]
fn members_with_mismatched_link_layers_cannot_connect() {
    let profiles = [infiniband(), Profile::strict()];
    let mut two = Two::new(&PairShape { profiles, ..PairShape::default() });
    assert_eq!(two.connect(), [false, false]);
    for (fabric, peer, words) in [
        (&two.fabrics[0], B, "runs on InfiniBand, but the peer's runs on Ethernet"),
        (&two.fabrics[1], A, "runs on Ethernet, but the peer's runs on InfiniBand"),
    ] {
        let loss = fabric.loss_of(peer).expect("a loss");
        assert_eq!(loss.cause, LossCause::Unreachable);
        assert!(matches!(loss.reason, Some(LossReason::LinkLayers { .. })), "{loss}");
        assert!(loss.to_string().contains(words), "{loss}");
    }
}

#[test]
fn infiniband_members_connect_with_or_without_global_route() {
    for [one, other] in [[false, false], [true, false], [false, true], [true, true]] {
        let wanted = [one, other].map(|has_global_route| Wanted {
            service: Service { has_global_route, ..Service::default() },
            ..Wanted::default()
        });
        let profiles = [infiniband(), infiniband()];
        let mut two = Two::new(&PairShape { profiles, wanted, ..PairShape::default() });
        two.admit();
        two.run_for(SECOND_NS);
        assert_eq!(two.ready(), [true, true]);
        for device in &two.devices {
            let told = two.network.connections(device);
            assert_eq!(told.len(), 1);
            assert_eq!(told[0].is_global, one || other, "both ends do alike");
        }
    }
}

#[test]
fn required_global_route_is_used() {
    for tells_of_global_route in [true, false] {
        let needs = |needs_global_route| {
            let port = PortProfile {
                link_layer: LinkLayer::InfiniBand,
                needs_global_route,
                tells_of_global_route,
                ..PortProfile::default()
            };
            Profile { ports: vec![port], ..Profile::strict() }
        };
        // A port that reports this also tells the peer.
        let other = !tells_of_global_route;
        let mut two =
            Two::new(&PairShape { profiles: [needs(true), needs(other)], ..PairShape::default() });
        two.admit();
        two.run_for(SECOND_NS);
        assert_eq!(two.ready(), [true, true]);
        for device in &two.devices {
            assert!(two.network.connections(device)[0].is_global);
        }
    }
}

#[test]
fn service_level_and_traffic_class_reach_the_connections() {
    let service = Service { traffic_class: 106, level: 3, has_global_route: false };
    let wanted = [Wanted { service, ..Wanted::default() }, Wanted::default()];
    let mut two = Two::new(&PairShape { wanted, blocks: true, ..PairShape::default() });
    two.admit();
    let told = two.network.connections(&two.devices[0]);
    assert_eq!(told.len(), 2, "rows and blocks");
    assert!(told.iter().all(|connection| connection.service == service), "{told:?}");
    let other = two.network.connections(&two.devices[1]);
    assert!(other.iter().all(|connection| connection.service == Service::default()));
}

fn in_partitions(keys: &[u16]) -> Profile {
    let partitions = keys.iter().map(|key| PartitionKey(*key)).collect();
    let port =
        PortProfile { link_layer: LinkLayer::InfiniBand, partitions, ..PortProfile::default() };
    Profile { ports: vec![port], ..Profile::strict() }
}

fn wanting(key: u16) -> Wanted {
    Wanted { partition: Some(PartitionKey(key)), ..Wanted::default() }
}

#[test]
fn members_connect_in_the_chosen_partition() {
    let profiles = [in_partitions(&[0xffff, 0, 0x8001]), in_partitions(&[0xffff, 0x0001])];
    let wanted = [wanting(0x8001), wanting(0x0001)];
    let mut two = Two::new(&PairShape { profiles, wanted, ..PairShape::default() });
    two.admit();
    two.run_for(SECOND_NS);
    assert_eq!(two.ready(), [true, true]);
    let index = |device| two.network.connections(device)[0].partition_index;
    assert_eq!(two.devices.each_ref().map(index), [2, 1]);
}

#[test]
fn members_in_separate_partitions_cannot_connect() {
    for (one, other) in [(0x8001, 0x8002), (0x0001, 0x0001), (0xffff, 0x8001)] {
        let profiles = [in_partitions(&[one]), in_partitions(&[other])];
        let mut two = Two::new(&PairShape { profiles, ..PairShape::default() });
        assert_eq!(two.connect(), [false, false]);
        let loss = two.fabrics[0].loss_of(B).expect("a loss");
        assert!(matches!(loss.reason, Some(LossReason::Partitions { .. })), "{loss}");
        assert!(loss.to_string().contains("same partition key"), "{loss}");
    }
}

fn open(profile: Profile, wanted: &Wanted, limits: &Limits) -> Result<Site, JoinError> {
    let network = Network::new(1, Clock::Virtual);
    let device = network.add_device(profile);
    Site::open(&Wanted { device: device.wanted().device, ..wanted.clone() }, limits, None)
}

#[test]
fn partition_missing_at_port_is_refused() {
    let error = open(infiniband(), &wanting(0x8007), &Limits::default()).expect_err("no partition");
    assert!(matches!(error, JoinError::Choice(ChoiceError::NoSuchPartition { .. })), "{error}");
}

#[test]
fn unsupported_transport_error_names_the_transport() {
    let strict = Profile::strict;
    for (profile, transport) in [
        (Profile { transport: 1, ..strict() }, Transport::Iwarp),
        (Profile { transport: 2, ..strict() }, Transport::UsNic),
        (Profile { transport: 4, vendor_id: 0x1d0f, ..strict() }, Transport::Efa),
        (Profile { vendor_id: 0x1175, vendor_part_id: 0x24f0, ..strict() }, Transport::OmniPath),
        (Profile { transport: 9, ..strict() }, Transport::Unknown),
    ] {
        let error = open(profile, &Wanted::default(), &Limits::default()).expect_err("refused");
        let JoinError::Choice(ChoiceError::OtherTransport { transport: found, .. }) = &error else {
            panic!("{error}");
        };
        assert_eq!(*found, transport);
        assert!(error.to_string().contains(transport.name()), "{error}");
    }
}
