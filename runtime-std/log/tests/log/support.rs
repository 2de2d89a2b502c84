//! Helpers shared by the tests.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};
use tramontane_core::ids::{NodeId, Place, ViewId};
use tramontane_log::power_loss::{Faults, PowerLossFolder};
use tramontane_log::{Batch, FileLayer, Identity, Log, Options, Record, Recovery, Sequence};

/// Random numbers determined by a seed.
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a number below a bound, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    pub fn is_one_of(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

pub fn identity() -> Identity {
    Identity { group: "g".into(), subgroup: "s".into() }
}

/// Options for small segments, so that a short run uses many of them.
pub const SMALL: Options = Options { segment_bytes: 5 * 4096, spares_max: 2, noted: None };

pub fn open<L: FileLayer>(layer: L) -> (Log<L>, Recovery) {
    Log::open(layer, &identity(), SMALL).expect("it opens")
}

/// Returns the message for a sequence, which differs from every other message.
pub fn message(sequence: u64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (sequence as usize * 31 + at * 7 + at / 256) as u8).collect()
}

/// Returns an ordinary record.
pub fn record(sequence: u64, bytes: &[u8]) -> Record<'_> {
    Record {
        sequence: Sequence(sequence),
        view: ViewId(1 + sequence / 10),
        place: Place(3 * sequence),
        sender: NodeId((sequence % 5) as u32),
        is_large: sequence.is_multiple_of(3),
        bytes,
    }
}

/// Commits one batch of `count` records with messages of `bytes` bytes.
pub fn commit<L: FileLayer>(log: &mut Log<L>, count: u64, bytes: usize) {
    let mut batch = Batch::new();
    for sequence in log.end().0..log.end().0 + count {
        batch.push(&record(sequence, &message(sequence, bytes))).expect("in order");
    }
    log.commit(&mut batch).expect("it is written");
}

/// Reads the whole log and compares it with the records written by [`commit`]. Returns the damaged
/// sequences.
pub fn check<L: FileLayer>(log: &Log<L>, bytes: usize) -> Vec<u64> {
    let mut damaged = Vec::new();
    let mut records = log.records(log.first()).expect("in range");
    while records.position() < log.end() {
        let sequence = records.position().0;
        match records.read_next().expect("not the end") {
            Ok(read) => assert_eq!(read, record(sequence, &message(sequence, bytes))),
            Err(_) => damaged.push(sequence),
        }
    }
    assert!(records.read_next().is_none());
    damaged
}

pub fn folder() -> PowerLossFolder {
    PowerLossFolder::new(Faults::default())
}
