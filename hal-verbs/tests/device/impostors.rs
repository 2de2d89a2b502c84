//! A peer that has the shared key but lies. Its card is checked before anything is written, and the
//! first write detects a lie that no card reveals.

use std::time::{Duration, Instant};

use tramontane_core::fabric::Fabric as _;
use tramontane_core::ids::NodeId;
use tramontane_verbs::devices::DeviceKind;
use tramontane_verbs::timing::LossTimes;
use tramontane_verbs::{Limits, Site, ViewOptions};

use super::group::{VIEW, device};
use super::{A, B, wait_for};

const ROW_BYTES: u64 = 16_384;
const LOSS_TIME: Duration = Duration::from_millis(300);

/// An impostor's claims about its queue pair and the memory that it lends.
struct Tale {
    number: u32,
    address: u64,
    bytes: u64,
    mtu_bytes: u32,
}

/// Plausible claims, except for the queue pair, which does not exist.
const TALE: Tale =
    Tale { number: 0x00ff_fff0, address: 1 << 40, bytes: ROW_BYTES, mtu_bytes: 1024 };

impl Tale {
    /// Returns the encoded card, which contains this device's address and one connection.
    fn card(&self) -> Vec<u8> {
        let choice = device::devices().choose(&device::wanted()).expect("a device");
        let mut card = choice.gid.address.octets().to_vec();
        card.extend_from_slice(&choice.lid.to_le_bytes());
        card.extend_from_slice(&self.mtu_bytes.to_le_bytes());
        // Concurrent reads; Ethernet; and the partition that every port is in.
        card.extend_from_slice(&[4, 2, 0xff, 0xff]);
        card.extend_from_slice(&self.number.to_le_bytes());
        card.extend_from_slice(&7_u32.to_le_bytes());
        card.extend_from_slice(&self.address.to_le_bytes());
        card.extend_from_slice(&1_u32.to_le_bytes());
        card.extend_from_slice(&self.bytes.to_le_bytes());
        card
    }
}

/// Returns a lone member, which must report the loss of an impostor.
fn member() -> super::OpenMember {
    let bytes = usize::try_from(ROW_BYTES).expect("small");
    let limits = Limits { loss_time: LOSS_TIME, ..Limits::default() };
    let site = Site::open(&device::wanted(), &limits, None).expect("a device");
    let mut fabric = site
        .view(&ViewOptions {
            view: VIEW,
            own: A,
            members: &[NodeId(10), NodeId(11)],
            row_bytes: &[bytes; 2],
            relayed: &[],
            regions: &[],
            blocks: false,
        })
        .expect("memory");
    super::group::open(&mut fabric).expect("it opens");
    let rows = fabric.rows().clone();
    super::OpenMember { fabric, rows }
}

#[test]
fn implausible_cards_are_refused() {
    let shorter = Tale { bytes: ROW_BYTES - 1, ..TALE }.card();
    let longer = Tale { bytes: u64::MAX >> 1, ..TALE }.card();
    let wraps = Tale { address: u64::MAX, ..TALE }.card();
    let wide = Tale { number: u32::MAX, ..TALE }.card();
    let packets = Tale { mtu_bytes: 1000, ..TALE }.card();
    let cut = TALE.card()[..40].to_vec();
    for card in [shorter, longer, wraps, wide, packets, cut, Vec::new()] {
        let mut member = member();
        assert!(!member.fabric.connect(B, &card), "{card:?}");
        assert!(member.fabric.loss_of(B).is_some() && !member.fabric.ready(VIEW, B));
    }
}

#[test]
fn first_write_detects_nonexistent_queue_pair() {
    let started = Instant::now();
    let mut member = member();
    assert!(member.fabric.connect(B, &TALE.card()), "nothing in it is impossible");
    member.fabric.admit(B);
    wait_for("the loss", Duration::from_secs(60), || {
        member.fabric.collect();
        member.fabric.loss_of(B).is_some()
    });
    assert!(!member.fabric.ready(VIEW, B), "nothing was ever posted to it");
    // Devices may take up to four times the requested time.
    assert!(
        started.elapsed()
            < LossTimes::at_least(LOSS_TIME, DeviceKind::SoftRoce, None).least() * 5
                + Duration::from_secs(5)
    );
}
