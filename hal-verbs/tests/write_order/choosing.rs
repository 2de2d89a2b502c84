//! The choice of who keeps the order, depending on the device's report and the operator's options.

use tramontane_core::fabric::{Fabric as _, LossCause, Promises};
use tramontane_verbs::devices::DataInOrder;
use tramontane_verbs::fake::{Clock, Network, Profile};
use tramontane_verbs::{JoinError, Limits, WriteOrder};

use super::bench::{A, B, REGION, ROW_BYTES, VIEW, by_updates, member, promised, site};

fn chosen(profile: Profile, limits: &Limits) -> (WriteOrder, Promises) {
    let site = site(&Network::new(1, Clock::Virtual), profile, limits).expect("a site");
    (site.report().write_order, site.capabilities().promises)
}

#[test]
fn operator_setting_overrules_order_reported_by_device() {
    let adapter = |data_in_order| Profile { data_in_order, ..Profile::strict() };
    let usual = Limits::default();
    let cases = [
        (adapter(DataInOrder::Yes), &usual, WriteOrder::ByDevice),
        (adapter(DataInOrder::No), &usual, WriteOrder::ByUpdates),
        (adapter(DataInOrder::NotKnown), &usual, WriteOrder::ByUpdates),
        (Profile::soft_roce(), &usual, WriteOrder::ByDevice),
        (adapter(DataInOrder::Yes), &by_updates(), WriteOrder::ByUpdates),
        (Profile::soft_roce(), &by_updates(), WriteOrder::ByUpdates),
        (adapter(DataInOrder::No), &promised(), WriteOrder::ByDevice),
    ];
    for (profile, limits, wanted) in cases {
        let answer = profile.data_in_order;
        let (order, promises) = chosen(profile, limits);
        assert_eq!(order, wanted, "{answer:?}, {:?}", limits.write_order);
        assert!(promises.contains(Promises::WRITE_ORDER), "either way it is promised");
    }
}

#[test]
fn site_with_updates_promises_order_only_between_writes() {
    let limits =
        Limits { address_order: Some(true), completion_visible: Some(true), ..by_updates() };
    let promised = Promises::WRITE_ORDER | Promises::RELAYS;
    assert_eq!(chosen(Profile::soft_roce(), &limits).1, promised);
}

#[test]
fn device_table_lists_reported_write_order() {
    for (data_in_order, said) in [
        (DataInOrder::Yes, "order between writes: yes;"),
        (DataInOrder::No, "order between writes: not promised;"),
        (DataInOrder::NotKnown, "order between writes: not known;"),
    ] {
        let network = Network::new(1, Clock::Virtual);
        let device = network.add_device(Profile { data_in_order, ..Profile::strict() });
        let table = network.describe(&device).expect("it answers").to_string();
        assert!(table.contains(said), "{table}");
    }
}

#[test]
fn site_without_order_or_updates_is_refused() {
    let network = Network::new(1, Clock::Virtual);
    let limits = Limits { allow_updates: false, ..Limits::default() };
    let silent = || Profile { data_in_order: DataInOrder::NotKnown, ..Profile::strict() };
    let refused = site(&network, silent(), &limits).expect_err("no order");
    assert!(matches!(refused, JoinError::NoWriteOrder { .. }), "{refused}");
    assert!(refused.to_string().contains("RDMA order to writes"), "{refused}");
    let insists = Limits { write_order: Some(true), ..limits };
    assert!(site(&network, silent(), &insists).is_ok());
}

/// With updates, the receiver applies a peer's writes, so a device that lets ended keys through is
/// safe.
#[test]
fn regions_with_updates_need_no_denial() {
    let network = Network::new(1, Clock::Virtual);
    let unsafe_keys = || Profile { keeps_ended_keys: true, ..Profile::strict() };
    for (limits, is_safe) in [(by_updates(), true), (promised(), false)] {
        let site = site(&network, unsafe_keys(), &limits).expect("a site");
        assert!(site.region(REGION, 4096).is_ok());
        assert_eq!(site.check_regions().is_ok(), is_safe);
    }
}

#[test]
fn members_with_mismatched_write_orders_cannot_connect() {
    let network = Network::new(1, Clock::Virtual);
    let sites = [by_updates(), promised()]
        .map(|limits| site(&network, Profile::strict(), &limits).expect("a site"));
    let mut a = member(&sites[0], A, [ROW_BYTES; 2]);
    let mut b = member(&sites[1], B, [ROW_BYTES; 2]);
    let cards = [a.fabric.card_for(B), b.fabric.card_for(A)];
    assert!(!a.fabric.connect(B, &cards[1]) && !b.fabric.connect(A, &cards[0]));
    let loss = a.fabric.loss_of(B).expect("lost");
    assert_eq!(loss.cause, LossCause::Unreachable);
    assert!(!a.fabric.ready(VIEW, B));
}
