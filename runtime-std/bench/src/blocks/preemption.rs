//! Random delays (4.5, 5.3): the operating system takes every member's processor now and then. The
//! card goes on with what was posted; what is to be posted waits.

use tramontane_core::rdmc::Algorithm;
use tramontane_fixtures::block_multicast::Setup;

use super::bed::Bed;
use super::command::Arguments;
use super::experiment::Experiment;
use super::report::Row;
use super::simulated::simulated;
use crate::error::BenchError;
use crate::spread::Spread;

/// The machine on which it is tried.
pub(super) const MACHINE: &str = "fractus";

/// How often, and for how long, in ns: for one in a thousand, one in a hundred and one in ten of
/// the time, the last of them for 20 us as well as for 100.
const DELAYS: [(u64, u64); 4] =
    [(100_000_000, 100_000), (10_000_000, 100_000), (1_000_000, 100_000), (200_000, 20_000)];

/// How many times as long as undisturbed a message takes, where each member's processor is away so
/// often (the mean from one end to the next beginning) and so long, in ns.
pub(crate) fn slowdown(
    bed: &Bed,
    setup: &Setup,
    (every_ns, lasting_ns): (u64, u64),
) -> Result<f64, BenchError> {
    let latency = |every_ns, lasting_ns| -> Result<u64, BenchError> {
        let mut setup = Setup { seed: bed.seed, ..bed.under(setup.clone()) };
        setup.profile.preempt_every_ns = every_ns;
        setup.profile.preempt_ns = lasting_ns;
        Ok(simulated(&setup)?.groups[0].latency_ns(0).unwrap_or(0))
    };
    Ok(latency(every_ns, lasting_ns)? as f64 / latency(0, 0)?.max(1) as f64)
}

/// Several groups and delays.
pub(super) fn preemption(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let mut rows = Vec::new();
    for nodes in arguments.members(&[4, 16, 64]) {
        let setup =
            bed.single(nodes, Algorithm::Pipeline, arguments.bytes(), arguments.block_bytes());
        let calm_ms = {
            let mut calm = setup.clone();
            calm.profile.preempt_every_ns = 0;
            simulated(&calm)?.groups[0].latency_ns(0).unwrap_or(0) as f64 / 1e6
        };
        for delay in DELAYS {
            let slowdowns: Vec<f64> = bed
                .of_seeds(arguments)
                .iter()
                .map(|bed| slowdown(bed, &setup, delay))
                .collect::<Result<_, _>>()?;
            let Spread { median, min, max } = Spread::of(&slowdowns);
            let (every_us, lasting_us) = (delay.0 / 1000, delay.1 / 1000);
            let row = Row::of_time(Experiment::Preemption, &setup, calm_ms * median);
            let beside = format!(
                "away for {lasting_us} us after each {every_us} us: {median:.3} of the time \
                 ({min:.3}..{max:.3} with {} seeds)",
                slowdowns.len()
            );
            rows.push(row.beside(
                beside,
                "performance does drop as a function of scale, but to a limited degree (4.5)",
            ));
        }
    }
    Ok(rows)
}
