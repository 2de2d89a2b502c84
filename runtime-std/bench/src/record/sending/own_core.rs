//! The runs of our own core, on the machine of the paper.

use tramontane_core::ids::NodeId;
use tramontane_core::layout::Delivery;
use tramontane_core::multicast::Switches;
use tramontane_fixtures::payload::Checked;
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::world::{self, Ending, Load, Plan, ProcessReport, RunOutcome};

use super::{STAGES, Sending, Storage, Variant, Wait};
use crate::error::BenchError;
use crate::options::switches_without;
use crate::record::figures::Figures;

/// Virtual time after which a run is given up.
const LIMIT_NS: u64 = 600_000_000_000;

/// Number of slots of a ring in which nothing is sent.
const IDLE_WINDOW: u32 = 2;

/// More messages than a sender sends in a run of a fixed time, and that time. Spindle measures the
/// rate "after a fixed number of messages have been delivered" if senders wait (IV-B.1).
const UNLIMITED: u64 = 1 << 40;
const WAITING_NS: u64 = 20_000_000;

impl Sending {
    /// Returns the switches of our core that correspond to the case.
    fn switches(&self) -> Switches {
        let switches = match self.variant {
            Variant::Baseline => Switches::empty(),
            Variant::Delivery => Switches::DELIVERY_BATCHING,
            Variant::Receive => Switches::DELIVERY_BATCHING | Switches::RECEIVE_BATCHING,
            Variant::Batching => Switches::all() - Switches::NULLS - Switches::LATE_POSTING,
            Variant::Nulls => Switches::all() - Switches::LATE_POSTING,
            Variant::Spindle => Switches::all(),
        };
        switches & switches_without(self.without.as_slice())
    }

    /// Returns the plan of our core's run, and the number of senders that wait.
    fn plan(&self, profile: Profile, seed: u64) -> (Plan, u16) {
        let senders = self.senders.of(self.nodes);
        let mut plan =
            Plan::fixed(self.nodes.into(), senders.into(), self.window, self.bytes, seed);
        plan.profile = profile;
        plan.profile.delivered_ns += self.upcall_ns;
        plan.switches = self.switches();
        if self.unordered {
            plan.subgroups[0].delivery = Delivery::Unordered;
        }
        let subgroup = plan.subgroups[0].clone();
        plan.subgroups.resize(self.subgroups.into(), subgroup);
        let active = if self.all_active { self.subgroups } else { 1 };
        // The slots of an idle ring are never touched, so their number has no effect.
        plan.subgroups.iter_mut().skip(active.into()).for_each(|idle| idle.window = IDLE_WINDOW);
        plan.payloads.built_by_copy = self.copies;
        plan.payloads.copied = self.copies || self.storage != Storage::Nowhere;
        plan.payloads.logged = self.storage == Storage::Disk;
        plan.checked = Checked::Ends;
        plan.keep_history = false;
        let (waiting, wait_ns) = match self.wait {
            Wait::Ns(0) => (0, None),
            Wait::Ns(wait_ns) => (self.waiting.of(senders), Some(wait_ns)),
            Wait::ForEver(_) => (self.waiting.of(senders), None),
        };
        // The rate is that of a fixed time, in which senders that wait send less than others.
        let (messages, until_ns) = match wait_ns {
            None => (self.messages(), LIMIT_NS),
            Some(_) => (UNLIMITED, WAITING_NS),
        };
        plan.until_ns = until_ns;
        let load = |(subgroup, sender): (usize, u16)| {
            let node = NodeId(sender.into());
            let load = Load::continuous(node, subgroup, messages, self.bytes as usize);
            match wait_ns {
                _ if sender >= waiting => Some(load),
                Some(wait_ns) => Some(Load { apart_ns: wait_ns, ..load }),
                None => None,
            }
        };
        let all =
            (0..usize::from(active)).flat_map(|group| (0..senders).map(move |of| (group, of)));
        plan.loads = all.filter_map(load).collect();
        (plan, waiting)
    }

