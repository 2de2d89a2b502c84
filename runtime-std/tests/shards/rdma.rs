//! Shards over RDMA: one device per process, devices that are refused, and a device that fails
//! while its replica leads.

use std::time::Duration;

use tramontane_core::ids::Rank;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::rdma::{DeviceOptions, NoFabric, RdmaOrder};
use tramontane_runtime::shards::{
    Client, Description, Destinations, GroupId, Places, ReplicaId, StartError, StartOptions, start,
};
use tramontane_verbs::JoinError;
use tramontane_verbs::devices::DataInOrder;
use tramontane_verbs::fake::{Clock, DeviceName, Fault, Network, Placement, Profile};

use crate::support::{Started, leader, overlay, send, start_one, wait_until};

/// Returns the overlay as configured in a process with that device.
fn with_device(description: &Description, device: &DeviceName) -> Description {
    let rdma = DeviceOptions { device: Some(device.as_str().into()), ..DeviceOptions::default() };
    Description { rdma, ..description.clone() }
}

/// Starts one group, in which each replica has its own device.
fn start_all(
    network: &Network,
    profile: &Profile,
    description: &Description,
) -> Vec<(DeviceName, Started)> {
    let places = Places::new(description, description.overlay().expect("a tree"));
    std::thread::scope(|scope| {
        let started: Vec<_> = places
            .replicas()
            .map(|id| {
                let device = network.add_device(profile.clone());
                let own = with_device(description, &device);
                scope.spawn(move || (device, start_one(&own, id).expect("it starts")))
            })
            .collect();
        started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// A NIC that keeps no order between writes, and completes them before they are visible.
fn disorderly() -> Profile {
    Profile {
        placement: Placement::BytesReordered,
        placement_delay_ns: 50_000,
        data_in_order: DataInOrder::NotKnown,
        completes_before_visible: true,
        ..Profile::strict()
    }
}

#[test]
fn group_survives_and_readmits_leader_with_failed_device() {
    leader_with_failed_device(&Profile::soft_roce());
}

#[test]
fn group_on_unordered_devices_readmits_failed_leader() {
    leader_with_failed_device(&disorderly());
}

/// The device keeps order, but a completed write may not be visible yet.
#[test]
fn group_on_late_devices_readmits_failed_leader() {
    let late =
        Profile { data_in_order: DataInOrder::Yes, placement: Placement::InOrder, ..disorderly() };
    leader_with_failed_device(&late);
}

fn leader_with_failed_device(profile: &Profile) {
    let folder = tempfile::tempdir().expect("a folder");
    let description = overlay(Carrier::Verbs, &[None], folder.path());
    let network = Network::new(1, Clock::Real);
    let (devices, mut started): (Vec<_>, Vec<_>) =
        start_all(&network, profile, &description).into_iter().unzip();
    let own = with_device(&description, &network.add_device(profile.clone()));
    let mut client = Client::connect(&own, Destinations::default(), StartOptions::default())
        .expect("it connects");
    let all = client.places().overlay().all();
    send(&mut client, all, 0, 100);
    let place = leader(&started, 0);
    network.inject(Fault::DeviceFatal(devices[place].clone()));
    send(&mut client, all, 100, 100);
    let failed = started.remove(place);
    failed.running.close();
    let next = &started[leader(&started, 0)];
    assert_ne!(next.id, failed.id);
    let again = with_device(&description, &network.add_device(profile.clone()));
    started.push(start_one(&again, failed.id).expect("it comes back"));
    send(&mut client, all, 200, 100);
    let expected: Vec<String> = (0..300).map(|number| format!("message {number}")).collect();
    for one in &started {
        wait_until("it counts, and has all", || {
            one.running.status().state.counts() && one.keeper.len() >= 300
        });
        assert_eq!(one.keeper.payloads(), expected, "{:?}", one.id);
    }
}

/// Returns the reasons why a replica and a client do not start on such a device.
fn refusals(profile: Profile, order: Option<RdmaOrder>) -> [StartError; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let network = Network::new(1, Clock::Real);
    let device = network.add_device(profile);
    let mut own = with_device(&overlay(Carrier::Verbs, &[None], folder.path()), &device);
    own.rdma.rdma_order = order;
    let options = || {
        let mut options = StartOptions::default();
        options.time_limit = Duration::from_millis(50);
        options
    };
    let application = |_: &tramontane_runtime::shards::Delivered<'_>| 0;
    let replica =
        start(&own, ReplicaId { group: GroupId(0), rank: Rank(0) }, options(), application);
    let client = Client::connect(&own, Destinations::default(), options());
    [replica.expect_err("nobody is there"), client.expect_err("nobody is there")]
}

#[test]
fn unsuitable_rdma_device_is_refused_before_meeting() {
    let unsafe_keys = Profile { keeps_ended_keys: true, ..Profile::soft_roce() };
    for error in refusals(unsafe_keys, None) {
        assert!(
            matches!(error, StartError::Fabric(NoFabric::Rdma(JoinError::NotDenied { .. }))),
            "{error}"
        );
    }
}

/// The only problem left is that the other replicas are missing.
#[test]
fn any_order_of_writes_is_accepted() {
    let silent = || Profile { data_in_order: DataInOrder::NotKnown, ..Profile::strict() };
    for profile in [silent(), Profile::strict(), Profile::soft_roce()] {
        for order in [None, Some(RdmaOrder::None), Some(RdmaOrder::Writes)] {
            for error in refusals(profile.clone(), order) {
                assert!(matches!(error, StartError::NotMet { .. }), "{order:?}: {error}");
            }
        }
    }
}
