//! Sections 1 to 4: the introduction, the protocol, its analysis.

use tramontane_core::ids::{Block, Rank, Step};
use tramontane_core::rdmc::{Algorithm, Schedule, Shape};

use super::super::case::{Figure, Machine, Sending, Transfer, Variant, Way, Who};
use super::super::claim::{Claim, Seen, Source, Stated, listed};
use super::super::runs::{Missing, Runs};
use super::super::spindle;
use super::{LARGE, MEGABYTE, each, fractus, latency, of};
use crate::error::BenchError;

const OTHERS: &str = "measured by others, on other systems";

/// The paper's example: 64 members, of whom two have a slow link.
const ANALYSED: Transfer = Transfer {
    ports_alone: true,
    ..Transfer::new(Machine::Fractus, Way::Pipeline, 64, 1024 * MEGABYTE)
};

const HALF_SPEED: u64 = 200;

pub(super) const CLAIMS: &[Claim] = &[
    Claim::not_modelled(
        "rdmc-hadoop",
        "1",
        "represents 33% of total run time",
        Stated::Number(33.0),
        "%",
        OTHERS,
    ),
    Claim::not_modelled(
        "rdmc-borg",
        "1",
        "a median task startup latency of around 25 seconds (about 80% devoted to package \
         installation)",
        Stated::Number(25.0),
        "s",
        OTHERS,
    ),
    Claim::not_modelled(
        "rdmc-borg-tasks",
        "1",
        "upwards of 10,000 tasks starting per minute",
        Stated::AtLeast(10_000.0),
        "tasks/min",
        OTHERS,
    ),
    Claim::input(
        "rdmc-poll-for",
        "4.2",
        "polls for 50 ms after each completion event",
        50.0,
        "ms",
        Source::Parameter(Machine::Fractus, |profile| profile.poll_for_ns as f64 / 1e6),
    ),
    Claim::not_modelled(
        "rdmc-direction-hot-spot",
        "4.3",
        "100Gbps NIC can potentially send and receive 100Gbps concurrently",
        Stated::Number(100.0),
        "Gbit/s",
        "a description of cards in general",
    ),
    Claim::direction(
        "rdmc-chain-waits",
        "4.3",
        "the further they are down the chain, the longer they sit idle",
        |runs| {
            let skews = each(&[4, 8, 16], |nodes| {
                of(runs, fractus(Way::Chain, nodes, LARGE), Figure::SkewUs)
            })?;
            Ok(Seen::rises(&skews))
        },
    )
    .note("from the first completion to the last, in us"),
    Claim::number(
        "rdmc-steps",
        "4.4",
        "the number of steps to complete the send is l + k - 1",
        259.0,
        "steps",
        |_| Ok(schedule(16, 256)?.steps() as f64),
    )
    .note("16 members and 256 blocks; from our schedule, no run"),
    Claim::direction(
        "rdmc-two-steps",
        "4.3",
        "if the number of nodes isn't a power of 2, the final receipt spreads over two",
        |runs| {
            let port_us = latency(runs, fractus(Way::Sequential, 2, MEGABYTE))?;
            let skews = each(&[8, 16, 11, 13], |nodes| {
                let skew = of(runs, fractus(Way::Pipeline, nodes, LARGE), Figure::SkewUs)?;
                Ok(skew / port_us)
            })?;
            let holds = skews.iter().all(|(nodes, skew)| {
                let is_power = (*nodes as usize).is_power_of_two();
                *skew <= if is_power { 1.0 } else { 2.0 }
            });
            Ok(Seen { holds, words: listed(&skews) })
        },
    )
    .note("from the first completion to the last, in times of a block"),
    Claim::direction(
        "rdmc-delay",
        "4.5.1",
        "A delay in sending a block leads to a maximum delay of [the same]",
        |runs| {
            let case = Transfer { bytes: LARGE, ..ANALYSED };
            let block = latency(runs, Transfer { nodes: 2, bytes: MEGABYTE, ..ANALYSED })?;
            let alone = latency(runs, case)?;
            let costs = each(&[1, 4, 16], |blocks| {
                let paused = Transfer { pause_blocks: blocks as u64, ..case };
                Ok((latency(runs, paused)? - alone) / block / blocks as f64)
            })?;
            Ok(Seen { holds: costs.iter().all(|(_, cost)| *cost <= 1.05), words: listed(&costs) })
        },
    )
    .note("one of 64 members stands still for 1, 4 and 16 blocks: the cost by the pause"),
    Claim::number(
        "rdmc-slow-link",
        "4.5.2",
        "If T' = T/2, n = 64, this fraction is 85.6%",
        85.6,
        "%",
        |runs| {
            let slow = Transfer { slow_percent: HALF_SPEED, ..ANALYSED };
            Ok(100.0 * latency(runs, ANALYSED)? / latency(runs, slow)?)
        },
    )
    .note("1024 blocks, ports alone; the formula is l T' / (T + (l - 1) T')"),
    Claim::number(
        "rdmc-slow-link-chain",
        "4.5.2",
        "the chain replication scheme where ... the bandwidth is limited by the slowest link",
        50.0,
        "%",
        |runs| {
            let chain = Transfer { algorithm: Way::Chain, ..ANALYSED };
            let slow = Transfer { slow_percent: HALF_SPEED, ..chain };
            Ok(100.0 * latency(runs, chain)? / latency(runs, slow)?)
        },
    ),
    Claim::number("rdmc-slack", "4.5.3", "average slack is ~ 2", 2.0, "steps", |_| slack(64, 40))
        .note("64 members; by the formula 2 (1 - 5 / 62) = 1.84; from our schedule, no run"),
    Claim::direction(
        "rdmc-scale-drops-little",
        "4.5",
        "Performance does drop as a function of scale ... but to a limited degree",
        |runs| {
            let case = |nodes| Transfer::new(Machine::Sierra, Way::Pipeline, nodes, LARGE);
            let least = latency(runs, case(4))?;
            let times =
                each(&[4, 16, 64, 256, 512], |nodes| Ok(latency(runs, case(nodes))? / least))?;
            let last = times.last().map_or(0.0, |(_, time)| *time);
            Ok(Seen { holds: last > 1.0 && last < 2.0, words: listed(&times) })
        },
    )
    .note("times what it takes to 4 members: more, and less than twice"),
    Claim::number(
        "rdmc-small-messages",
        "4.6",
        "gains as much as a 5x speedup compared to RDMC",
        5.0,
        "times",
        |runs| {
            let mut most: f64 = 0.0;
            for nodes in [4, 8, 16] {
                for bytes in [128, 1024, 10_240] {
                    most = most.max(small_gain(runs, nodes, bytes)?);
                }
            }
            Ok(most)
        },
    )
    .note("Derecho's small messages before Spindle, one sender, 4 to 16 members, up to 10 KB"),
    Claim::direction(
        "rdmc-small-messages-limit",
        "4.6",
        "For larger groups or larger messages ... the binomial pipeline dominates",
        |runs| {
            let gains = each(&[102_400, MEGABYTE], |bytes| small_gain(runs, 16, bytes))?;
            Ok(Seen { holds: gains.iter().all(|(_, gain)| *gain < 1.0), words: listed(&gains) })
        },
    )
    .note("16 members, 100 KB and 1 MB: the small-message protocol by the pipeline"),
    Claim::not_modelled(
        "rdmc-malloc",
        "4.6",
        "better performance can be achieved by performing memory allocation before",
        Stated::Direction,
        "",
        "allocation is part of what begins a message in the model, and not apart",
    ),
];

