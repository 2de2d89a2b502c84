//! The paper's analysis (4.5): a slow link, a delayed member. On hardware on which only ports take
//! time, step by step, as the analysis has it; and on the usual hardware.

use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;
use tramontane_fixtures::block_multicast::{PAPER_WINDOW, START_NS, Setup};
use tramontane_fixtures::plan::{Fault, Plan};
use tramontane_fixtures::profile::Profile;

use super::bed::Bed;
use super::command::Arguments;
use super::disturbance;
use super::experiment::Experiment;
use super::link::Link;
use super::report::Row;
use super::schedule::steps_of;
use super::simulated::single_row;
use crate::error::BenchError;

/// The machine that the usual hardware is.
const MACHINE: &str = "usual";

/// The paper's example.
pub(super) const NODES: &[usize] = &[64];

/// Slow links and delays among 64, or as many as are asked for.
pub(super) fn delays(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for nodes in arguments.members(NODES) {
        for (hardware, analysed) in [("ports alone", true), ("usual hardware", false)] {
            for blocks in [1024, 16] {
                let setup = setup(arguments, nodes, blocks, analysed)?;
                let full = single_row(Experiment::Delays, &setup)?;
                let full_ms = full.latency_ms;
                rows.push(full.beside(format!("{hardware}: nothing is slow"), ""));
                rows.push(slow_link(arguments, &setup, full_ms, hardware)?);
            }
            rows.extend(delayed_member(
                arguments,
                &setup(arguments, nodes, 256, analysed)?,
                hardware,
            )?);
        }
    }
    Ok(rows)
}

fn setup(
    arguments: &Arguments,
    nodes: usize,
    blocks: usize,
    analysed: bool,
) -> Result<Setup, BenchError> {
    let block_bytes = arguments.block_bytes();
    let mut bed = Bed::asked(arguments, MACHINE)?;
    if analysed {
        bed.window = PAPER_WINDOW;
        bed.profile = Profile {
            post_ns: 0,
            latency_byte_ns: 0,
            latency_page_ns: 1,
            ack_ns: 0,
            step_ns: 0,
            subgroup_ns: 0,
            look_ns: 0,
            received_ns: 0,
            step_jitter_permille: 0,
            ..Profile::default()
        };
    } else if arguments.window.is_none() {
        bed.window = Window::default();
    }
    Ok(bed.single(nodes, Algorithm::Pipeline, blocks * block_bytes, block_bytes))
}

/// One link at half speed: the worst of some.
fn slow_link(
    arguments: &Arguments,
    setup: &Setup,
    full_ms: f64,
    hardware: &str,
) -> Result<Row, BenchError> {
    let mut worst: Option<(Row, Link)> = None;
    for link in disturbance::links(arguments, setup.groups[0].members.len()) {
        let slow = vec![(usize::from(link.one), usize::from(link.other), 200)];
        let setup = Setup { slow, ..setup.clone() };
        let row = single_row(Experiment::Delays, &setup)?;
        if worst.as_ref().is_none_or(|(worst, _)| row.latency_ms > worst.latency_ms) {
            worst = Some((row, link));
        }
    }
    let (row, link) = worst.ok_or_else(|| BenchError::Setup("no link was tried".into()))?;
    let percent = 100.0 * full_ms / row.latency_ms;
    let least = 100.0 * disturbance::share_left(steps_of(setup), row.nodes);
    let paper = if NODES.contains(&row.nodes) {
        "one link of 64 nodes at half speed leaves 85.6 % (4.5)"
    } else {
        ""
    };
    Ok(row.beside(
        format!(
            "{hardware}: link {link} at half speed, {percent:.1} % of the full bandwidth; by 4.5 at least {least:.1} %"
        ),
        paper,
    ))
}

/// A member's processor stands still in the middle.
fn delayed_member(
    arguments: &Arguments,
    setup: &Setup,
    hardware: &str,
) -> Result<Vec<Row>, BenchError> {
    let alone_ms = single_row(Experiment::Delays, setup)?.latency_ms;
    let block_ns = setup.profile.port_ps(setup.block_bytes as u64) / 1000;
    let mut rows = Vec::new();
    for blocks in disturbance::pauses(arguments).iter().copied().map(u64::from) {
        let mut worst: Option<Row> = None;
        for member in disturbance::delayed(arguments, setup.groups[0].members.len()) {
            let member = usize::from(member);
            let lasting = blocks * block_ns;
            let fault = Fault::Pause { member, at: START_NS + 100 * block_ns + 500, lasting };
            let setup = Setup { plan: Plan { faults: vec![fault] }, ..setup.clone() };
            let row = single_row(Experiment::Delays, &setup)?;
            if worst.as_ref().is_none_or(|worst| row.latency_ms > worst.latency_ms) {
                worst = Some(row);
            }
        }
        let Some(row) = worst else { continue };
        let cost = (row.latency_ms - alone_ms) * 1e6 / (blocks * block_ns) as f64;
        rows.push(row.beside(
            format!(
                "{hardware}: a member pauses {blocks} blocks, which costs {cost:.2} of the pause"
            ),
            "a delay of e costs at most e (4.5)",
        ));
    }
    Ok(rows)
}
