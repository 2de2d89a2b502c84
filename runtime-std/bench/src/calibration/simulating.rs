//! The same runs in the simulator: the real core over a network that has this machine's costs.

use tramontane_core::ids::NodeId;
use tramontane_core::layout::Delivery;
use tramontane_fixtures::block_multicast::{GroupPlan, MessagePlan, START_NS, Setup};
use tramontane_fixtures::payload::Checked;
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::world::{self, Ending, Load, Outcome, Plan, Senders, Subgroup};

use super::held_out::{Figure, HeldOut, LOW_RATE_INTERVAL_US, WINDOW};
use crate::blocks::real::cases::suiting;
use crate::blocks::simulated::simulated;
use crate::error::BenchError;
use crate::spread::median;

/// Messages of each sender that are simulated: a rate does not depend on how long it is kept up.
const MESSAGES: u64 = 4_000;

/// Messages at a low rate.
const LOW_RATE_MESSAGES: u64 = 1_000;

/// Virtual time after which a run is given up, in ns.
const LIMIT_NS: u64 = 60_000_000_000;

/// The figure that the simulator gives for a run.
pub(super) fn predict(run: &HeldOut, profile: &Profile, seed: u64) -> Result<f64, BenchError> {
    if run.figure == Figure::BlockLatency {
        return block_latency_ns(run, profile, seed);
    }
    let plan = plan(run, profile, seed);
    let outcome = world::run(&plan).map_err(|error| BenchError::Setup(error.to_string()))?;
    if outcome.ending != Ending::Calm || !outcome.complaints.is_empty() {
        let (ending, name) = (outcome.ending, run.name());
        return Err(BenchError::Setup(format!("the simulated run '{name}' ended {ending:?}")));
    }
    Ok(figure(run, &outcome))
}

/// Messages of a block group that are simulated, each when the one before is long over.
const BLOCK_MESSAGES: u64 = 5;

/// From one of them to the next, in ns.
const BLOCKS_APART_NS: u64 = 1_000_000_000;

fn block_latency_ns(run: &HeldOut, profile: &Profile, seed: u64) -> Result<f64, BenchError> {
    let bytes = run.bytes as usize;
    let task = suiting(run.fabric.carrier(), bytes);
    let options = task.options()?;
    let message = |place: u64| MessagePlan { bytes, at_ns: START_NS + place * BLOCKS_APART_NS };
    let group = GroupPlan {
        members: (0..usize::from(run.members)).collect(),
        algorithm: options.algorithm,
        messages: (0..BLOCK_MESSAGES).map(message).collect(),
    };
    let setup = Setup::new(run.members.into(), vec![group], options.block_bytes, seed);
    let report = simulated(&Setup { profile: profile.clone(), window: options.window, ..setup })?;
    let latencies = (0..BLOCK_MESSAGES as usize)
        .filter_map(|place| report.groups[0].latency_ns(place).map(|latency_ns| latency_ns as f64));
    Ok(median(&latencies.collect::<Vec<_>>()))
}

fn figure(run: &HeldOut, outcome: &Outcome) -> f64 {
    let latency_ns = |member: usize| outcome.processes[member].latency.percentile_ns(50) as f64;
    match run.figure {
        Figure::Rate => outcome.messages_per_second(),
        Figure::OwnLatency => latency_ns(0),
        // A block multicast is no run of the world.
        Figure::BlockLatency => f64::NAN,
        Figure::PeerLatency => (1..outcome.processes.len()).map(latency_ns).fold(0.0, f64::max),
    }
}

