//! Messages in blocks, by our core's schedules and transfers on RDMC's machines: transfers, the
//! breakdown of a transfer's time, and a storage layer's writes.

use std::num::NonZeroU16;

use serde::Deserialize;
use tramontane_core::rdmc::Algorithm as CoreAlgorithm;
use tramontane_fixtures::block_multicast::{
    BlockReport, Breakdown as Times, GroupPlan, MessagePlan, PAPER_WINDOW, START_NS, Setup,
    Timeline, What, run as simulate,
};
use tramontane_fixtures::plan::{Fault, FaultPlan};
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::random::Random;

use super::figures::Figures;
use super::machines::Machines;
use crate::error::BenchError;
use crate::options::Senders;
use crate::spread::median;

/// The algorithm that schedules blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Algorithm {
    Sequential,
    Chain,
    Tree,
    Pipeline,
    /// A pipeline among racks, and one within each rack.
    Hybrid,
}

impl Algorithm {
    const fn of_core(self, racks: NonZeroU16) -> CoreAlgorithm {
        match self {
            Self::Sequential => CoreAlgorithm::Sequential,
            Self::Chain => CoreAlgorithm::Chain,
            Self::Tree => CoreAlgorithm::Tree,
            Self::Pipeline => CoreAlgorithm::Pipeline,
            Self::Hybrid => CoreAlgorithm::Hybrid { racks },
        }
    }
}

/// The notification of completions (RDMC Fig. 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CompletionNotice {
    /// Polling, which switches to interrupts after 50 ms without a completion.
    Hybrid,
    Interrupts,
    Polling,
}

/// RDMC's machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BlockMachine {
    /// RDMC's sixteen-node machine.
    Fractus,
    /// The machine at Lawrence Livermore National Laboratory.
    Sierra,
    /// The machine of EmuLab, with a slow network between racks.
    Apt,
}

impl BlockMachine {
    const fn name(self) -> &'static str {
        match self {
            Self::Fractus => "fractus",
            Self::Sierra => "sierra",
            Self::Apt => "apt",
        }
    }
}

/// An experiment that sends messages in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Transfer {
    machine: BlockMachine,
    algorithm: Algorithm,
    nodes: u16,
    mib: usize,
    /// Size of a message in bytes, instead of `mib`.
    bytes: Option<usize>,
    block_kib: usize,
    /// Whether the block size is reduced to the size of a smaller message.
    fits: bool,
    /// Number of messages in each group, sent in turn.
    messages: usize,
    /// The senders. Each is the root of a group of all members.
    senders: Senders,
    /// Time of blocks on one link, in percent of the usual time.
    slow_percent: u64,
    /// Number of block times for which one member is stopped in the middle of a transfer.
    pause_blocks: u64,
    /// Whether only the ports take time, as in the paper's analysis (4.5).
    ports_alone: bool,
    notice: CompletionNotice,
    /// Whether the NIC relays blocks by itself.
    offloaded: bool,
}

/// One large message in blocks of 1 MiB, from one root.
impl Default for Transfer {
    fn default() -> Self {
        Self {
            machine: BlockMachine::Fractus,
            algorithm: Algorithm::Pipeline,
            nodes: 16,
            mib: 256,
            bytes: None,
            block_kib: 1024,
            fits: false,
            messages: 1,
            senders: Senders::One,
            slow_percent: 100,
            pause_blocks: 0,
            ports_alone: false,
            notice: CompletionNotice::Hybrid,
            offloaded: false,
        }
    }
}

