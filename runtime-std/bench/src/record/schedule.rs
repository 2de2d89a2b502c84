//! Properties of the pipeline's schedule, without a run (RDMC 4.4 and 4.5.3).

use tramontane_core::ids::{Block, Rank, Step};
use tramontane_core::rdmc::{Algorithm, Schedule, Shape};

use crate::error::BenchError;

fn pipeline(members: f64, blocks: f64) -> Result<Schedule, BenchError> {
    let shape = Shape::new(members as u16, blocks as u32);
    let schedule = shape.and_then(|shape| Schedule::new(Algorithm::Pipeline, shape).ok());
    schedule.ok_or_else(|| {
        BenchError::Setup("there is no schedule for these members and blocks".into())
    })
}

/// Returns the number of steps of a message.
pub(super) fn steps(members: f64, blocks: f64) -> Result<f64, BenchError> {
    Ok(pipeline(members, blocks)?.steps() as f64)
}

/// Returns the average number of steps between the arrival of a block and its sending in a steady
/// step, excluding the root's blocks.
pub(super) fn slack(members: f64, blocks: f64) -> Result<f64, BenchError> {
    let schedule = pipeline(members, blocks)?;
    let members = members as u16;
    let (steady, end) = (u64::from(members.ilog2()), blocks as u64);
    let (mut total, mut sends) = (0, 0_u64);
    for rank in (1..members).map(Rank) {
        let came = |block: Block| {
            let is_it =
                |step| schedule.received(rank, Step(step)).is_some_and(|hop| hop.block == block);
            (0..schedule.steps()).find(|step| is_it(*step))
        };
        for step in steady..end {
            for hop in schedule.sent(rank, Step(step)).into_iter().flatten() {
                total += came(hop.block).map_or(0, |came| step - came);
                sends += 1;
            }
        }
    }
    Ok(total as f64 / sends.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_matches_the_papers_formula() {
        for members in [8_u16, 64] {
            let l = f64::from(members.ilog2());
            let members = f64::from(members);
            let formula = 2.0 * (1.0 - (l - 1.0) / (members - 2.0));
            let slack = slack(members, 40.0).expect("a schedule");
            assert!((slack - formula).abs() < 1e-9, "{members}: {slack} {formula}");
        }
    }
}
