//! Small messages: the paper's Fig. 7, messages of one byte a second; and 4.6, how much faster a
//! protocol for small messages is.

use tramontane_core::ids::NodeId;
use tramontane_core::multicast::Switches;
use tramontane_core::rdmc::Algorithm;
use tramontane_fixtures::block_multicast::START_NS;
use tramontane_fixtures::payload::Checked;
use tramontane_fixtures::world::{self, Ending, Load, Plan};

use super::bed::Bed;
use super::command::Arguments;
use super::experiment::Experiment;
use super::report::Row;
use super::simulated::simulated;
use crate::error::BenchError;

/// The machine of Fig. 7.
pub(super) const MACHINE: &str = "fractus";

/// Messages of a run: enough for its start and end not to matter.
const MESSAGES: usize = 200;

/// Slots of the small-message protocol's sender.
const SLOTS: u32 = 100;

/// Virtual time after which a run is given up.
const LIMIT_NS: u64 = 60_000_000_000;

/// Messages of one block a second by the block multicast. A pipeline of one block is the binomial
/// tree.
pub(crate) fn figure_7(bed: &Bed, nodes: usize, bytes: usize) -> Result<f64, BenchError> {
    let sizes = vec![bytes; MESSAGES];
    let setup = bed.series(nodes, Algorithm::Tree, &sizes, bytes.max(1));
    let report = simulated(&setup)?;
    let took_ns = report.last_completion().unwrap_or(START_NS).saturating_sub(START_NS).max(1);
    Ok(MESSAGES as f64 * 1e9 / took_ns as f64)
}

/// Messages a second of one sender by the protocol for small messages, which batched deliveries
/// alone when it was compared.
pub(crate) fn small_messages(bed: &Bed, nodes: usize, bytes: usize) -> Result<f64, BenchError> {
    let messages = 3 * MESSAGES as u64;
    let wide = u32::try_from(bytes).unwrap_or(u32::MAX);
    let mut plan = Plan::fixed(nodes, 1, SLOTS, wide, bed.seed);
    plan.profile = bed.profile.clone();
    plan.switches = Switches::DELIVERY_BATCHING;
    plan.until_ns = LIMIT_NS;
    plan.checked = Checked::Ends;
    plan.keep_history = false;
    plan.loads = vec![Load::continuous(NodeId(0), 0, messages, bytes)];
    let outcome = world::run(&plan).map_err(|error| BenchError::Setup(error.to_string()))?;
    match outcome.ending {
        Ending::Calm if outcome.complaints.is_empty() => Ok(outcome.messages_per_second()),
        ending => Err(BenchError::Setup(format!("the simulated run ended {ending:?}"))),
    }
}

/// Both, for several groups and sizes.
pub(super) fn small(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let mut rows = Vec::new();
    for bytes in [1, 1024, 10 << 10, 100 << 10] {
        for nodes in arguments.members(&[2, 4, 8, 16]) {
            let blocks = figure_7(&bed, nodes, bytes)?;
            let small = small_messages(&bed, nodes, bytes)?;
            let setup = bed.single(nodes, Algorithm::Tree, bytes, bytes);
            let row = Row::of_time(Experiment::Small, &setup, 1000.0 / blocks);
            let beside = format!(
                "{blocks:.0} messages/s; by the protocol for small messages {small:.0}, {:.1} \
                 times",
                small / blocks
            );
            rows.push(row.beside(
                beside,
                "a protocol for small messages gains as much as 5x, up to about 16 members and \
                 10 KB (4.6); messages of 1 byte a second are Fig. 7",
            ));
        }
    }
    Ok(rows)
}