impl Transfer {
    /// Runs the case.
    ///
    /// # Errors
    /// Fails with [`BenchError::Setup`] if the transfer fails.
    pub(super) fn run(&self, machines: &Machines, seed: u64) -> Result<Figures, BenchError> {
        let setup = self.setup(machines.named(self.machine.name())?, seed);
        let report = simulated(&setup)?;
        let took_ns = took_ns(&report);
        let messages = (setup.groups.len() * self.messages) as f64;
        let awake_ns = report.awake_ns.iter().sum::<u64>() as f64;
        let group = &report.groups[0];
        let us = |ns: Option<u64>| ns.map_or(f64::NAN, |ns| ns as f64 / 1e3);
        Ok(Figures::from([
            ("gb_per_s", messages * self.bytes() as f64 / took_ns),
            ("messages_per_s", messages * 1e9 / took_ns),
            // The busy share of a receiver's processor.
            ("processor_share", awake_ns / (f64::from(self.nodes) * took_ns)),
            // Time from the send to the last completion.
            ("latency_us", us(group.latency_ns(0))),
            // Time from the first receiver's completion to the last's.
            ("skew_us", us(group.skew_ns(0))),
        ]))
    }

    fn bytes(&self) -> usize {
        self.bytes.unwrap_or(self.mib << 20)
    }

    fn setup(&self, profile: &Profile, seed: u64) -> Setup {
        let hosts = self.hosts(seed);
        let message = MessagePlan { bytes: self.bytes(), at_ns: START_NS };
        let rack_members = profile.rack_members.max(1) as usize;
        let racks = NonZeroU16::new(hosts.len().div_ceil(rack_members) as u16);
        let group = |root: usize| {
            let mut members: Vec<usize> =
                (0..hosts.len()).map(|place| hosts[(root + place) % hosts.len()]).collect();
            if self.algorithm == Algorithm::Hybrid {
                // The racks are known, so members of one rack are adjacent, with the root's first.
                let rack = |host: usize| host / rack_members;
                let own = rack(members[0]);
                members[1..].sort_by_key(|host| (rack(*host) != own, rack(*host)));
            }
            GroupPlan {
                members,
                algorithm: self.algorithm.of_core(racks.unwrap_or(NonZeroU16::MIN)),
                messages: vec![message; self.messages],
            }
        };
        let groups = (0..self.senders.of(self.nodes).into()).map(group).collect();
        let block_bytes = self.block_kib << 10;
        let block_bytes = if self.fits { block_bytes.min(self.bytes()) } else { block_bytes };
        let mut profile = if self.ports_alone { ports_alone(profile) } else { profile.clone() };
        profile.poll_for_ns = match self.notice {
            CompletionNotice::Hybrid => 50_000_000,
            CompletionNotice::Interrupts => 1,
            CompletionNotice::Polling => 0,
        };
        let mut setup = on(profile, Setup::new(self.nodes.into(), groups, block_bytes, seed));
        setup.offloads = self.offloaded;
        if self.slow_percent != 100 {
            setup.slow = vec![(0, 1, self.slow_percent)];
        }
        if self.pause_blocks > 0 {
            let block_ns = setup.profile.port_ps(block_bytes as u64) / 1000;
            let at = START_NS + 100 * block_ns + block_ns / 2;
            let fault = Fault::Pause { member: 1, at, lasting: self.pause_blocks * block_ns };
            setup.plan = FaultPlan { faults: vec![fault] };
        }
        setup
    }

    /// Returns the host of each member. On Apt the batch system decides, and the members of a rack
    /// are not adjacent in the group (RDMC 5.1); on other machines the assignment does not matter.
    fn hosts(&self, seed: u64) -> Vec<usize> {
        let mut hosts: Vec<usize> = (0..self.nodes.into()).collect();
        if self.machine == BlockMachine::Apt {
            Random::stream(seed, "hosts").shuffle(&mut hosts);
        }
        hosts
    }
}

/// Returns a profile with the same ports, in which nothing else takes time.
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

/// Sets up a transfer as in the paper, on a machine.
fn on(profile: Profile, setup: Setup) -> Setup {
    Setup { profile, window: PAPER_WINDOW, ..setup }
}

