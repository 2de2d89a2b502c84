//! One group, one message: algorithms, block sizes, scale.

use tramontane_core::rdmc::Algorithm;

use super::bed::Bed;
use super::command::Arguments;
use super::experiment::Experiment;
use super::report::Row;
use super::simulated::single_row;
use crate::error::BenchError;

/// The machine of Figs. 4 and 6.
pub(super) const MACHINE: &str = "fractus";
/// The machine of Fig. 8.
pub(super) const LARGE_MACHINE: &str = "sierra";

/// The algorithms that the paper compares, the pipeline first.
pub(crate) const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Pipeline, Algorithm::Chain, Algorithm::Tree, Algorithm::Sequential];

/// The paper's Fig. 4: a large and a small message, by each algorithm.
pub(super) fn algorithms(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let mut rows = Vec::new();
    for bytes in [arguments.bytes(), 8 << 20] {
        for nodes in arguments.members(&[3, 4, 8, 12, 16]) {
            let mut pipeline_ms = 0.0;
            for algorithm in ALGORITHMS {
                let setup = bed.single(nodes, algorithm, bytes, arguments.block_bytes());
                let row = single_row(Experiment::Algorithms, &setup)?;
                if algorithm == Algorithm::Pipeline {
                    pipeline_ms = row.latency_ms;
                }
                let beside = format!("{:.2} of the pipeline", row.latency_ms / pipeline_ms);
                rows.push(row.beside(
                    beside,
                    "sequential send and the tree do poorly as nodes grow; chain send is \
                     competitive but for small \
                     transfers to many (Fig. 4, 5.2). MPI_Bcast, which takes 1.03 to 3 times the \
                     pipeline's time there, is another system and is not modelled",
                ));
            }
        }
    }
    Ok(rows)
}

/// The paper's Fig. 6: bandwidth over block sizes, for messages of several sizes, four members.
pub(super) fn block_sizes(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let mut rows = Vec::new();
    for bytes in [16 << 10, 1 << 20, 16 << 20, 128 << 20] {
        let mut best: f64 = 0.0;
        let first = rows.len();
        for block_bytes in (14..=24).step_by(2).map(|power| 1_usize << power) {
            let setup = bed.single(4, Algorithm::Pipeline, bytes, block_bytes);
            let row = single_row(Experiment::BlockSizes, &setup)?;
            best = best.max(row.bytes_per_s);
            rows.push(row);
            if block_bytes >= bytes {
                break;
            }
        }
        for row in &mut rows[first..] {
            row.beside = format!("{:.0} % of the best", 100.0 * row.bytes_per_s / best);
            row.paper = "larger blocks are better up to a peak, then worse (Fig. 6, 5.2.1)";
        }
    }
    Ok(rows)
}

/// The paper's Fig. 8: one large message to very many.
pub(super) fn scale(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, LARGE_MACHINE)?;
    let mut rows: Vec<Row> = Vec::new();
    for algorithm in [Algorithm::Pipeline, Algorithm::Sequential] {
        let mut of_128 = None;
        for nodes in arguments.members(&[4, 8, 16, 32, 64, 100, 128, 256, 512]) {
            let setup = bed.single(nodes, algorithm, arguments.bytes(), arguments.block_bytes());
            let row = single_row(Experiment::Scale, &setup)?;
            if nodes == 128 {
                of_128 = Some(row.latency_ms);
            }
            let beside =
                of_128.map(|of_128| format!("{:.3} of 127 copies", row.latency_ms / of_128));
            rows.push(row.beside(
                beside.unwrap_or_default(),
                "127, 255 or 511 copies take almost the same time; sequential send grows with \
                 their number (Fig. 8, \
                 5.2.2)",
            ));
        }
    }
    Ok(rows)
}
