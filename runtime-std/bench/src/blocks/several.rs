//! Many groups at a time: writes of a storage layer, and overlapping groups with different senders.

use tramontane_core::rdmc::Algorithm;
use tramontane_fixtures::block_multicast::{GroupPlan, MessagePlan, Report, START_NS, Setup};
use tramontane_fixtures::random::Random;

use super::bed::Bed;
use super::command::Arguments;
use super::experiment::Experiment;
use super::report::Row;
use super::schedule::name;
use super::simulated::simulated;
use crate::error::BenchError;

/// The machine of Figs. 9 and 10 (a); that of Fig. 10 (b) is `apt`.
pub(super) const MACHINE: &str = "fractus";

/// Replicas, besides the node that writes (RDMC 5.2.2).
const REPLICAS: usize = 15;

/// Median and mean of the trace's object sizes, in bytes (RDMC 5.2.2).
const MEDIAN_BYTES: f64 = 12e6;
const MEAN_BYTES: f64 = 29e6;

/// The smallest and the largest: "from hundreds of bytes to hundreds of MB".
const SMALLEST_BYTES: f64 = 300.0;
const LARGEST_BYTES: f64 = 500e6;

/// One write: which group, and how many bytes.
pub(crate) type Written = (usize, usize);

/// What writes to a storage layer came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storage {
    pub(crate) mean_ms: f64,
    /// Of a half, nine tenths and 99 of a hundred.
    pub(crate) percentiles_ms: [f64; 3],
    /// With all writes at once.
    pub(crate) bytes_per_s: f64,
}

/// Fig. 9: objects of log-normal sizes, each to a random three of fifteen replicas. Once with time
/// between them, for their latency; once all at once, for the throughput.
pub(crate) fn figure_9(
    bed: &Bed,
    algorithm: Algorithm,
    writes: &[Written],
    block_bytes: usize,
) -> Result<Storage, BenchError> {
    let apart = simulated(&storage_setup(bed, algorithm, writes, block_bytes, 4))?;
    let at_once = simulated(&storage_setup(bed, algorithm, writes, block_bytes, 0))?;
    let mut latencies = latencies_ms(&apart);
    latencies.sort_by(f64::total_cmp);
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    let bytes: usize = writes.iter().map(|(_, bytes)| bytes).sum();
    let took_ns = at_once.last_completion().unwrap_or(START_NS).saturating_sub(START_NS).max(1);
    Ok(Storage {
        mean_ms: latencies.iter().sum::<f64>() / latencies.len() as f64,
        percentiles_ms: [at(50), at(90), at(99)],
        bytes_per_s: bytes as f64 * 1e9 / took_ns as f64,
    })
}

/// The paper's Fig. 9, by three algorithms.
pub(super) fn storage(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let writes = writes(arguments.writes, arguments.seed);
    let bytes: usize = writes.iter().map(|(_, bytes)| bytes).sum();
    let mut groups: Vec<usize> = writes.iter().map(|(group, _)| *group).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut rows: Vec<Row> = Vec::new();
    for algorithm in [Algorithm::Pipeline, Algorithm::Tree, Algorithm::Sequential] {
        let storage = figure_9(&bed, algorithm, &writes, arguments.block_bytes())?;
        let by_pipeline =
            rows.first().map_or(1.0, |pipeline| storage.mean_ms / pipeline.latency_ms);
        let [half, most, nearly_all] = storage.percentiles_ms;
        rows.push(Row {
            experiment: Experiment::Storage,
            algorithm: name(algorithm),
            nodes: 4,
            groups: groups.len(),
            bytes: bytes / writes.len(),
            block_bytes: arguments.block_bytes(),
            latency_ms: storage.mean_ms,
            skew_ms: None,
            bytes_per_s: storage.bytes_per_s,
            by_port: None,
            by_block: None,
            beside: format!(
                "{by_pipeline:.2} of the pipeline; p50 {half:.2} ms, p90 {most:.2}, p99 {nearly_all:.2}; \
                 all at once {:.1} Gbit/s",
                storage.bytes_per_s * 8.0 / 1e9
            ),
            paper: "the pipeline is almost twice as fast as the tree and around three times as fast as sequential send; \
                    around 93 Gbit/s of data replicated (Fig. 9, 5.2.2)",
        });
    }
    Ok(rows)
}

