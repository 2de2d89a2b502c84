//! Fig. 4 and 5.2.1: algorithms, where the time of a transfer goes, block sizes.

use super::super::case::{Figure, Machine, Transfer, Way};
use super::super::claim::{Claim, Seen, Source, Stated, listed, short};
use super::super::runs::{Missing, Runs};
use super::{LARGE, MEGABYTE, each, fractus, latency, of};
use crate::blocks::figures::Completions;

const MVAPICH: &str = "another system: what it does with a message is not in the paper";

/// Sizes of group of Fig. 4.
const SIZES: [usize; 5] = [3, 4, 8, 12, 16];

/// A small message of Fig. 4.
const SMALL: usize = 8 * MEGABYTE;

/// The transfer of Table 1.
const TABLE: Transfer = Transfer::new(Machine::Stampede, Way::Pipeline, 4, LARGE);

/// A line of Table 1.
macro_rules! line {
    ($id:literal, $words:literal, $value:literal, $figure:ident) => {
        Claim::number($id, "Table 1", $words, $value, "us", |runs| of(runs, TABLE, Figure::$figure))
    };
}

pub(super) const CLAIMS: &[Claim] = &[
    Claim::direction(
        "rdmc-sequential-poor",
        "5.2, Fig. 4",
        "both sequential send and binomial tree do poorly as the number of nodes grows \
         (sequential)",
        |runs| Ok(Seen::rises(&by_pipeline(runs, Way::Sequential, LARGE)?)),
    )
    .note("times the pipeline's latency"),
    Claim::direction("rdmc-tree-poor", "5.2, Fig. 4", "... (binomial tree)", |runs| {
        let times = by_pipeline(runs, Way::Tree, LARGE)?;
        let last = times.last().map_or(0.0, |(_, time)| *time);
        Ok(Seen { holds: last > 2.0, ..Seen::rises(&times) })
    })
    .note("times the pipeline's latency: it grows by steps, to more than twice"),
    Claim::direction(
        "rdmc-chain-competitive",
        "5.2, Fig. 4a",
        "chain send and binomial pipeline achieve very similar latency",
        |runs| {
            let times = by_pipeline(runs, Way::Chain, LARGE)?;
            let holds = times.iter().all(|(_, time)| (0.9..=1.1).contains(time));
            Ok(Seen { holds, words: listed(&times) })
        },
    )
    .note("256 MB: within a tenth"),
    Claim::direction(
        "rdmc-chain-small",
        "5.2, Fig. 4b",
        "except for small transfers to large numbers of nodes where binomial pulls ahead",
        |runs| {
            let times = by_pipeline(runs, Way::Chain, SMALL)?;
            let last = times.last().map_or(0.0, |(_, time)| *time);
            Ok(Seen { holds: last > 1.25, words: listed(&times) })
        },
    )
    .note("8 MB: the chain's latency by the pipeline's; ahead at 16 by more than a quarter"),
    Claim::not_modelled(
        "rdmc-mvapich-least",
        "5.2",
        "MVAPICH falls in between, taking from 1.03x",
        Stated::Number(1.03),
        "times",
        MVAPICH,
    ),
    Claim::not_modelled(
        "rdmc-mvapich-most",
        "5.2",
        "to 3x as long as binomial pipeline",
        Stated::Number(3.0),
        "times",
        MVAPICH,
    ),
    line!("rdmc-table-remote-setup", "Remote Setup 11", 11.0, RemoteSetupUs),
    line!("rdmc-table-remote-blocks", "Remote Block Transfers 461", 461.0, RemoteBlocksUs)
        .fitted()
        .note("flow_bytes_per_us of Stampede was set so that it comes out"),
    Claim::input(
        "rdmc-table-local-setup",
        "Table 1",
        "Local Setup 4",
        4.0,
        "us",
        Source::Configuration,
    )
    .note("the cost of a set-up is this line"),
    line!("rdmc-table-blocks", "Block Transfers 60944", 60944.0, BlocksUs),
    line!("rdmc-table-waiting", "Waiting 449", 449.0, WaitingUs)
        .note("time in which no block is under way; what the paper counts it does not say"),
    Claim::input(
        "rdmc-table-copy",
        "Table 1",
        "Copy Time 215",
        215.0,
        "us",
        Source::Parameter(Machine::Stampede, |profile| (profile.copy_byte_ps << 20) as f64 / 1e6),
    )
    .note("the cost of a copied byte is this line"),
    line!("rdmc-table-total", "Total 62084", 62084.0, LatencyUs),
    Claim::number(
        "rdmc-network-share",
        "5.2.1",
        "Roughly 99% of the total time is spent in the Remote Block Transfers or Block Transfers",
        99.0,
        "%",
        |runs| Ok(100.0 - overhead(runs)?),
    ),
    Claim::number(
        "rdmc-overhead-share",
        "5.2.1",
        "overheads from RDMC account for only around 1% of the time",
        1.0,
        "%",
        overhead,
    ),
    Claim::direction(
        "rdmc-preempted-relay",
        "5.2.1, Fig. 5",
        "a roughly 100 us delay on the relay ... forced the sender to delay on the following step",
        |runs| {
            let case = Transfer { pause_blocks: 1, ..TABLE };
            let usual = of(runs, case, Figure::UsualWaitUs)?;
            let worst = of(runs, case, Figure::WorstWaitUs)?;
            let words = format!("the sender waits {} us, usually {}", short(worst), short(usual));
            Ok(Seen { holds: worst > usual + 50.0, words })
        },
    )
    .note(
        "of the sender's own steps, as in the text, and not of the whole transfer; longer than \
         usual by half of the relay's delay",
    ),
    Claim::direction(
        "rdmc-block-size-peak",
        "5.2.1, Fig. 6",
        "increasing the block size initially improves performance, but then a peak is reached",
        |runs| {
            let (mut holds, mut words) = (true, Vec::new());
            for mebibytes in [1, 16, 128] {
                let sizes: Vec<usize> = (4..=14).step_by(2).map(|power| 1 << power).collect();
                let rates = each(&sizes, |kibibytes| {
                    let case = fractus(Way::Pipeline, 4, mebibytes * MEGABYTE);
                    let block_bytes = (kibibytes << 10).min(case.bytes);
                    Ok(of(runs, Transfer { block_bytes, ..case }, Figure::BytesPerSecond)? / 1e9)
                })?;
                let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
                let ends = [rates.first(), rates.last()].into_iter().flatten();
                holds &= ends.into_iter().all(|(_, rate)| *rate < 0.95 * best);
                words.push(format!("{mebibytes} MiB: {}", listed(&rates)));
            }
            Ok(Seen { holds, words: words.join("; ") })
        },
    )
    .note("GB/s of messages of 1, 16 and 128 MiB by KiB of a block, 4 members"),
    Claim::direction(
        "rdmc-one-byte",
        "5.2.1, Fig. 7",
        "the binomial pipeline ... is not really intended as a high-speed event notification",
        |runs| {
            let rates = each(&[2, 4, 8, 16], |nodes| {
                let case = fractus(Way::Pipeline, nodes, 1);
                let messages = 100;
                of(runs, Transfer { messages, ..case }, Figure::MessagesPerSecond)
            })?;
            Ok(Seen::falls(&rates))
        },
    )
    .note("messages of 1 byte a second fall with the size of group; the text gives no number"),
];

/// An algorithm's latency by the pipeline's.
fn by_pipeline(runs: &Runs<'_>, algorithm: Way, bytes: usize) -> Result<Vec<(f64, f64)>, Missing> {
    each(&SIZES, |nodes| {
        let of = |algorithm| latency(runs, fractus(algorithm, nodes, bytes));
        Ok(of(algorithm)? / of(Way::Pipeline)?)
    })
}

/// What Table 1 has beside the blocks' transfers, in percent.
fn overhead(runs: &Runs<'_>) -> Result<f64, Missing> {
    let case = Transfer { notice: Completions::Hybrid, ..TABLE };
    let blocks = of(runs, case, Figure::BlocksUs)? + of(runs, case, Figure::RemoteBlocksUs)?;
    Ok(100.0 * (1.0 - blocks / latency(runs, case)?))
}
