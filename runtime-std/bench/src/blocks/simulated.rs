//! One simulated message.

use tramontane_fixtures::block_multicast::{Report, Setup, run as simulate};

use super::experiment::Experiment;
use super::report::Row;
use crate::error::BenchError;

/// Runs a setup in which nothing may go wrong.
pub(crate) fn simulated(setup: &Setup) -> Result<Report, BenchError> {
    let report = simulate(setup);
    match report.faults.first() {
        None => Ok(report),
        Some(fault) => Err(BenchError::Setup(format!("the simulated run failed: {fault}"))),
    }
}

/// A row for one message in one group.
pub(super) fn single_row(experiment: Experiment, setup: &Setup) -> Result<Row, BenchError> {
    let report = simulated(setup)?;
    let latency_ns = report.groups[0].latency_ns(0).unwrap_or(0);
    Ok(Row::of_message(experiment, setup, latency_ns, report.groups[0].skew_ns(0).unwrap_or(0)))
}
