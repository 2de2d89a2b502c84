//! Block multicast: `rdmc`.

use core::hint::black_box;
use core::num::NonZeroU16;

use super::debug;
use tramontane_core::ids::*;
use tramontane_core::rdmc::*;

pub fn call() {
    let Some(shape) = Shape::new(black_box(11), black_box(7)) else { return };
    let racks = black_box(NonZeroU16::MIN);
    let algorithms = [
        Algorithm::Sequential,
        Algorithm::Interleaved,
        Algorithm::Chain,
        Algorithm::Tree,
        Algorithm::Pipeline,
        Algorithm::Hybrid { racks },
    ];
    for algorithm in black_box(algorithms) {
        let schedule = Schedule::new(algorithm, black_box(shape));
        debug(schedule);
        let Ok(schedule) = schedule else { continue };
        black_box((schedule.algorithm(), schedule.shape(), schedule.steps()));
        let (rank, step) = (black_box(Rank(9)), black_box(Step(4)));
        debug((schedule.sent(rank, step), schedule.received(rank, step)));
        debug((schedule.part(rank), schedule.first_received(rank)));
    }
}
