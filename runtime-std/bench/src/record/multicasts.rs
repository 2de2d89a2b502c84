//! Block multicasts: our core's schedules and transfers, on RDMC's machines.

use tramontane_fixtures::block_multicast::{
    GroupPlan, MessagePlan, START_NS, Setup, run as simulate,
};
use tramontane_fixtures::plan::{Fault, Plan};
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::random::Random;

use super::case::{Case, Figure, Machine, Transfer};
use super::machines::Machines;
use super::runs::{Figures, Missing};
use crate::blocks::figures::{Bed, figure_9, stall, table_1, writes};
use crate::error::BenchError;

/// Writes of the storage layer: far fewer than the paper's millions.
const WRITES: usize = 150;

/// The lines of Table 1, in its order.
const TABLE: [Figure; 7] = [
    Figure::RemoteSetupUs,
    Figure::RemoteBlocksUs,
    Figure::LocalSetupUs,
    Figure::BlocksUs,
    Figure::WaitingUs,
    Figure::CopyUs,
    Figure::LatencyUs,
];

/// Runs a case of block multicasts.
pub(super) fn run(machines: &Machines, case: &Case, seed: u64) -> Result<Figures, Missing> {
    match case {
        Case::Transfer(transfer) => {
            let profile = machines.of(transfer.machine);
            if transfer.machine == Machine::Stampede {
                let bed = Bed::of_paper(profile.clone(), seed);
                let is_table = transfer.pause_blocks == 0;
                return Ok(if is_table {
                    table(transfer, &bed)?
                } else {
                    stalled(transfer, &bed)?
                });
            }
            Ok(figures(transfer, &setup(transfer, profile, seed))?)
        }
        Case::Storage(way) => {
            let bed = Bed::of_paper(machines.of(Machine::Fractus).clone(), seed);
            let storage = figure_9(&bed, way.algorithm(), &writes(WRITES, seed), 1 << 20)?;
            Ok(Figures::from([
                (Figure::LatencyUs, storage.mean_ms * 1e3),
                (Figure::BytesPerSecond, storage.bytes_per_s),
            ]))
        }
        Case::Sending(_) => Err(Missing::NotThere("small messages are not blocks".into())),
    }
}

fn setup(case: &Transfer, profile: &Profile, seed: u64) -> Setup {
    let hosts = hosts(case, seed);
    let groups = (0..case.groups)
        .map(|root| GroupPlan {
            members: (0..case.nodes).map(|place| hosts[(root + place) % case.nodes]).collect(),
            algorithm: case.algorithm.algorithm(),
            messages: vec![MessagePlan { bytes: case.bytes, at_ns: START_NS }; case.messages],
        })
        .collect();
    let profile = if case.ports_alone { ports_alone(profile) } else { profile.clone() };
    let bed = case.notice.on(&Bed::of_paper(profile, seed));
    let mut setup = bed.under(Setup::new(case.nodes, groups, case.block_bytes, seed));
    setup.offloads = case.offloaded;
    if case.slow_percent != 100 {
        setup.slow = vec![(0, 1, case.slow_percent)];
    }
    if case.pause_blocks > 0 {
        let block_ns = setup.profile.port_ps(case.block_bytes as u64) / 1000;
        let at = START_NS + 100 * block_ns + block_ns / 2;
        let fault = Fault::Pause { member: 1, at, lasting: case.pause_blocks * block_ns };
        setup.plan = Plan { faults: vec![fault] };
    }
    setup
}

/// Which host each member is on. On Apt the batch system decides, and the members of a rack are not
/// next to each other in the group (RDMC 5.1); elsewhere it does not matter.
fn hosts(case: &Transfer, seed: u64) -> Vec<usize> {
    let mut hosts: Vec<usize> = (0..case.nodes).collect();
    if case.machine == Machine::Apt {
        let mut random = Random::stream(seed, "hosts");
        for place in (1..hosts.len()).rev() {
            hosts.swap(place, random.index(place + 1));
        }
    }
    hosts
}

/// The same ports, of which nothing else takes time.
fn ports_alone(profile: &Profile) -> Profile {
    Profile {
        port_bytes_per_us: profile.port_bytes_per_us,
        post_ns: 0,
        latency_byte_ns: 0,
        latency_page_ns: 1,
        ack_ns: 0,
        step_ns: 0,
        subgroup_ns: 0,
        look_ns: 0,
        received_ns: 0,
        ..Profile::default()
    }
}

/// Table 1 and nothing else: its run has a delay that others have not.
fn table(case: &Transfer, bed: &Bed) -> Result<Figures, BenchError> {
    let lines = table_1(bed, (case.bytes, case.block_bytes))?;
    Ok(TABLE.into_iter().zip(lines).collect())
}

/// How long the root waits before a send, where a relay is away for 100 us.
fn stalled(case: &Transfer, bed: &Bed) -> Result<Figures, BenchError> {
    let waits = stall(bed, (case.bytes, case.block_bytes), case.offloaded)?;
    Ok(Figures::from([
        (Figure::UsualWaitUs, waits.usual_us),
        (Figure::WorstWaitUs, waits.worst_us),
    ]))
}

fn figures(case: &Transfer, setup: &Setup) -> Result<Figures, BenchError> {
    let report = simulate(setup);
    if let Some(fault) = report.faults.first() {
        return Err(BenchError::Setup(format!("the simulated run failed: {fault}")));
    }
    let took_ns = report.last_completion().unwrap_or(START_NS).saturating_sub(START_NS).max(1);
    let messages = (case.groups * case.messages) as f64;
    let mut figures = Figures::from([
        (Figure::BytesPerSecond, messages * case.bytes as f64 * 1e9 / took_ns as f64),
        (Figure::MessagesPerSecond, messages * 1e9 / took_ns as f64),
        (
            Figure::ProcessorShare,
            report.awake_ns.iter().sum::<u64>() as f64 / (case.nodes as u64 * took_ns) as f64,
        ),
    ]);
    let group = &report.groups[0];
    if let Some(latency_ns) = group.latency_ns(0) {
        figures.insert(Figure::LatencyUs, latency_ns as f64 / 1e3);
    }
    if let Some(skew_ns) = group.skew_ns(0) {
        figures.insert(Figure::SkewUs, skew_ns as f64 / 1e3);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::super::case::Way;
    use super::*;

    #[test]
    fn the_batch_system_decides_who_is_in_a_rack_and_each_host_has_one_member() {
        let on = |machine, seed| hosts(&Transfer::new(machine, Way::Pipeline, 16, 1), seed);
        let in_order: Vec<usize> = (0..16).collect();
        assert_eq!(on(Machine::Fractus, 1), in_order);
        let mut drawn = on(Machine::Apt, 1);
        assert!(drawn != in_order && drawn != on(Machine::Apt, 2));
        drawn.sort_unstable();
        assert_eq!(drawn, in_order);
    }
}