/// Runs a setup that must not fail.
fn simulated(setup: &Setup) -> Result<BlockReport, BenchError> {
    let report = simulate(setup);
    match report.faults.first() {
        None => Ok(report),
        Some(fault) => Err(BenchError::Setup(format!("the simulated run failed: {fault}"))),
    }
}

fn took_ns(report: &BlockReport) -> f64 {
    report.last_completion().unwrap_or(START_NS).saturating_sub(START_NS).max(1) as f64
}

/// The breakdown of the time for 256 MB in blocks of 1 MB from one sender to three receivers on
/// Stampede: the lines of Table 1, at the last receiver, and the sender's waiting time before a
/// send (Fig. 5). The relay is delayed by 100 us, as in the paper's transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Breakdown {}

/// The first member that relays blocks, and the last member that receives a block through it.
const RELAY: usize = 1;
const FARTHEST: usize = 3;

/// "A roughly 100 us delay on the relay" (5.2.1).
const PAUSE_NS: u64 = 100_000;

impl Breakdown {
    /// Runs the case.
    ///
    /// # Errors
    /// Fails with [`BenchError::Setup`] if the transfer fails.
    pub(super) fn run(&self, machines: &Machines, seed: u64) -> Result<Figures, BenchError> {
        let profile = machines.named("stampede")?.clone();
        let setup = Setup::single(4, CoreAlgorithm::Pipeline, &[256 << 20], 1 << 20, seed);
        let timeline = delayed(Setup { keeps_timeline: true, ..on(profile, setup) })?;
        let times: Times = timeline.breakdown(0, FARTHEST).ok_or_else(no_relay)?;
        let waits = timeline.sends(0, 0);
        let waits: Vec<f64> = waits.iter().skip(1).map(|send| us(send.waited_ns)).collect();
        Ok(Figures::from([
            ("remote_setup_us", us(times.remote_setup_ns)),
            ("remote_blocks_us", us(times.remote_blocks_ns)),
            ("local_setup_us", us(times.local_setup_ns)),
            ("blocks_us", us(times.blocks_ns)),
            ("waiting_us", us(times.waiting_ns)),
            ("copy_us", us(times.copy_ns)),
            ("latency_us", us(times.total_ns)),
            ("usual_wait_us", median(&waits)),
            ("worst_wait_us", waits.iter().copied().fold(0.0, f64::max)),
        ]))
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Returns the timeline of an otherwise undisturbed transfer in which the relay's processor is
/// stopped for 100 us when a block of the root has arrived, after four fifths of the blocks.
fn delayed(mut setup: Setup) -> Result<Timeline, BenchError> {
    setup.profile.preempt_every_ns = 0;
    let calm = simulated(&setup)?.timeline;
    let received = calm.at(0, RELAY).filter(|moment| moment.what == What::Received { from: 0 });
    let received: Vec<u64> = received.map(|moment| moment.at_ns).collect();
    let at = received.get(received.len() * 4 / 5).ok_or_else(no_relay)?.saturating_sub(500);
    let plan = FaultPlan { faults: vec![Fault::Pause { member: RELAY, at, lasting: PAUSE_NS }] };
    Ok(simulated(&Setup { plan, ..setup })?.timeline)
}

fn no_relay() -> BenchError {
    BenchError::Setup("no block arrived through one relay".into())
}

/// Objects with log-normal sizes, each written to three random replicas out of fifteen: once with
/// pauses in between, to measure latency, and once all together, to measure throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Storage {
    algorithm: Algorithm,
}

/// Number of writes of the storage layer: far fewer than the paper's millions.
const WRITES: usize = 150;

/// Number of replicas, not counting the node that writes (RDMC 5.2.2).
const REPLICAS: usize = 15;

/// Median and mean of the trace's object sizes, in bytes (RDMC 5.2.2).
const MEDIAN_BYTES: f64 = 12e6;
const MEAN_BYTES: f64 = 29e6;

/// The smallest and the largest size: "from hundreds of bytes to hundreds of MB".
const SMALLEST_BYTES: f64 = 300.0;
const LARGEST_BYTES: f64 = 500e6;

impl Storage {
    /// Runs the case.
    ///
    /// # Errors
    /// Fails with [`BenchError::Setup`] if a write fails.
    pub(super) fn run(&self, machines: &Machines, seed: u64) -> Result<Figures, BenchError> {
        let profile = machines.named(BlockMachine::Fractus.name())?;
        let writes = writes(seed);
        let apart = simulated(&self.setup(profile, &writes, 4, seed))?;
        let at_once = simulated(&self.setup(profile, &writes, 0, seed))?;
        let latencies = apart.groups.iter().flat_map(|group| {
            (0..group.sent_at.len()).filter_map(|message| group.latency_ns(message))
        });
        let latencies: Vec<f64> = latencies.map(us).collect();
        let bytes: usize = writes.iter().map(|(_, bytes)| bytes).sum();
        let mut figures = Figures::from([
            ("latency_us", latencies.iter().sum::<f64>() / latencies.len() as f64),
            ("gb_per_s", bytes as f64 / took_ns(&at_once)),
        ]);
        let distribution = figures.distributions.entry("latencies_ms").or_default();
        latencies.iter().for_each(|us| distribution.add((us / 1e3).ceil() as u64));
        Ok(figures)
    }