fn schedule(members: u16, blocks: u32) -> Result<Schedule, Missing> {
    let shape = Shape::new(members, blocks);
    let schedule = shape.and_then(|shape| Schedule::new(Algorithm::Pipeline, shape).ok());
    schedule.ok_or_else(|| BenchError::Setup("there is no such schedule".into()).into())
}

/// How many steps ago a block came that is sent in a steady step, on average, the root's apart.
fn slack(members: u16, blocks: u32) -> Result<f64, Missing> {
    let schedule = schedule(members, blocks)?;
    let (steady, end) = (u64::from(members.ilog2()), u64::from(blocks));
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

/// The rate of small messages by that of a pipeline with a message in one block.
fn small_gain(runs: &Runs<'_>, nodes: u16, bytes: usize) -> Result<f64, Missing> {
    let bytes_in_slot = u32::try_from(bytes).unwrap_or(u32::MAX);
    let usual = Sending::new(Variant::Baseline, nodes).by(Who::One);
    let small = spindle::rate(runs, Sending { bytes: bytes_in_slot, ..usual })? * 1e9;
    let block_bytes = bytes.min(MEGABYTE);
    let messages = 100;
    let case = fractus(Way::Pipeline, nodes.into(), bytes);
    let large = of(runs, Transfer { block_bytes, messages, ..case }, Figure::BytesPerSecond)?;
    Ok(small / large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_that_of_the_papers_formula() {
        for members in [8_u16, 64] {
            let l = f64::from(members.ilog2());
            let formula = 2.0 * (1.0 - (l - 1.0) / (f64::from(members) - 2.0));
            let slack = slack(members, 40).expect("a schedule");
            assert!((slack - formula).abs() < 1e-9, "{members}: {slack} {formula}");
        }
    }
}
