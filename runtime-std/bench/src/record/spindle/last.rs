//! IV-C to VI: threads, copies, the final figures, the DDS.

use super::super::case::{Figure, Sending, Variant, Who};
use super::super::claim::{Claim, Seen, Stated, listed};
use super::super::runs::{Missing, Runs};
use super::{SIZES, each, gain, mean, of, rate};

use Variant::{Baseline, Nulls, Spindle};

const STORAGE: &str = "its runs are on dds-levels.md, beside our own core's";

/// What of a run with copies is left of one without, at 16 members or the size given.
fn copied(runs: &Runs<'_>, nodes: u16, senders: Who, bytes: u32) -> Result<f64, Missing> {
    let case = Sending { bytes, ..Sending::new(Spindle, nodes).by(senders) };
    Ok(rate(runs, Sending { copies: true, ..case })? / rate(runs, case)?)
}

pub(super) const CLAIMS: &[Claim] = &[
    Claim::number(
        "spindle-threads-gain",
        "IV-C, Fig. 12",
        "improves performance considerably by about 1.4X average",
        1.4,
        "times",
        |runs| mean(|nodes| gain(runs, Spindle, Nulls, nodes, Who::All)),
    ),
    Claim::number(
        "spindle-utilization",
        "IV-C, VI",
        "The maximum network utilization of 77.6%",
        77.6,
        "%",
        |runs| Ok(best(runs)?.1 / 12.5 * 100.0),
    ),
    Claim::number(
        "spindle-utilization-size",
        "IV-C",
        "is reached for 4 members",
        4.0,
        "members",
        |runs| Ok(best(runs)?.0),
    ),
    Claim::direction(
        "spindle-stays",
        "IV-C",
        "which stays very stable all the way to 16 members",
        |runs| {
            let rates =
                each(&[4, 6, 8, 10, 12, 14, 16], |nodes| rate(runs, Sending::new(Spindle, nodes)))?;
            Ok(Seen::stays(&rates, 0.1))
        },
    )
    .note("GB/s; stable is read as within a tenth"),
    Claim::direction(
        "spindle-subgroups-scale",
        "IV-C, Fig. 13",
        "excellent scaling with the number of subgroups",
        |runs| {
            let rates =
                each(&[1, 2, 5, 10], |subgroups| rate(runs, all_active(Spindle, 16, subgroups)))?;
            Ok(Seen::stays(&rates, 0.25))
        },
    )
    .note("GB/s of all subgroups together, 16 members; within a quarter of the best"),
    Claim::direction(
        "spindle-subgroups-sizes",
        "IV-C, Fig. 13",
        "The performance remains relatively stable for all subgroup sizes",
        |runs| {
            let rates = each(&[4, 8, 12, 16], |nodes| rate(runs, all_active(Spindle, nodes, 5)))?;
            Ok(Seen::stays(&rates, 0.25))
        },
    )
    .note("5 subgroups, all active"),
    Claim::number(
        "spindle-copies-all",
        "IV-D, Fig. 15",
        "the bandwidth still remains consistently around 7.5GB/s",
        7.5,
        "GB/s",
        |runs| mean(|nodes| rate(runs, Sending { copies: true, ..Sending::new(Spindle, nodes) })),
    )
    .note("the average over sizes"),
    Claim::direction(
        "spindle-copies-decline",
        "IV-D",
        "there is a decline for all senders",
        |runs| {
            let left = each(&[4, 8, 16], |nodes| copied(runs, nodes, Who::All, 10_240))?;
            Ok(Seen { holds: left.iter().all(|(_, left)| *left < 0.95), words: listed(&left) })
        },
    ),
    Claim::direction(
        "spindle-copies-half",
        "IV-D",
        "Performance declines slightly for half senders",
        |runs| {
            let left = each(&[4, 8, 16], |nodes| copied(runs, nodes, Who::Half, 10_240))?;
            let mean = left.iter().map(|(_, left)| left).sum::<f64>() / left.len() as f64;
            Ok(Seen { holds: (0.75..0.99).contains(&mean), words: listed(&left) })
        },
    )
    .note("a slight decline is read as 1 to 25 % on average"),
    Claim::direction(
        "spindle-copies-one",
        "IV-D",
        "there is almost no decline for the single sender case",
        |runs| {
            let left = each(&[4, 8, 16], |nodes| copied(runs, nodes, Who::One, 10_240))?;
            Ok(Seen::all_above(&left, 0.9))
        },
    )
    .note("at most a tenth"),
    Claim::direction(
        "spindle-copies-1b",
        "IV-D",
        "the extreme case of 1B messages and observed no performance loss",
        |runs| {
            let left = each(&[4, 16], |nodes| copied(runs, nodes, Who::All, 1))?;
            Ok(Seen::all_above(&left, 0.95))
        },
    ),
    Claim::direction(
        "spindle-latency-improves",
        "IV-E, Fig. 5 and 17",
        "both show substantial improvement in latency",
        |runs| {
            let gains = each(&SIZES, |nodes| {
                let of = |variant| of(runs, Sending::new(variant, nodes), Figure::LatencyUs);
                Ok(of(Baseline)? / of(Spindle)?)
            })?;
            Ok(Seen::all_above(&gains, 2.0))
        },
    )
    .note("the baseline's latency by the final one's: at least twice at every size"),
    Claim::direction(
        "spindle-dds-improves",
        "IV-F, Fig. 18",
        "Spindle improves performance for all four cases relative to the baseline",
        |runs| {
            let gains =
                each(&[2, 4, 8, 16], |nodes| gain(runs, Spindle, Baseline, nodes, Who::One))?;
            Ok(Seen::all_above(&gains, 1.0))
        },
    )
    .note("one publisher, atomic multicast; unordered, stored and logged topics are not modelled"),
    Claim::not_modelled(
        "spindle-dds-unordered",
        "IV-F",
        "nearly the same performance for unordered and atomic multicast mode",
        Stated::Direction,
        "",
        "its runs are on dds-levels.md, beside our own core's",
    ),
    Claim::not_modelled(
        "spindle-dds-baseline",
        "IV-F",
        "the pre-Spindle baseline's performance decreases considerably with each additional QoS \
         level",
        Stated::Direction,
        "",
        STORAGE,
    ),
    Claim::not_modelled(
        "spindle-dds-storage",
        "IV-F",
        "improvements even carry over to the volatile and persistent storage modes",
        Stated::Direction,
        "",
        STORAGE,
    ),
    Claim::number(
        "spindle-final-gain",
        "VI",
        "a speedup of up to 20X over a baseline implementation",
        20.0,
        "times",
        |runs| {
            let gains = each(&SIZES, |nodes| gain(runs, Spindle, Baseline, nodes, Who::All))?;
            Ok(gains.iter().map(|(_, gain)| *gain).fold(0.0, f64::max))
        },
    ),
];

/// So many subgroups of all nodes, in each of which all send.
pub(super) const fn all_active(variant: Variant, nodes: u16, subgroups: u16) -> Sending {
    Sending { all_active: true, ..Sending::new(variant, nodes).idle(subgroups) }
}

/// Where everything together is best, and its rate there.
fn best(runs: &Runs<'_>) -> Result<(f64, f64), Missing> {
    let rates = each(&SIZES, |nodes| rate(runs, Sending::new(Spindle, nodes)))?;
    Ok(rates.into_iter().fold((0.0, 0.0), |best, at| if at.1 > best.1 { at } else { best }))
}