    /// Sets up the writes. Each follows the previous one by `apart` times the port's time for the
    /// previous one's bytes.
    fn setup(&self, profile: &Profile, writes: &[(usize, usize)], apart: u64, seed: u64) -> Setup {
        let algorithm = self.algorithm.of_core(NonZeroU16::MIN);
        let mut groups: Vec<GroupPlan> =
            trios().map(|members| GroupPlan { members, algorithm, messages: Vec::new() }).collect();
        let mut at_ns = START_NS;
        for (group, bytes) in writes {
            groups[*group].messages.push(MessagePlan { bytes: *bytes, at_ns });
            // Adds a millisecond for time that the port's time does not include.
            at_ns += apart * (profile.port_ps(*bytes as u64) / 1000 + 250_000);
        }
        groups.retain(|group| !group.messages.is_empty());
        on(profile.clone(), Setup::new(REPLICAS + 1, groups, 1 << 20, seed))
    }
}

/// Returns the groups of three replicas, each with the writing node first.
fn trios() -> impl Iterator<Item = Vec<usize>> {
    let pairs = |one| (one + 1..=REPLICAS).map(move |other| (one, other));
    (1..=REPLICAS).flat_map(pairs).flat_map(|(one, other)| {
        (other + 1..=REPLICAS).map(move |third| vec![0, one, other, third])
    })
}

/// Draws a random trio and a log-normal size for each write.
fn writes(seed: u64) -> Vec<(usize, usize)> {
    let mut random = Random::stream(seed, "storage");
    let trios = trios().count();
    let deviation = (2.0 * (MEAN_BYTES / MEDIAN_BYTES).ln()).sqrt();
    let mut write = || {
        let bytes = MEDIAN_BYTES * (deviation * normal(&mut random)).exp();
        (random.index(trios), bytes.clamp(SMALLEST_BYTES, LARGEST_BYTES) as usize)
    };
    (0..WRITES).map(|_| write()).collect()
}

/// Returns a standard normal number: the sum of twelve uniform numbers, minus six.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.below(1 << 52) as f64 / (1_u64 << 52) as f64).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_members_are_placed_at_random() {
        let on = |machine, seed| Transfer { machine, ..Transfer::default() }.hosts(seed);
        let in_order: Vec<usize> = (0..16).collect();
        assert_eq!(on(BlockMachine::Fractus, 1), in_order);
        let mut drawn = on(BlockMachine::Apt, 1);
        assert!(drawn != in_order && drawn != on(BlockMachine::Apt, 2));
        drawn.sort_unstable();
        assert_eq!(drawn, in_order, "each host has one member");
    }
}
