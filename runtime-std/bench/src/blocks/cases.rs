//! The cases to measure: each experiment's configurations, as modified by the arguments.
//!
//! A case that is compared with another follows that case, so that each round has the other's
//! figure first.

use std::num::NonZeroU64;

use clap::ValueEnum as _;

use super::case::BlocksCase;
use super::command::BlocksArguments;
use super::disturbance::{self, Disturbance};
use super::experiment::Experiment;
use super::task::{BlockTask, RACKS};
use crate::error::BenchError;
use crate::options::Senders;
use tramontane_local::options::AlgorithmName;
use tramontane_runtime::blocks::GroupOptions;
use tramontane_runtime::carrier::Carrier;

/// Maximum number of members of a group. Each member has a group for its reports to each root, and
/// memory for all of them.
const NODES_MAX: usize = 12;

/// Maximum message size in bytes, for which latencies of up to four seconds can be stored.
const BYTES_MAX: usize = 1 << 30;

/// Number of messages before the measured ones, during which memory is mapped and pages are faulted
/// in.
const WARM_UPS: u64 = 3;

/// Default rate of a link in `delays`: on one machine links have no speed of their own, and the
/// processors should be idle between blocks.
const LINK_BYTES_PER_S: NonZeroU64 = NonZeroU64::new(100_000_000).unwrap();

/// The default variations of an experiment. An empty list selects the values that suit the fabric
/// and the message.
#[derive(Default)]
struct Usual {
    nodes: &'static [usize],
    bytes: &'static [usize],
    blocks: &'static [usize],
    algorithms: &'static [AlgorithmName],
    senders: &'static [Senders],
}

impl Usual {
    /// Returns the experiment as in the paper, scaled to one machine.
    const fn of(experiment: Option<Experiment>) -> Self {
        use AlgorithmName::{Chain, Interleaved, Pipeline, Sequential, Tree};
        const MIB: usize = 1 << 20;
        const KIB: usize = 1 << 10;
        let usual = Self {
            nodes: &[4],
            bytes: &[MIB, 16 * MIB],
            blocks: &[],
            algorithms: &[],
            senders: &[Senders::One],
        };
        match experiment {
            None => usual,
            Some(Experiment::Algorithms) => Self {
                nodes: &[3, 4, 8],
                bytes: &[8 * MIB],
                algorithms: &[Pipeline, Chain, Tree, Sequential, Interleaved],
                ..usual
            },
            Some(Experiment::BlockSizes) => Self {
                bytes: &[MIB, 16 * MIB],
                blocks: &[64 * KIB, 256 * KIB, MIB, 4 * MIB],
                algorithms: &[Pipeline],
                ..usual
            },
            Some(Experiment::Scale) => Self {
                nodes: &[2, 4, 8, 12],
                bytes: &[8 * MIB],
                algorithms: &[Pipeline, Sequential],
                ..usual
            },
            Some(Experiment::Overlap) => Self {
                nodes: &[4, 8],
                bytes: &[16 * MIB],
                algorithms: &[Pipeline],
                senders: &[Senders::One, Senders::Half, Senders::All],
                ..usual
            },
            Some(Experiment::Delays) => {
                Self { bytes: &[16 * MIB], blocks: &[MIB], algorithms: &[Pipeline], ..usual }
            }
        }
    }
}

/// Checks that the arguments make valid cases.
pub(super) fn check(arguments: &BlocksArguments, carrier: Carrier) -> Result<(), BenchError> {
    let refused = |what: String| Err(BenchError::Arguments(what));
    if arguments.rounds == 0 {
        return refused("--rounds is 0; give at least 1".into());
    }
    if let Some(nodes) = arguments.nodes.iter().find(|nodes| !(2..=NODES_MAX).contains(*nodes)) {
        return refused(format!("--nodes is {nodes}; give a number from 2 to {NODES_MAX}"));
    }
    let sizes = [("--bytes", &arguments.bytes), ("--block", &arguments.block)];
    for (option, sizes) in sizes {
        if let Some(bytes) = sizes.iter().find(|bytes| !(1..=BYTES_MAX).contains(*bytes)) {
            return refused(format!("{option} is {bytes}; give a number from 1 to {BYTES_MAX}"));
        }
    }
    if arguments.senders.is_some()
        && arguments.experiment.iter().any(|experiment| has_senders(*experiment))
    {
        return refused(
            "the experiments overlap and delays choose the senders; omit --senders".into(),
        );
    }
    let is_of_one = arguments.senders.is_none_or(|senders| senders == Senders::One)
        && !arguments.experiment.contains(&Experiment::Overlap);
    if arguments.probe && (carrier != Carrier::SharedMemory || !is_of_one) {
        return refused(
            "--probe needs one sender over shared memory; omit it, or use --fabric shm --senders one".into(),
        );
    }
    check_links(arguments, carrier)?;
    let nodes = arguments.members(Usual::of(Some(Experiment::Delays)).nodes);
    disturbance::check(arguments, &arguments.experiment, &nodes)
}

/// Returns whether an experiment itself determines which members send.
const fn has_senders(experiment: Experiment) -> bool {
    matches!(experiment, Experiment::Overlap | Experiment::Delays)
}

