//! The cases to measure: one for each combination of the arguments.

use clap::ValueEnum as _;

use super::case::BlocksCase;
use super::command::BlocksArguments;
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
    let is_of_one = arguments.senders == Senders::One;
    if arguments.probe && (carrier != Carrier::SharedMemory || !is_of_one) {
        return refused(
            "--probe needs one sender over shared memory; omit it, or use --fabric shm --senders one".into(),
        );
    }
    Ok(())
}

/// Returns all requested cases, in order.
pub(super) fn cases(
    arguments: &BlocksArguments,
    carrier: Carrier,
) -> Result<Vec<BlocksCase<'_>>, BenchError> {
    let mut cases = Vec::new();
    for nodes in arguments.nodes.iter().map(|nodes| u16::try_from(*nodes).unwrap_or(u16::MAX)) {
        for bytes in &arguments.bytes {
            let usual = suiting(carrier, *bytes);
            let (receives, sends) =
                arguments.window.map_or((usual.receives, usual.sends), |window| (window, window));
            let senders = arguments.senders.of(nodes);
            let ahead = if senders > 1 { 2 } else { 1 };
            for algorithm in given(&arguments.algorithm, usual.algorithm) {
                algorithm.of_no_racks().ok_or_else(|| BenchError::Arguments(RACKS.into()))?;
                for block_bytes in given(&arguments.block, usual.block_bytes) {
                    let task = BlockTask {
                        algorithm,
                        block_bytes,
                        receives,
                        sends,
                        senders,
                        ahead,
                        ..usual
                    };
                    cases.push(BlocksCase { arguments, carrier, nodes, task });
                }
            }
        }
    }
    Ok(cases)
}

/// Returns the given values, or else the default.
fn given<T: Copy>(said: &[T], usual: T) -> Vec<T> {
    if said.is_empty() { vec![usual] } else { said.to_vec() }
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
    }
}
