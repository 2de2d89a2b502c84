//! Continuous sending in the simulator, on the machine that a profile describes.
//!
//! | file | what it holds |
//! |---|---|
//! | `own_core` | our own core's runs |
//! | `derecho` | those of Derecho as Spindle's paper describes it |
//! | `figures` | what runs come to, over their seeds |
//! | `seeds` | one run a seed, several at a time |
//! | `report` | the table of simulated runs |

mod derecho;
mod figures;
mod own_core;
pub(crate) mod report;
mod seeds;

use crate::command::Multicast;
use crate::error::BenchError;
use crate::options::{Variant, switches_without, techniques, techniques_of};
use crate::profiles::Machine;
use crate::progress::Progress;
use crate::report::Row;
use crate::spread::median;

use derecho::Derecho;
pub use figures::Inside;
use own_core::Core;

/// Messages of each sender where nothing else is said: enough for the start and the end not to
/// matter.
const MESSAGES: u64 = 2_000;

/// Runs of each configuration where nothing else is said.
const SEEDS: u64 = 5;

/// What is to be run, of whatever protocol.
struct Case {
    nodes: u16,
    senders: u16,
    bytes: u32,
    window: u32,
    messages: Option<u64>,
    /// How many of the senders, the first ones, wait after each message, and how long.
    delayed: u16,
    delay_us: u64,
}

/// The seeds that are asked for.
pub(crate) fn seeds(arguments: &Multicast) -> Vec<u64> {
    let count = arguments.seeds.unwrap_or(SEEDS);
    (arguments.seed..arguments.seed.saturating_add(count)).collect()
}

/// What is run, one after the other.
///
/// # Errors
/// [`BenchError::Arguments`] if they have no such techniques as are to be switched off.
pub(crate) fn variants(arguments: &Multicast) -> Result<Vec<Variant>, BenchError> {
    let given = &arguments.variant;
    let derecho = given.iter().find(|variant| variant.derecho().is_some());
    if let (Some(variant), false) = (derecho, arguments.without.is_empty()) {
        return Err(BenchError::Arguments(format!(
            "--without is of this project's core, and --variant {} is not: leave one of them out",
            variant.name()
        )));
    }
    Ok(if given.is_empty() { vec![Variant::Tramontane] } else { given.clone() })
}

/// The simulated runs of one configuration, one a seed.
///
/// # Errors
/// [`BenchError::Setup`] if one does not end as it should.
pub(crate) fn run(
    arguments: &Multicast,
    machine: &Machine,
    (variant, nodes, bytes): (Variant, u16, u32),
    progress: &Progress,
) -> Result<Row, BenchError> {
    let senders = arguments.senders.of(nodes);
    let Multicast { window, messages, delay_us, .. } = *arguments;
    let delayed = if delay_us > 0 { arguments.delayed.of(senders) } else { 0 };
    let case = Case { nodes, senders, bytes, window, messages, delayed, delay_us };
    let switches = switches_without(&arguments.without);
    let (case, profile) = (&case, &machine.profile);
    let seeds = seeds(arguments);
    let runs = seeds::run(&seeds, |seed| {
        let figures = match variant.derecho() {
            Some(variant) => Derecho { case, profile, variant }.run(seed),
            None => Core { case, profile, switches }.run(seed),
        };
        progress.inc(1);
        figures
    })?;

    let others: Option<Vec<f64>> = runs.iter().map(|run| run.others_alone).collect();
    Ok(Row {
        fabric: "sim",
        variant,
        nodes,
        senders,
        bytes,
        window,
        drive: "poller".into(),
        techniques: techniques(variant.derecho().map_or(switches, techniques_of)),
        delay_us,
        delayed,
        messages_per_s: figures::spread(&runs, |run| run.messages_per_s),
        bytes_per_s: figures::spread(&runs, |run| run.bytes_per_s).median,
        writes_per_message: Some(figures::spread(&runs, |run| run.writes_per_message).median),
        nulls: Some(figures::spread(&runs, |run| run.nulls).median as u64),
        probe: None,
        counts: Vec::new(),
        others_alone: others.map(|shares| median(&shares)),
        inside: Some(Inside::of(seeds, &runs)),
    })
}