/// Checks the link options. Only over TCP can a member's rate be limited: shared memory has no
/// links, because a receiver reads data in place, and a device has its own pace.
fn check_links(arguments: &BlocksArguments, carrier: Carrier) -> Result<(), BenchError> {
    let given = [
        ("--slow-link", !arguments.slow_link.is_empty()),
        ("--link-bytes-per-s", arguments.link_bytes_per_s.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) if carrier != Carrier::Tcp => Err(BenchError::Arguments(format!(
            "{option} slows links, which is impossible over {}; use --fabric tcp, or --delayed for a slow member",
            carrier.name()
        ))),
        _ => Ok(()),
    }
}

/// Returns all requested cases, in order.
pub(super) fn cases(
    arguments: &BlocksArguments,
    carrier: Carrier,
) -> Result<Vec<BlocksCase<'_>>, BenchError> {
    let mut cases = Vec::new();
    let chosen: Vec<Option<Experiment>> = if arguments.experiment.is_empty() {
        vec![None]
    } else {
        arguments.experiment.iter().copied().map(Some).collect()
    };
    let link_bytes_per_s = arguments.link_bytes_per_s.and_then(NonZeroU64::new);
    for experiment in chosen {
        let usual = Usual::of(experiment);
        let nodes = arguments.members(usual.nodes);
        for nodes in nodes.into_iter().map(|nodes| u16::try_from(nodes).unwrap_or(u16::MAX)) {
            for bytes in given(&arguments.bytes, usual.bytes) {
                let case = BlocksCase {
                    arguments,
                    carrier,
                    experiment,
                    nodes,
                    task: BlockTask { link_bytes_per_s, ..suiting(carrier, bytes) },
                    disturbance: None,
                    compared_with: None,
                };
                add(&mut cases, &case, &usual)?;
            }
        }
    }
    Ok(cases)
}

/// Returns the given values, or else the defaults.
fn given<T: Copy>(said: &[T], usual: &[T]) -> Vec<T> {
    if said.is_empty() { usual.to_vec() } else { said.to_vec() }
}

/// Adds a case with every algorithm, block size and number of senders to measure.
fn add<'a>(
    cases: &mut Vec<BlocksCase<'a>>,
    case: &BlocksCase<'a>,
    usual: &Usual,
) -> Result<(), BenchError> {
    let BlocksCase { arguments, task, .. } = *case;
    let window = arguments.window.map_or((task.receives, task.sends), |window| (window, window));
    let or_one = |all: Vec<usize>| if all.is_empty() { vec![task.block_bytes] } else { all };
    let algorithms = given(&arguments.algorithm, usual.algorithms);
    let algorithms = if algorithms.is_empty() { vec![task.algorithm] } else { algorithms };
    let said: Vec<Senders> = arguments.senders.into_iter().collect();
    for algorithm in algorithms {
        algorithm.of_no_racks().ok_or_else(|| BenchError::Arguments(RACKS.into()))?;
        for block_bytes in or_one(given(&arguments.block, usual.blocks)) {
            for senders in given(&said, usual.senders) {
                let senders = senders.of(case.nodes);
                let ahead = if senders > 1 { 2 } else { 1 };
                let (receives, sends) = window;
                let task =
                    BlockTask { algorithm, block_bytes, receives, sends, senders, ahead, ..task };
                let case = BlocksCase { task, ..case.clone() };
                match case.experiment {
                    Some(Experiment::Delays) => add_delays(cases, &case),
                    _ => cases.push(case),
                }
            }
        }
    }
    Ok(())
}

/// Adds an undisturbed case, followed by the case with each disturbance.
fn add_delays<'a>(cases: &mut Vec<BlocksCase<'a>>, case: &BlocksCase<'a>) {
    let (arguments, nodes) = (case.arguments, usize::from(case.nodes));
    let mut task = case.task;
    let mut disturbances = Vec::new();
    if case.carrier == Carrier::Tcp {
        task.link_bytes_per_s = task.link_bytes_per_s.or(Some(LINK_BYTES_PER_S));
        disturbances
            .extend(disturbance::links(arguments, nodes).into_iter().map(Disturbance::SlowLink));
    }
    for member in disturbance::delayed(arguments, nodes) {
        let pauses = disturbance::pauses(arguments).iter();
        disturbances.extend(pauses.map(|blocks| Disturbance::Pause { member, blocks: *blocks }));
    }
    let undisturbed = cases.len();
    cases.push(BlocksCase { task, ..case.clone() });
    cases.extend(disturbances.into_iter().map(|disturbance| BlocksCase {
        task,
        disturbance: Some(disturbance),
        compared_with: Some(undisturbed),
        ..case.clone()
    }));
}

/// Returns the default task for a fabric and message size.
pub(crate) fn suiting(carrier: Carrier, bytes: usize) -> BlockTask {
    let options = GroupOptions::for_fabric(carrier, bytes);
    let is_usual = |name: &AlgorithmName| name.of_no_racks() == Some(options.algorithm);
    BlockTask {
        message_bytes: bytes,
        messages: 0,
        algorithm: AlgorithmName::value_variants()
            .iter()
            .copied()
            .find(is_usual)
            .unwrap_or(AlgorithmName::Pipeline),
        block_bytes: options.block_bytes,
        receives: options.window.receives,
        sends: options.window.sends,
        senders: 1,
        warm_ups: WARM_UPS,
        ahead: 1,
        link_bytes_per_s: None,
        slow_link: None,
        pause: None,
    }
}
