//! A peer that has the shared key and tells what is not so: its card is judged before anything is written, and
//! what no card shows is found by the first write.

use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_core::ids::NodeId;
use tramontane_mesh::{Address, Mesh, MeshOptions, SharedKey};
use tramontane_verbs::devices::{Devices, Wanted};
use tramontane_verbs::timing::LossTimes;
use tramontane_verbs::{JoinError, JoinOptions, Limits, join};

use super::group::VIEW;
use super::{A, B};

const ROW_BYTES: u64 = 16_384;
const LOSS_TIME: Duration = Duration::from_millis(300);

/// What an impostor says of its queue pair and of the memory that it lends.
struct Tale {
    number: u32,
    address: u64,
    bytes: u64,
    mtu_bytes: u32,
}

/// Believable, but for the queue pair, which does not exist.
const TALE: Tale =
    Tale { number: 0x00ff_fff0, address: 1 << 40, bytes: ROW_BYTES, mtu_bytes: 1024 };

impl Tale {
    /// As it crosses: this device's address, and one connection.
    fn card(&self) -> Vec<u8> {
        let devices = Devices::discover().expect("a list");
        let choice = devices.choose(&Wanted::default()).expect("the lab has a device");
        let mut card = choice.gid.address.octets().to_vec();
        card.extend_from_slice(&choice.lid.to_le_bytes());
        card.extend_from_slice(&self.mtu_bytes.to_le_bytes());
        card.extend_from_slice(&[4, 0]);
        card.extend_from_slice(&self.number.to_le_bytes());
        card.extend_from_slice(&7_u32.to_le_bytes());
        card.extend_from_slice(&self.address.to_le_bytes());
        card.extend_from_slice(&1_u32.to_le_bytes());
        card.extend_from_slice(&self.bytes.to_le_bytes());
        card
    }
}

/// What a member makes of an impostor with this card.
fn judged(card: Vec<u8>) -> JoinError {
    let listeners = [A, B].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let addresses = [0, 1].map(|index: usize| -> Address {
        listeners[index].local_addr().expect("an address").into()
    });
    let [own, other] = listeners;
    let never = AtomicBool::new(false);
    let members = [NodeId(10), NodeId(11)];
    let meeting = |own, listener: TcpListener| MeshOptions {
        own,
        members: &members,
        addresses: &addresses,
        listener: Some(listener.try_into().expect("it listens")),
        incarnation: None,
        view: VIEW,
        digest: 99,
        key: Some(SharedKey::from_bytes([7; 32])),
        allow_clear: false,
        time_limit: Duration::from_secs(20),
        cancel: &never,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut mesh = Mesh::join(meeting(B, other)).expect("it has the key");
            mesh.exchange(|_| card.clone()).expect("the other is there");
            // It stands at each barrier that the other comes to, until that one ends.
            while mesh.barrier().is_ok() {}
        });
        let bytes = usize::try_from(ROW_BYTES).expect("small");
        let joined = join(JoinOptions {
            mesh: meeting(A, own),
            device: Wanted::default(),
            limits: Limits { loss_time: LOSS_TIME, ..Limits::default() },
            row_bytes: &[bytes; 2],
            regions: &[],
            blocks: false,
        });
        let error = joined.expect_err("it must not join");
        println!("{error}");
        error
    })
}

#[test]
fn memory_of_another_size_and_cards_that_make_no_sense_are_refused() {
    let shorter = Tale { bytes: ROW_BYTES - 1, ..TALE }.card();
    let longer = Tale { bytes: u64::MAX >> 1, ..TALE }.card();
    let wraps = Tale { address: u64::MAX, ..TALE }.card();
    let wide = Tale { number: u32::MAX, ..TALE }.card();
    let packets = Tale { mtu_bytes: 1000, ..TALE }.card();
    let cut = TALE.card()[..40].to_vec();
    for card in [shorter, longer, wraps, wide, packets, cut, Vec::new()] {
        assert!(matches!(judged(card), JoinError::WrongMemory { peer: NodeId(11) }));
    }
}

#[test]
fn a_queue_pair_that_does_not_exist_is_found_by_the_first_write() {
    let started = Instant::now();
    let error = judged(TALE.card());
    assert!(matches!(error, JoinError::NoAnswer { peer: NodeId(11), .. }));
    // Devices may take up to four times as long as they were told to.
    assert!(
        started.elapsed() < LossTimes::at_least(LOSS_TIME).total() * 5 + Duration::from_secs(5)
    );
}
