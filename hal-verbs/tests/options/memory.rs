//! The memory and device objects that a view takes, and the errors when they are unavailable.

use std::collections::BTreeSet;

use tramontane_core::fabric::{BlockStore as _, BlockUse, Fabric as _, Kind, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_verbs::fake::{Clock, InlineGrant, Network, Profile};
use tramontane_verbs::settings::INLINE_BYTES_USUAL;
use tramontane_verbs::{JoinError, Limits, NoBlockMemory, Site, ViewOptions};

use super::{A, B, PairShape, SECOND_NS, Two, VIEW, alone};

fn site(profile: Profile, limits: &Limits) -> Result<(Network, Site), JoinError> {
    let network = Network::new(1, Clock::Virtual);
    let device = network.add_device(profile);
    Ok((network, Site::open(&device.wanted(), limits, None)?))
}

#[test]
fn queue_sizes_match_the_requirements() {
    let profile = Profile {
        limits: tramontane_verbs::devices::DeviceLimits {
            inline_bytes_max: 1024,
            ..Profile::strict().limits
        },
        ..Profile::strict()
    };
    let profiles = [profile.clone(), profile];
    let mut two = Two::new(&PairShape { profiles, blocks: true, ..PairShape::default() });
    two.admit();
    let told = two.network.connections(&two.devices[0]);
    assert_eq!(told.len(), 2);
    for connection in told {
        assert!(connection.sends_max <= 128, "{connection:?}");
        assert!(connection.inline_bytes_max <= INLINE_BYTES_USUAL, "{connection:?}");
    }
}

#[test]
fn view_reports_its_cost() {
    let limits = Limits::default();
    let (network, site) = site(Profile::strict(), &limits).expect("a device");
    let before = network.objects();
    let members: Vec<NodeId> = (0..64).map(NodeId).collect();
    let options = ViewOptions {
        view: VIEW,
        own: A,
        members: &members,
        row_bytes: &[4096; 64],
        relayed: &[],
        regions: &[],
        blocks: true,
    };
    let fabric = site.view(&options).expect("memory");
    let cost = fabric.cost();
    println!("{cost}");
    assert_eq!(cost.queue_pairs, 2 * 63);
    // The objects are queue pairs, registrations, and one completion queue.
    let made = usize::try_from(cost.queue_pairs + cost.registrations).expect("few") + 1;
    assert_eq!(network.objects() - before, made);
    assert!(cost.send_ring_bytes < 4 << 20, "{cost}");
    let report = site.report();
    assert_eq!(report.inline_bytes_max, usize::try_from(INLINE_BYTES_USUAL).expect("small"));
    assert!(report.send_ring_bytes * 63 * 2 > cost.send_ring_bytes, "blocks need smaller ones");
}

/// Short writes and guards arrive with every number of granted inline bytes.
#[test]
fn writes_arrive_with_any_granted_inline_size() {
    for inline in [InlineGrant::AsAsked, InlineGrant::RoundedUp, InlineGrant::Less] {
        for most in [0, 28, 64, 512] {
            let limits = tramontane_verbs::devices::DeviceLimits {
                inline_bytes_max: most,
                ..Profile::strict().limits
            };
            let profile = Profile { inline, limits, ..Profile::strict() };
            let profiles = [profile.clone(), profile];
            let mut two = Two::new(&PairShape { profiles, ..PairShape::default() });
            two.admit();
            two.run_for(SECOND_NS);
            assert_eq!(two.ready(), [true, true], "{inline:?} of {most}");
            two.fabrics[0].rows().row().apply(64, &[9; 64]).expect("in the row");
            let area = tramontane_core::fabric::Area {
                region: tramontane_core::fabric::Region::ROW,
                offset: 64,
            };
            let write = tramontane_core::fabric::Write {
                source: area,
                target: area,
                length: 64,
                kind: Kind::Guard,
            };
            two.fabrics[0].post(VIEW, B, &[write], None).expect("room");
            two.run_for(SECOND_NS);
            let mut bytes = [0; 64];
            two.fabrics[1].rows().rows()[A.index()].read(64, &mut bytes).expect("in the row");
            assert_eq!(bytes, [9; 64], "{inline:?} of {most}");
        }
    }
}

/// Allows locking exactly the memory for one more step at a time: the error names the limit at
/// every step.
#[test]
fn memory_lock_error_names_limit_at_every_step() {
    let mut actions = BTreeSet::new();
    let mut locked = 0;
    loop {
        let profile = Profile { locked_bytes_max: Some(locked), ..Profile::strict() };
        let made = site(profile, &Limits::default()).and_then(|(_, site)| alone(&site, A, true));
        let Err(error) = made else { break };
        let JoinError::LockedMemory { action, .. } = &error else { panic!("{locked} B: {error}") };
        actions.insert(*action);
        let text = error.to_string();
        assert!(text.contains("may lock") && text.contains("ulimit -l"), "{text}");
        locked += 1024;
    }
    let all = ["create a completion queue", "create a queue pair", "register memory"];
    assert_eq!(actions.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn unlockable_block_memory_names_the_limit() {
    let profile = Profile { locked_bytes_max: Some(1 << 20), ..Profile::strict() };
    let (_network, site) = site(profile, &Limits::default()).expect("a device");
    let error = site.block_store().memory(2 << 20, BlockUse::Both).expect_err("too much");
    assert!(matches!(error, NoBlockMemory::LockedMemory { .. }), "{error}");
}

/// The machine may have huge pages or not.
#[test]
fn members_connect_with_or_without_huge_pages() {
    let limits = Limits { huge_pages: true, ..Limits::default() };
    let (_network, site) = site(Profile::strict(), &limits).expect("a device");
    let members = [NodeId(10), NodeId(11)];
    let options = ViewOptions {
        view: VIEW,
        own: A,
        members: &members,
        row_bytes: &[3 << 20; 2],
        relayed: &[],
        regions: &[],
        blocks: false,
    };
    let fabric = site.view(&options).expect("memory");
    assert_eq!(fabric.rows().rows()[B.index()].bytes(), 3 << 20);
    fabric.rows().row().apply((3 << 20) - 1, &[1]).expect("in the row");
    site.block_store().memory(5 << 20, BlockUse::Both).expect("memory");
}

fn view_of(site: &Site, own: Rank, view: u64) -> tramontane_verbs::Verbs {
    let options = ViewOptions {
        view: ViewId(view),
        own,
        members: &super::MEMBERS,
        row_bytes: &[64; 2],
        relayed: &[],
        regions: &[],
        blocks: false,
    };
    site.view(&options).expect("memory")
}

#[test]
fn views_spread_over_completion_vectors_by_default() {
    for (given, wanted) in [(None, [3, 0, 1]), (Some(2), [2, 2, 2])] {
        let network = Network::new(1, Clock::Virtual);
        let device = network.add_device(Profile::strict());
        let limits = Limits { completion_vector: given, ..Limits::default() };
        let site = Site::open(&device.wanted(), &limits, None).expect("a device");
        let _views = [1, 2, 3].map(|view| view_of(&site, A, view));
        assert_eq!(network.completion_vectors(&device), wanted);
    }
}

#[test]
fn missing_completion_vector_is_refused() {
    let limits = Limits { completion_vector: Some(4), ..Limits::default() };
    let error = site(Profile::strict(), &limits).expect_err("no vector");
    assert!(matches!(error, JoinError::NoSuchVector { wanted: 4, vectors: 4, .. }), "{error}");
    assert!(error.to_string().contains("no completion vector"), "{error}");
}
