//! The first writes to a peer: small packets and full-sized ones.

use tramontane_core::fabric::{LossCause, ViewRows as _};
use tramontane_verbs::LossReason;
use tramontane_verbs::devices::Wanted;
use tramontane_verbs::fake::{Link, Placement, Profile};

use super::{A, B, PairShape, ROW_BYTES, SECOND_NS, Two};

/// Time limit for waiting for a silent peer.
const LONG_NS: u64 = 20 * SECOND_NS;

/// A switch with frames of 1500 bytes, between NICs that are configured for more.
const BLACK_HOLE: Link = Link { is_cut: false, loss_per_million: 0, delay_ns: 0, mtu_bytes: 1500 };

#[test]
fn peer_unreachable_with_full_packets_is_reported() {
    let mut two = Two::new(&PairShape::default());
    two.link(BLACK_HOLE);
    two.admit();
    let loss = two.run_until_lost(LONG_NS);
    assert_eq!(loss.cause, LossCause::Unreachable);
    assert_eq!(loss.reason, Some(LossReason::FullPackets { bytes: 4096 }));
    let text = loss.to_string();
    assert!(text.contains("small packets pass, but full ones of 4096 B do not"), "{text}");
    assert!(text.contains("RDMA MTU to 1024"), "{text}");
    assert!(two.network.counts().too_long >= 2, "it was tried more than once");
}

#[test]
fn smaller_packets_reach_the_same_peer() {
    let wanted = Wanted { mtu_bytes: Some(1024), ..Wanted::default() };
    // One of the two is enough, because both use the smaller size.
    for wanted in [[wanted.clone(), Wanted::default()], [Wanted::default(), wanted]] {
        let mut two = Two::new(&PairShape { wanted, ..PairShape::default() });
        two.link(BLACK_HOLE);
        two.admit();
        two.run_for(SECOND_NS);
        assert_eq!(two.ready(), [true, true]);
    }
}

#[test]
fn unreachable_peers_error_omits_packet_size() {
    let mut two = Two::new(&PairShape::default());
    two.link(Link { is_cut: true, ..Link::default() });
    two.admit();
    let loss = two.run_until_lost(LONG_NS);
    assert_eq!((loss.cause, loss.reason), (LossCause::Unreachable, None));
}

#[test]
fn occasional_packet_loss_loses_no_peer() {
    for seed in 0..20 {
        let mut two = Two::new(&PairShape { seed, ..PairShape::default() });
        two.link(Link { loss_per_million: 250_000, ..Link::default() });
        two.admit();
        two.run_for(LONG_NS);
        assert_eq!(two.ready(), [true, true], "seed {seed}");
    }
}

/// Probes carry no meaningful bytes, however late a device reads and in any order of placement.
#[test]
fn probes_leave_rows_untouched() {
    for seed in 0..10 {
        let late = Profile {
            late_read_ns: 100_000,
            placement: Placement::BytesReordered,
            completes_before_visible: true,
            ..Profile::strict()
        };
        let profiles = [late.clone(), late];
        let mut two = Two::new(&PairShape { seed, profiles, ..PairShape::default() });
        for fabric in &two.fabrics {
            fabric.rows().row().apply(0, &[7; ROW_BYTES]).expect("in the row");
        }
        two.admit();
        two.run_for(SECOND_NS);
        assert_eq!(two.ready(), [true, true]);
        for (fabric, own, peer) in [(&two.fabrics[0], A, B), (&two.fabrics[1], B, A)] {
            let (mut row, mut copy) = ([0; ROW_BYTES], [1; ROW_BYTES]);
            let rows = fabric.rows().rows();
            assert_eq!(
                (rows[own.index()].bytes(), rows[peer.index()].bytes()),
                (ROW_BYTES, ROW_BYTES)
            );
            rows[own.index()].read(0, &mut row).expect("in the row");
            rows[peer.index()].read(0, &mut copy).expect("in the row");
            assert_eq!((row, copy), ([7; ROW_BYTES], [0; ROW_BYTES]), "seed {seed}");
        }
    }
}

/// The bytes after a row are not part of it: so nothing may be posted from or to them.
#[test]
fn bytes_after_a_row_cannot_be_posted() {
    use tramontane_core::fabric::{Area, ErrorKind, Fabric as _, Kind, Region, Write};
    let mut two = Two::new(&PairShape::default());
    two.admit();
    two.run_for(SECOND_NS);
    let area = |offset| Area { region: Region::ROW, offset };
    let write = |source, target| Write {
        source: area(source),
        target: area(target),
        length: 8,
        kind: Kind::Content,
    };
    let behind = ROW_BYTES.next_multiple_of(64);
    for (source, target) in [(behind, 0), (0, behind), (ROW_BYTES - 4, 0), (0, ROW_BYTES - 4)] {
        let posted = two.fabrics[0].post(super::VIEW, B, &[write(source, target)], None);
        assert_eq!(posted, Err(ErrorKind::OutOfRange), "from {source} to {target}");
    }
}
