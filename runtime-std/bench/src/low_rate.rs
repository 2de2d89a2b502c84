//! Experiments at low load: latency at a low rate, and the cost of an idle group.

use serde::Serialize;

use crate::command::{Idle, Latency};
use crate::error::BenchError;
use crate::experiment::group;
use crate::machine::machine;
use crate::member::{Idling, LowRate};
use crate::probe::HandOff;
use crate::processes::{self, Placement, Start};
use crate::real::key_file;
use crate::spread::{Spread, median};
use crate::text::text;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::rdma::{DeviceOptions, PostCounts};

/// Number of hand-offs in one probe.
const HAND_OFFS: u64 = 200_000;

/// The output of `bench latency`.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyReport {
    /// The machine on which this ran.
    pub machine: String,
    /// The fabric: `shm` or `verbs`.
    pub fabric: &'static str,
    /// One-way time of a cache line from one process to another, in ns; only over shared memory.
    pub hand_off_ns: Option<Spread>,
    /// Median time from commit to the sender's own delivery, in ns.
    pub own_ns: Spread,
    /// Median one-way time from commit to delivery at the last of the other members, in ns.
    pub peer_ns: Spread,
    /// Median time from commit to delivery at the last member, including the sender, in ns.
    pub last_ns: Spread,
    /// The 99th percentile of `last_ns`.
    pub last_p99_ns: Spread,
    /// The sender's delivery divided by the hand-off, round by round.
    pub own_ratio: Option<Spread>,
    /// The last member's delivery divided by the hand-off, round by round.
    pub last_ratio: Option<Spread>,
    /// The fabric's counts at each member, by rank, in the last round; empty if the fabric does not
    /// count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<PostCounts>,
}

/// Runs `bench latency`.
///
/// # Errors
/// [`BenchError`].
pub fn latency(arguments: &Latency, interrupts: &Interrupts) -> Result<LatencyReport, BenchError> {
    if arguments.rounds == 0 || arguments.messages == 0 || arguments.nodes == 0 {
        return Err(BenchError::Arguments(
            "--nodes, --rounds and --messages must be at least 1".into(),
        ));
    }
    let bytes = arguments.bytes.max(8);
    let senders = if arguments.one_sender { 1 } else { arguments.nodes };
    let pair = group(2, 2, 100, bytes).fixed().build()?;
    // Deleted at the end.
    let key = arguments.key.then(|| key_file(arguments.fabric)).transpose()?;
    let group = group(arguments.nodes, senders, 100, bytes);
    let group = if arguments.changing { group } else { group.fixed() };
    let group = match &key {
        Some(file) => group.key_file(file.path()).build()?,
        None => group.build()?,
    };
    let low_rate = LowRate {
        message_bytes: bytes as usize,
        messages: arguments.messages,
        interval_ns: arguments.interval_us * 1_000,
        shared: std::thread::available_parallelism()
            .is_ok_and(|processors| usize::from(arguments.nodes) > processors.get()),
    };
    let start = Start {
        carrier: arguments.fabric,
        device: &arguments.device.options(),
        placement: Placement::Spread,
        interrupts,
    };
    let (mut hand_off, mut own, mut peer) = (vec![], vec![], vec![]);
    let (mut last, mut last_p99) = (vec![], vec![]);
    let mut counts = Vec::new();
    for _ in 0..arguments.rounds {
        // The time to pass a cache line in memory says nothing about a network.
        if arguments.fabric == Carrier::SharedMemory {
            let handed_off = processes::run(&pair, &HandOff { rounds: HAND_OFFS }, &start)?;
            let times: Vec<f64> = handed_off.iter().map(|outcome| outcome.one_way_ns).collect();
            hand_off.push(median(&times));
        }
        let outcomes = processes::run(&group, &low_rate, &start)?;
        counts = outcomes.iter().filter_map(|outcome| outcome.posts).collect();
        let lists: Vec<&[u32]> =
            outcomes.iter().map(|outcome| outcome.latency_ns.as_slice()).collect();
        let at_last = last_of(&lists);
        peer.push(percentile(last_of(&lists[1..]), 50));
        own.push(percentile(lists[0].iter().map(|ns| f64::from(*ns)).collect(), 50));
        last.push(percentile(at_last.clone(), 50));
        last_p99.push(percentile(at_last, 99));
    }
    let if_any = |list: &[f64]| (!list.is_empty()).then(|| Spread::of(list));
    let by_hand_off = |list: &[f64]| {
        if_any(&list.iter().zip(&hand_off).map(|(ns, hand_off)| ns / hand_off).collect::<Vec<_>>())
    };
    Ok(LatencyReport {
        machine: machine(),
        fabric: arguments.fabric.name(),
        counts,
        own_ratio: by_hand_off(&own),
        last_ratio: by_hand_off(&last),
        hand_off_ns: if_any(&hand_off),
        own_ns: Spread::of(&own),
        peer_ns: Spread::of(&peer),
        last_ns: Spread::of(&last),
        last_p99_ns: Spread::of(&last_p99),
    })
}