fn latencies_ms(report: &Report) -> Vec<f64> {
    let groups = report.groups.iter();
    let all = groups
        .flat_map(|group| (0..group.sent_at.len()).filter_map(|message| group.latency_ns(message)));
    all.map(|latency| latency as f64 / 1e6).collect()
}

/// The groups of three replicas.
fn trios() -> Vec<Vec<usize>> {
    let mut trios = Vec::new();
    for one in 1..=REPLICAS {
        for other in one + 1..=REPLICAS {
            trios.extend((other + 1..=REPLICAS).map(|third| vec![0, one, other, third]));
        }
    }
    trios
}

/// A random trio for each write, and a log-normal size.
pub(crate) fn writes(count: usize, seed: u64) -> Vec<Written> {
    let mut random = Random::stream(seed, "storage");
    let trios = trios().len();
    let deviation = (2.0 * (MEAN_BYTES / MEDIAN_BYTES).ln()).sqrt();
    let mut write = || {
        let bytes = MEDIAN_BYTES * (deviation * normal(&mut random)).exp();
        (random.index(trios), bytes.clamp(SMALLEST_BYTES, LARGEST_BYTES) as usize)
    };
    (0..count).map(|_| write()).collect()
}

/// A standard normal number: the sum of twelve uniform ones, less six.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.below(1 << 52) as f64 / (1_u64 << 52) as f64).sum::<f64>() - 6.0
}

/// Each write follows the one before by `apart` times what that one's bytes take on a port.
fn storage_setup(
    bed: &Bed,
    algorithm: Algorithm,
    writes: &[Written],
    block_bytes: usize,
    apart: u64,
) -> Setup {
    let mut groups: Vec<GroupPlan> = trios()
        .into_iter()
        .map(|members| GroupPlan { members, algorithm, messages: Vec::new() })
        .collect();
    let mut setup = bed.under(Setup::new(REPLICAS + 1, Vec::new(), block_bytes, bed.seed));
    let mut at_ns = START_NS;
    for (group, bytes) in writes {
        groups[*group].messages.push(MessagePlan { bytes: *bytes, at_ns });
        // A millisecond for what is not in the port's time.
        at_ns += apart * (setup.profile.port_ps(*bytes as u64) / 1000 + 250_000);
    }
    groups.retain(|group| !group.messages.is_empty());
    setup.groups = groups;
    setup
}

/// Fig. 10: bytes a second of all senders together, in groups of the same members.
pub(crate) fn figure_10(
    bed: &Bed,
    nodes: usize,
    senders: usize,
    bytes: usize,
    block_bytes: usize,
) -> Result<f64, BenchError> {
    let setup = bed.overlapping(nodes, senders, Algorithm::Pipeline, bytes, block_bytes);
    let last = simulated(&setup)?.last_completion().unwrap_or(START_NS);
    Ok((bytes * senders) as f64 * 1e9 / last.saturating_sub(START_NS).max(1) as f64)
}

/// The paper's Fig. 10: groups of the same members, in which all, half or one of them send.
pub(super) fn overlap(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let mut rows = Vec::new();
    let bytes = arguments.bytes().min(100 << 20);
    for nodes in arguments.members(&[4, 8, 12, 16]) {
        for (what, senders) in [("one sends", 1), ("half send", nodes / 2), ("all send", nodes)] {
            let bytes_per_s = figure_10(&bed, nodes, senders, bytes, arguments.block_bytes())?;
            let port = bed.profile.port_bytes_per_us as f64 * 1e6;
            let of_port = 100.0 * bytes_per_s / port;
            rows.push(Row {
                experiment: Experiment::Overlap,
                algorithm: "pipeline",
                nodes,
                groups: senders,
                bytes,
                block_bytes: arguments.block_bytes(),
                latency_ms: (bytes * senders) as f64 * 1e3 / bytes_per_s,
                skew_ms: None,
                bytes_per_s,
                by_port: None,
                by_block: None,
                beside: format!(
                    "{what}: {:.1} Gbit/s, {of_port:.0} % of a port",
                    bytes_per_s * 8.0 / 1e9
                ),
                paper: "with concurrent senders quite close to 100 Gbit/s on Fractus, at least for larger messages; \
                        approaches 16 Gbit/s on Apt (--profile apt), at least for the larger groups (Fig. 10, 5.2.2)",
            });
        }
    }
    Ok(rows)
}
