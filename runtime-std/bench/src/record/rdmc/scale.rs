//! 5.2.2: many copies, a storage layer's writes, overlapping groups.

use super::super::case::{Case, Figure, Machine, Transfer, Way};
use super::super::claim::{Claim, Seen, Source, Stated, short};
use super::super::runs::{Missing, Runs};
use super::{LARGE, MEGABYTE, each, fractus, latency, of};

/// The large message on Sierra.
const fn sierra(algorithm: Way, nodes: usize) -> Transfer {
    Transfer::new(Machine::Sierra, algorithm, nodes, LARGE)
}

pub(super) const CLAIMS: &[Claim] = &[
    Claim::direction(
        "rdmc-sequential-linear",
        "5.2.2, Fig. 8",
        "sequential send scales linearly in the number of receivers",
        |runs| {
            let times = each(&[4, 16, 64], |nodes| {
                Ok(latency(runs, sierra(Way::Sequential, nodes))? / (nodes - 1) as f64 / 1e3)
            })?;
            Ok(Seen::stays(&times, 0.1))
        },
    )
    .note("ms a receiver: within a tenth"),
    Claim::direction(
        "rdmc-pipeline-sublinear",
        "5.2.2, Fig. 8",
        "binomial pipeline scales sub-linearly",
        |runs| {
            let times = each(&[4, 16, 64, 256], |nodes| {
                Ok(latency(runs, sierra(Way::Pipeline, nodes))? / (nodes - 1) as f64 / 1e3)
            })?;
            Ok(Seen::falls(&times))
        },
    )
    .note("ms a receiver"),
    Claim::stated(
        "rdmc-orders-of-magnitude",
        "5.2.2",
        "makes an orders of magnitude difference when creating large numbers of copies",
        Stated::AtLeast(100.0),
        "times",
        |runs| {
            let one_by_one = latency(runs, sierra(Way::Sequential, 64))? * 511.0 / 63.0;
            Ok(one_by_one / latency(runs, sierra(Way::Pipeline, 512))?)
        },
    )
    .note(
        "511 copies, one by one extrapolated from 63 as the paper does; orders of magnitude are \
         read as at least two",
    ),
    Claim::number(
        "rdmc-255-copies",
        "5.2.2",
        "whether making 127, 255 ... copies, the total time required is almost the same",
        1.0,
        "times",
        |runs| {
            Ok(latency(runs, sierra(Way::Pipeline, 256))?
                / latency(runs, sierra(Way::Pipeline, 128))?)
        },
    ),
    Claim::number(
        "rdmc-511-copies",
        "5.2.2",
        "127 ... or 511 copies, the total time required is almost the same",
        1.0,
        "times",
        |runs| {
            Ok(latency(runs, sierra(Way::Pipeline, 512))?
                / latency(runs, sierra(Way::Pipeline, 128))?)
        },
    ),
    Claim::direction(
        "rdmc-little-skew",
        "5.2.2",
        "binomial pipeline transfers also complete nearly simultaneously",
        |runs| {
            let skews = each(&[16, 128, 512], |nodes| {
                let case = sierra(Way::Pipeline, nodes);
                Ok(of(runs, case, Figure::SkewUs)? / latency(runs, case)?)
            })?;
            Ok(Seen {
                holds: skews.iter().all(|(_, skew)| *skew < 0.01),
                ..Seen::stays(&skews, 1.0)
            })
        },
    )
    .note("from the first completion to the last, by the latency: below a hundredth"),
    Claim::direction(
        "rdmc-sequential-skew",
        "5.2.2",
        "the linear degradation of sequential send is also associated with high skew",
        |runs| {
            let skews = each(&[4, 16, 64], |nodes| {
                let case = sierra(Way::Sequential, nodes);
                Ok(of(runs, case, Figure::SkewUs)? / latency(runs, case)?)
            })?;
            Ok(Seen::all_above(&skews, 0.5))
        },
    ),
    Claim::input(
        "rdmc-trace-writes",
        "5.2.2",
        "several million 3-node writes",
        3.0,
        "replicas",
        Source::Configuration,
    )
    .note("the trace is not public: sizes are drawn, log-normal, with the median and the mean"),
    Claim::input(
        "rdmc-trace-median",
        "5.2.2",
        "the median is 12MB",
        12.0,
        "MB",
        Source::Configuration,
    ),
    Claim::input("rdmc-trace-mean", "5.2.2", "the mean 29 MB", 29.0, "MB", Source::Configuration),
    Claim::input(
        "rdmc-trace-groups",
        "5.2.2",
        "the required 455 RDMC groups",
        455.0,
        "groups",
        Source::Configuration,
    )
    .note("15 x 14 x 13 / 6"),
    Claim::number(
        "rdmc-storage-tree",
        "5.2.2, Fig. 9",
        "binomial pipeline is almost twice as fast as binomial tree",
        2.0,
        "times",
        |runs| storage(runs, Way::Tree),
    ),
    Claim::number(
        "rdmc-storage-sequential",
        "5.2.2, Fig. 9",
        "and around three times as fast as sequential send",
        3.0,
        "times",
        |runs| storage(runs, Way::Sequential),
    ),
    Claim::number(
        "rdmc-storage-rate",
        "5.2.2",
        "Average throughput ... is around 93 Gb/s of data replicated",
        93.0,
        "Gbit/s",
        |runs| Ok(runs.figure(Case::Storage(Way::Pipeline), Figure::BytesPerSecond)? * 8e-9),
    ),
    Claim::number("rdmc-petabyte", "5.2.2", "about a petabyte per day", 1.0, "PB", |runs| {
        let rate = runs.figure(Case::Storage(Way::Pipeline), Figure::BytesPerSecond)?;
        Ok(rate * 86_400.0 / 1e15)
    }),
    Claim::number(
        "rdmc-overlap-fractus",
        "5.2.2, Fig. 10a",
        "our peak rate ... was quite close to the limits (100Gbps)",
        100.0,
        "Gbit/s",
        |runs| {
            let all = each(&[4, 8, 16], |nodes| overlap(runs, Machine::Fractus, nodes))?;
            Ok(all.iter().map(|(_, rate)| *rate).fold(0.0, f64::max))
        },
    )
    .note(
        "100 MB, all members send; the best of 4, 8 and 16 members. What a port carries: the \
         text's limit is the ports', and a member's own bytes pass none",
    ),
    Claim::number(
        "rdmc-overlap-apt",
        "5.2.2, Fig. 10b",
        "the bisection bandwidth approaches 16Gbps ... and our graphs do so as well",
        16.0,
        "Gbit/s",
        |runs| overlap(runs, Machine::Apt, 16),
    )
    .note(
        "100 MB, all of 16 members send; what a port carries. The batch system places the members \
         (5.1), so who shares a rack is drawn; four a rack is assumed",
    ),
    Claim::direction(
        "rdmc-overlap-no-interference",
        "5.2.2",
        "with no sign of interference between concurrent overlapping transfer",
        |runs| {
            let one = fractus(Way::Pipeline, 8, 100 * MEGABYTE);
            let rate = |groups| of(runs, Transfer { groups, ..one }, Figure::BytesPerSecond);
            let (alone, together) = (rate(1)?, rate(8)?);
            let words = format!(
                "{} GB/s with one sender, {} with 8",
                short(alone / 1e9),
                short(together / 1e9)
            );
            Ok(Seen { holds: together >= alone, words })
        },
    )
    .note("8 groups of the same 8 members deliver together no less than one"),
    Claim::not_modelled(
        "rdmc-extrapolated",
        "5.2.2",
        "we extrapolated the 512-node sequential send data point",
        Stated::Direction,
        "",
        "of the paper's own method",
    ),
];

/// The mean latency of a storage layer's writes by that of the pipeline.
fn storage(runs: &Runs<'_>, algorithm: Way) -> Result<f64, Missing> {
    let of = |algorithm| runs.figure(Case::Storage(algorithm), Figure::LatencyUs);
    Ok(of(algorithm)? / of(Way::Pipeline)?)
}

/// Gbit/s that each port carries for groups of the same members, all of whom send: a member's own
/// bytes pass no port.
fn overlap(runs: &Runs<'_>, machine: Machine, nodes: usize) -> Result<f64, Missing> {
    let case = Transfer::new(machine, Way::Pipeline, nodes, 100 * MEGABYTE);
    let rate = of(runs, Transfer { groups: nodes, ..case }, Figure::BytesPerSecond)? * 8e-9;
    Ok(rate * (nodes - 1) as f64 / nodes as f64)
}