/// Returns, for each message, the time at the last of the given members.
pub(crate) fn last_of(lists: &[&[u32]]) -> Vec<f64> {
    (0..lists.iter().map(|list| list.len()).min().unwrap_or(0))
        .map(|index| f64::from(lists.iter().map(|list| list[index]).max().unwrap_or(0)))
        .collect()
}

pub(crate) fn percentile(mut numbers: Vec<f64>, percent: usize) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let index = (numbers.len() * percent).div_ceil(100).saturating_sub(1);
    numbers.get(index).copied().unwrap_or(0.0)
}

impl LatencyReport {
    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let fields = "machine fabric hand_off_ns own_ns own_ratio peer_ns last_ns last_p99_ns \
                      last_ratio counts";
        text(self, fields, &[]) + "ratios: the time divided by that of the hand-off\n"
    }
}

/// The output of `bench idle`.
#[derive(Clone, Debug, Serialize)]
pub struct IdleReport {
    /// The machine on which this ran.
    pub machine: String,
    /// Each member's share of a processor, in percent.
    pub processor_percent: Vec<f64>,
    /// The sum of these shares.
    pub total_percent: f64,
    /// How often a member woke up each second, on average.
    pub wakeups_per_s: f64,
    /// Number of writes that all members posted while idle.
    pub writes: u64,
}

/// Runs `bench idle`.
///
/// # Errors
/// [`BenchError`].
pub fn idle(arguments: &Idle, interrupts: &Interrupts) -> Result<IdleReport, BenchError> {
    if arguments.nodes == 0 {
        return Err(BenchError::Arguments("--nodes is 0; give at least 1".into()));
    }
    let group = group(arguments.nodes, arguments.nodes, 16, 64).fixed().build()?;
    let idling = Idling { watch_ns: arguments.seconds * 1_000_000_000 };
    let device = DeviceOptions::default();
    let start = Start {
        carrier: Carrier::SharedMemory,
        device: &device,
        placement: Placement::Free,
        interrupts,
    };
    let outcomes = processes::run(&group, &idling, &start)?;
    let processor_percent: Vec<f64> =
        outcomes.iter().map(|outcome| outcome.processor_percent).collect();
    Ok(IdleReport {
        machine: machine(),
        total_percent: processor_percent.iter().sum(),
        processor_percent,
        wakeups_per_s: outcomes.iter().map(|outcome| outcome.wakeups).sum::<u64>() as f64
            / f64::from(arguments.nodes)
            / arguments.seconds.max(1) as f64,
        writes: outcomes.iter().map(|outcome| outcome.writes).sum(),
    })
}

impl IdleReport {
    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        text(self, "machine processor_percent total_percent wakeups_per_s writes", &[])
    }
}