    /// Runs the case with our own core.
    ///
    /// # Errors
    /// Fails with [`BenchError`] if the run does not end as it should.
    pub(super) fn run_core(&self, profile: Profile, seed: u64) -> Result<Figures, BenchError> {
        if self.fixed_batch.is_some() {
            let what = "our core sends in batches of any size; run fixed_batch with the model";
            return Err(BenchError::Arguments(what.into()));
        }
        let (plan, waiting) = self.plan(profile, seed);
        let outcome = world::run(&plan).map_err(|error| BenchError::Setup(error.to_string()))?;
        // A run of a fixed time has no other end.
        let is_meant = match outcome.ending {
            Ending::Calm => outcome.complaints.is_empty(),
            Ending::OutOfTime => plan.until_ns == WAITING_NS && outcome.complaints.len() == 1,
            Ending::Stalled | Ending::NoGroup => false,
        };
        if !is_meant {
            let ending = outcome.ending;
            return Err(BenchError::Setup(format!("the simulated run did not finish: {ending:?}")));
        }
        Ok(core_figures(&plan, &outcome, waiting.into()))
    }
}

/// Returns the figures of our core, for the mean member unless noted.
fn core_figures(plan: &Plan, outcome: &RunOutcome, waiting: usize) -> Figures {
    let senders = plan.subgroups[0].senders.len();
    let whole = |size: u64| size.is_multiple_of(senders as u64);
    let batches = [
        outcome.batches(|process| &process.send_batches),
        outcome.batches(|process| &process.receive_batches),
        outcome.batches(|process| &process.delivery_batches),
    ];
    let [send, receive, delivery] = &batches;
    let continuous = outcome.processes.get(waiting).map_or(0, |process| process.sent);
    let messages = continuous.max(1) as f64;
    let peers = (outcome.processes.len() - 1).max(1) as f64;
    let share = |part: fn(&ProcessReport) -> u64, whole: fn(&ProcessReport) -> u64| {
        outcome.total(part) as f64 / outcome.total(whole).max(1) as f64
    };
    let each = |total: u64| total as f64 / outcome.processes.len() as f64 / messages;
    let mut figures = Figures::from([
        ("gb_per_s", outcome.gigabytes_per_second()),
        ("messages_per_s", outcome.messages_per_second()),
        ("latency_us", outcome.latency().mean_ns() / 1e3),
        // Writes to a peer, divided by the number of peers.
        ("puts", each(outcome.total(|process| process.writes)) / peers),
        ("posting_us", each(outcome.total(|process| process.posting_ns)) / 1e3),
        ("posting_share", outcome.posting_share()),
        ("blocked_share", outcome.blocked_share(plan.loads.len())),
        ("send_batch", send.mean()),
        ("receive_batch", receive.mean()),
        ("delivery_batch", delivery.mean()),
        ("small_send_batches", send.share(|size| size < 5)),
        ("whole_delivery_batches", delivery.share(whole)),
        // The share of its rate that the busiest port sends.
        ("port_share", port_share(plan, outcome)),
        // The share of the steps that find nothing to do.
        ("idle_share", share(|process| process.idle_steps, |process| process.steps)),
        // Rounds without a message, as a share of all rounds.
        ("null_share", share(|process| process.nulls, |process| process.nulls + process.sent)),
        ("step_us", share(|process| process.compute_ns, |process| process.steps) / 1e3),
    ]);
    if waiting > 0 {
        let steps = |process: usize| outcome.processes[process].null_steps as f64 / messages;
        figures.insert("waiting_nulls", steps(0));
        figures
            .insert("other_nulls", outcome.processes.get(waiting).map_or(0.0, |_| steps(waiting)));
    }
    figures.distributions = STAGES.into_iter().zip(batches).collect();
    figures
}

/// Returns the share of its rate that the busiest port sends.
fn port_share(plan: &Plan, outcome: &RunOutcome) -> f64 {
    let Profile { port_bytes_per_us, header_bytes, .. } = plan.profile;
    let sent = |process: &ProcessReport| process.written_bytes + process.writes * header_bytes;
    let most = outcome.processes.iter().map(sent).max().unwrap_or(0);
    most as f64 * 1e3 / (port_bytes_per_us * outcome.duration_ns.max(1)) as f64
}