fn plan(run: &HeldOut, profile: &Profile, seed: u64) -> Plan {
    let (members, senders) = (usize::from(run.members), usize::from(run.senders));
    let mut plan = Plan::fixed(members, senders, WINDOW, run.bytes.max(8), seed);
    let idle = Subgroup {
        members: plan.members.clone(),
        senders: plan.members.clone(),
        window: WINDOW,
        message_max: run.bytes.max(8),
        delivery: Delivery::Ordered,
        large: false,
    };
    plan.subgroups.extend((0..run.idle_subgroups).map(|_| idle.clone()));
    plan.profile = profile.clone();
    // At a low rate a time is taken when the message is built, and its reader looks at that alone.
    plan.payloads.read = run.figure == Figure::Rate;
    if run.figure != Figure::Rate {
        plan.profile.build_byte_ps = 0;
        plan.profile.delivered_byte_ps = 0;
    }
    // One thread a member builds, steps and reads.
    plan.senders = Senders::Caller;
    plan.until_ns = LIMIT_NS;
    plan.checked = Checked::Ends;
    plan.keep_history = false;
    plan.loads = loads(run);
    plan
}

fn loads(run: &HeldOut) -> Vec<Load> {
    let load = |rank: u16, messages: u64| {
        Load::continuous(NodeId(rank.into()), 0, messages, run.bytes as usize)
    };
    match run.figure {
        Figure::Rate => {
            let delay = |rank: u16| if rank == 0 { run.delay_us * 1_000 } else { 0 };
            // All send as many, and so the one that waits decides how long a run is.
            let messages = if run.delay_us > 0 { MESSAGES / 2 } else { MESSAGES };
            (0..run.senders)
                .map(|rank| Load { delay_ns: delay(rank), ..load(rank, messages) })
                .collect()
        }
        Figure::OwnLatency | Figure::PeerLatency | Figure::BlockLatency => {
            let apart_ns = LOW_RATE_INTERVAL_US * 1_000;
            vec![Load { apart_ns, ..load(0, LOW_RATE_MESSAGES) }]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::held_out::{Fabric, runs};

    #[test]
    fn a_prediction_is_the_same_every_time() {
        let run = &runs(Fabric::Shm)[0];
        let profile = Profile { live_rows: true, ..Profile::default() };
        let predicted = || predict(run, &profile, 3).expect("it ends");
        assert_eq!(predicted(), predicted());
        assert!(predicted() > 0.0);
    }

    #[test]
    fn latencies_are_of_the_sender_and_of_the_others() {
        let profile = Profile::default();
        let latency = |figure: Figure| {
            let is_it = |run: &&HeldOut| run.figure == figure && run.members == 2;
            let runs = runs(Fabric::Tcp);
            predict(runs.iter().find(is_it).expect("one"), &profile, 1).expect("it ends")
        };
        let (own, peer) = (latency(Figure::OwnLatency), latency(Figure::PeerLatency));
        // The peer's own round is owed too, and it learns last that the sender has that.
        assert!(peer > own + 1_000.0, "{own} {peer}");
    }

    #[test]
    fn a_block_multicast_takes_as_long_as_its_copies_and_longer_where_members_share_processors() {
        let profile = Profile {
            live_rows: false,
            host_processors: 2,
            host_members: 1_000,
            block_byte_ps: 100,
            latency_byte_ns: 0,
            latency_page_ns: 0,
            ack_ns: 0,
            port_bytes_per_us: 1_000_000,
            ..Profile::default()
        };
        let latency = |members: u16, bytes: u32| {
            let is_it = |run: &&HeldOut| {
                (run.figure, run.members, run.bytes) == (Figure::BlockLatency, members, bytes)
            };
            let runs = runs(Fabric::Shm);
            predict(runs.iter().find(is_it).expect("one"), &profile, 1).expect("it ends")
        };
        let copy_ns = f64::from(1 << 20) * 0.1;
        let two = latency(2, 1 << 20);
        assert!(two > copy_ns && two < 1.5 * copy_ns, "{two} {copy_ns}");
        assert!(latency(2, 16 << 20) > 14.0 * two);
        // Three receivers on two processors, one of which is the root's too.
        let four = latency(4, 1 << 20);
        assert!(four > 1.8 * copy_ns && four < 3.0 * copy_ns, "{four} {copy_ns}");
    }
}
