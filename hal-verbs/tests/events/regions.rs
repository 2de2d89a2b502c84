//! Device events about a region's connection.

use tramontane_core::fabric::{
    Area, Event, Fabric as _, Kind, PermissionEvent, Permissions as _, Region, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_verbs::fake::{Clock, ContextId, Network, Profile};
use tramontane_verbs::{Limits, Site, Verbs, ViewOptions};

const VIEW: ViewId = ViewId(1);
const LOG: Region = Region(5);
const A: Rank = Rank(0);
const B: Rank = Rank(1);
const MILLISECOND_NS: u64 = 1_000_000;

/// A member without a side channel, and its device.
struct LoneMember {
    site: Site,
    fabric: Verbs,
    context: ContextId,
}

/// Returns two connected members with a region.
fn pair(network: &Network) -> [LoneMember; 2] {
    let member = |own: Rank| {
        let device = network.add_device(Profile::strict());
        let site = Site::open(&device.wanted(), &Limits::default(), None).expect("a device");
        let region = site.region(LOG, 4096).expect("memory");
        let options = ViewOptions {
            view: VIEW,
            own,
            members: &[NodeId(10), NodeId(11)],
            row_bytes: &[4096; 2],
            relayed: &[],
            regions: &[region],
            blocks: false,
        };
        let mut fabric = site.view(&options).expect("memory");
        let rows = fabric.rows().clone();
        fabric.open(VIEW, &rows.memory()).expect("it opens");
        LoneMember { site, fabric, context: network.contexts(&device)[0] }
    };
    let mut members = [member(A), member(B)];
    let cards = [members[1].fabric.card_for(A), members[0].fabric.card_for(B)];
    for (member, (peer, card)) in members.iter_mut().zip([B, A].into_iter().zip(cards)) {
        assert!(member.fabric.connect(peer, &card));
    }
    members[0].fabric.admit(B);
    members[1].fabric.admit(A);
    pass(network, &mut members);
    members
}

/// Lets time pass. Returns the events of both members, except readiness.
fn pass(network: &Network, members: &mut [LoneMember; 2]) -> Vec<Event> {
    let mut events = Vec::new();
    let end = network.now_ns() + MILLISECOND_NS;
    while network.now_ns() < end {
        network.run_until(network.now_ns() + 5_000);
        for member in members.iter_mut() {
            events.extend(std::iter::from_fn(|| member.fabric.poll()));
        }
    }
    events.retain(|event| !matches!(event, Event::Ready { .. } | Event::Woken));
    events
}

/// The owner's device reports that its end has failed. Nothing else happens, and no receive is
/// flushed.
#[test]
fn failed_region_connection_is_re_established() {
    let network = Network::new(3, Clock::Virtual);
    let mut members = pair(&network);
    let context = members[0].context;
    // The first connection is the row's, the second the region's.
    network.fail_queue_pair_silently(context, 1);
    network.announce_queue_pair_failure(context, 1);
    let news = members[0].site.check_device();
    members[0].fabric.hear_device(&news);
    assert!(members[0].site.check_device().is_empty(), "nobody is told twice");
    assert_eq!(pass(&network, &mut members), []);
    let told: Vec<_> = std::iter::from_fn(|| members[0].fabric.poll_permission()).collect();
    assert!(
        told.contains(&PermissionEvent::Restored { view: VIEW, peer: B, region: LOG }),
        "{told:?}"
    );
    // The connection carries writes again, with the right to write.
    members[0].fabric.grant(VIEW, B, LOG).expect("a region of its own");
    pass(&network, &mut members);
    let area = Area { region: LOG, offset: 0 };
    let write = Write { source: area, target: area, length: 8, kind: Kind::Content };
    let rows = members[1].fabric.rows().clone();
    rows.region(LOG).expect("a region").apply(0, &[4; 8]).expect("in it");
    members[1].fabric.post(VIEW, A, &[write], None).expect("room");
    pass(&network, &mut members);
    let (mut seen, rows) = ([0; 8], members[0].fabric.rows().clone());
    rows.region(LOG).expect("a region").reader().read(0, &mut seen).expect("in it");
    assert_eq!(seen, [4; 8]);
    assert!(members[0].fabric.loss_of(B).is_none() && members[1].fabric.loss_of(A).is_none());
}
