//! The two partitions of `core-nostd/examples/partition`, stepped in turn. With views, each
//! partition restarts at intervals with empty memory.

use core::hint::black_box;

use crate::entries;
use tramontane_core::ids::Time;
use tramontane_partition::group::WhichPartition;
use tramontane_partition::shim::stepped::Wires;
use tramontane_partition::{Partition, PartitionStorage};

/// Total number of messages from both partitions.
const MESSAGES: u64 = 1000;

/// Number of steps of both partitions after which a run must be over: it takes about 1,000, and a
/// restart takes some more.
const STEPS_MAX: u64 = 20_000;

/// Number of steps from one restart to the next. The restarts hit all phases of a run.
const RESTART_STEPS: u64 = 97;

/// Number of restarts in a run.
const RESTARTS: u64 = if cfg!(feature = "views") { 20 } else { 0 };

/// Memory of each partition. A new incarnation receives the memory of the previous one, which no
/// longer exists.
static STORAGE: [PartitionStorage; 2] = [const { PartitionStorage::new() }; 2];

/// The results of a run.
pub struct Report {
    /// Number of messages that both partitions delivered.
    pub messages: u64,
    /// Number of incarnations that ended in the middle of the run.
    pub restarts: u64,
    /// Number of times that a queue was full.
    pub full: u64,
}

/// Runs the partitions. Returns `None` if they do not agree.
pub fn run() -> Option<Report> {
    let [storage_a, storage_b] = black_box(&STORAGE);
    let (rows_a, rows_b) = (storage_a.rows(), storage_b.rows());
    let begin = |own: WhichPartition, incarnation: u32| {
        let (storage, rows) = match own {
            WhichPartition::A => (storage_a, &rows_a),
            WhichPartition::B => (storage_b, &rows_b),
        };
        Partition::new(own, incarnation, storage, rows, black_box(MESSAGES / 2))
    };
    let mut lives = [Some(begin(WhichPartition::A, 1)), Some(begin(WhichPartition::B, 1))];
    let mut wires = Wires::new();
    let (mut restarts, mut incarnation) = (0_u64, 1_u32);
    for step in 0..STEPS_MAX {
        let own = if step % 2 == 0 { WhichPartition::A } else { WhichPartition::B };
        let [a, b] = &mut lives;
        let life = match own {
            WhichPartition::A => a,
            WhichPartition::B => b,
        };
        if restarts < RESTARTS && step % RESTART_STEPS == RESTART_STEPS.wrapping_sub(1) {
            restarts = restarts.wrapping_add(1);
            incarnation = incarnation.wrapping_add(1);
            // The memory is free only once the previous incarnation has been dropped.
            *life = None;
            *life = Some(begin(own, incarnation));
        }
        let mut ports = wires.end(own, |report| {
            black_box(report.encode());
        });
        let (life, now) = (life.as_mut()?, Time(step.wrapping_mul(100_000)));
        black_box(entries::partition_step(|| life.step(now, &mut ports)));
        let [Some(a), Some(b)] = &lives else { return None };
        let (a, b) = (a.orders(), b.orders());
        if a.count() == MESSAGES && a == b && restarts == RESTARTS {
            let full = wires.full();
            return (full > 0).then_some(Report { messages: MESSAGES, restarts, full });
        }
    }
    None
}
