//! Many runs and their results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tramontane_fixtures::world::{
    Action, Ending, Goal, Plan, Record, RunOutcome, Subgroup, run_over,
};
use tramontane_verbs::fake::Counts;

use crate::device::Devices;
use crate::faults::{self, Faults};
use crate::hardware::RdmaHardware;
use crate::membership_history::failure::judged_by;

/// The factor by which plans are slower than on the simulated network, because the shortest
/// retransmission time of a NIC is a millisecond.
pub const STRETCH: u64 = 20;

/// Approximate maximum number of members of a view.
const MEMBERS_MAX: u64 = 19;

/// Maximum number of failures that are printed.
const SHOWN_MAX: usize = 3;

/// Whether the membership of a group may change.
#[derive(Clone, Copy, Debug)]
pub enum GroupKind {
    Changing,
    Fixed,
}

impl GroupKind {
    /// Returns the run of a seed.
    pub fn draw(self, seed: u64) -> SearchRun {
        let devices = Devices::draw(seed);
        let mut plan = self.plan(seed, &devices);
        let percent = if plan.is_fixed() { 25 } else { 60 };
        let faults = Faults::draw(&plan, &devices, percent);
        faults.add_to(&mut plan);
        SearchRun { plan, devices, faults }
    }

    /// Returns the plan of a seed, with times that suit its devices.
    fn plan(self, seed: u64, devices: &Devices) -> Plan {
        let plan = match self {
            Self::Changing => Plan::random(seed),
            // A sleeper is woken through a descriptor, in real time.
            Self::Fixed => Plan { sleep_after_ns: None, ..Plan::random_fixed(seed) },
        };
        let plan = if seed % 3 == 2 { plan.with_relays() } else { plan };
        let mut plan = plan.stretched(STRETCH);
        let view_ns = devices.view_ns(MEMBERS_MAX);
        if !plan.is_fixed() {
            let way_ns = 10 * (devices.profile.latency_ns + devices.profile.jitter_ns);
            let late_ns = devices.profile.placement_delay_ns + devices.profile.late_read_ns;
            plan.timing.failure_timeout_ns += view_ns + way_ns + late_ns;
            plan.timing.first_timeout_ns += 2 * (view_ns + way_ns + late_ns);
        }
        plan.until_ns *= 2;
        plan
    }
}

/// A plan, the properties of its devices, and their faults.
#[derive(Clone, Debug)]
pub struct SearchRun {
    pub plan: Plan,
    devices: Devices,
    faults: Faults,
}

impl SearchRun {
    /// Returns a run of this plan on faultless devices, determined by its seed.
    pub fn of_plan(plan: Plan) -> Self {
        Self { devices: Devices::draw(plan.seed), plan, faults: Faults::default() }
    }

    /// Executes the run over RDMA.
    pub fn go(&self) -> RunOutcome {
        self.go_and_count().0
    }

    /// Also returns the activity of its devices.
    fn go_and_count(&self) -> (RunOutcome, Done) {
        let Self { plan, devices, faults } = self;
        let hardware = RdmaHardware::new(plan, devices.clone(), faults.clone());
        let outcome = run_over(plan, &hardware, |process, _| hardware.fabric_of(process));
        let mut outcome = outcome.expect("a right plan");
        let complaints = outcome.complaints.len();
        outcome.complaints.retain(|complaint| !hardware.is_excused(complaint));
        if outcome.complaints.len() < complaints {
            // In the simulated world, a process without memory for its first view never ends.
            outcome.complaints.retain(|complaint| !complaint.starts_with("no end:"));
        }
        (outcome, Done { counts: hardware.counts(), struck: hardware.struck() })
    }

    /// Returns whether members pass on messages of a sender in a subgroup of three or more.
    fn has_relays(&self) -> bool {
        let passes_on = |subgroup: &Subgroup| subgroup.relayed && subgroup.members.len() > 2;
        self.plan.subgroups.iter().any(passes_on)
    }

    /// Returns whether devices may end connections for good although the side channels do not.
    fn may_lose_peers(&self) -> bool {
        let cuts_ns = self.plan.actions.iter().filter_map(|action| match action {
            Action::Partition { lasting, .. } => Some(*lasting),
            _ => None,
        });
        self.faults.end_connections() || self.devices.may_give_up(cuts_ns)
    }

    /// Executes the run. Returns its violations and the activity of its devices.
    fn judge(&self) -> (Option<RunOutcome>, Vec<String>, Done) {
        let done = Mutex::new(Done::default());
        let judged = self.faults.excused(&self.plan);
        let (outcome, mut complaints) = judged_by(&judged, |_| {
            let (outcome, done_now) = self.go_and_count();
            *done.lock().expect("one thread") = done_now;
            outcome
        });
        if let Some(outcome) = &outcome
            && judged.is_fixed()
            && judged.must_end_calm()
            && !self.may_lose_peers()
            && outcome.ending != Ending::Calm
        {
            complaints.push(format!("ended {}, and nothing excuses it", tell(outcome)));
        }
        (outcome, complaints, done.into_inner().unwrap_or_default())
    }
}

/// The activity and the faults of a run's devices.
#[derive(Debug, Default)]
struct Done {
    counts: Counts,
    struck: BTreeSet<faults::MemberFault>,
}

impl Done {
    /// Returns the possible activities and faults of devices, and whether each occurred.
    fn reached(&self) -> impl Iterator<Item = (bool, &'static str)> {
        let counts = &self.counts;
        let counted = [
            (counts.placed_late, "placed late"),
            (counts.placed_out_of_order, "placed out of order"),
            (counts.read_late, "content read late"),
            (counts.flushed, "requests flushed"),
            (counts.refused, "requests refused"),
            (counts.sent_again, "requests sent again"),
            (counts.seen_twice, "requests that came twice"),
            (counts.lost, "messages lost by chance"),
            (counts.too_long, "messages too long for a port"),
            (counts.nowhere, "messages that led nowhere"),
            (counts.overruns, "completion queues that ran over"),
            (counts.killed_objects, "objects of a killed process destroyed"),
        ];
        let counted = counted.into_iter().map(|(count, name)| (count > 0, name));
        let struck = faults::MemberFault::ALL.into_iter();
        counted.chain(struck.map(|kind| (self.struck.contains(&kind), kind.name())))
    }
}

/// The results of a search.
#[derive(Debug, Default)]
pub struct SearchTally {
    pub runs: u64,
    pub endings: BTreeMap<Ending, u64>,
    pub reached: BTreeMap<Goal, u64>,
    /// The number of runs in which each deviation, activity and fault of devices occurred.
    pub devices: BTreeMap<&'static str, u64>,
    views: u64,
    deliveries: u64,
    failed: BTreeMap<u64, String>,
}

impl SearchTally {
    /// Returns the items that occurred in fewer than one in `one_of` runs.
    pub fn seldom_reached(&self, one_of: u64) -> Vec<&'static str> {
        let seldom = self.devices.iter().filter(|(_, runs)| **runs * one_of < self.runs);
        seldom.map(|(name, _)| *name).collect()
    }

    fn count(&mut self, outcome: &RunOutcome) {
        *self.endings.entry(outcome.ending).or_default() += 1;
        for goal in &outcome.reached {
            *self.reached.entry(*goal).or_default() += 1;
        }
        self.views += outcome.views();
        self.deliveries += outcome.count(|record| matches!(record, Record::Deliver { .. }));
    }
}

/// Runs `seeds` seeds of a kind on as many threads as there are processors, or a single seed if the
/// environment names it.
///
/// # Panics
/// Panics if a run violates a guarantee.
pub fn search(kind: GroupKind, seeds: u64) -> SearchTally {
    let first = from_environment("TRAMONTANE_RDMA_FIRST").unwrap_or(0);
    let (first, end) = match from_environment("TRAMONTANE_RDMA_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (first, first + seeds),
    };
    let (next, tally) = (AtomicU64::new(first), Mutex::new(SearchTally::default()));
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let run = kind.draw(seed);
                    if end - first == 1 {
                        println!("{}\n{:#?}\n{:#?}", run.plan, run.devices, run.faults);
                    }
                    let (outcome, complaints, done) = run.judge();
                    let mut tally = tally.lock().expect("nobody panics with it");
                    tally.runs += 1;
                    outcome.iter().for_each(|outcome| tally.count(outcome));
                    let relays = (run.has_relays(), "groups whose members pass on messages");
                    let reached = run.devices.freedoms().chain(done.reached());
                    for (is_reached, name) in reached.chain([relays]) {
                        *tally.devices.entry(name).or_default() += u64::from(is_reached);
                    }
                    if !complaints.is_empty() {
                        eprintln!("{kind:?} seed {seed}: {}", complaints.join("\n  "));
                        tally.failed.insert(seed, complaints.join("\n  "));
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().expect("nobody panicked with it");
    println!("{kind:?}: {} runs in {:.1?}: {:?}", tally.runs, began.elapsed(), tally.endings);
    println!("{} views, {} deliveries", tally.views, tally.deliveries);
    tally.devices.iter().for_each(|(name, runs)| println!("{runs:6} {name}"));
    let seeds: Vec<&u64> = tally.failed.keys().collect();
    let shown = tally.failed.iter().take(SHOWN_MAX).map(|(seed, complaints)| {
        format!(
            "seed {seed}: {complaints}\n  again: TRAMONTANE_RDMA_SEED={seed} cargo test -p \
             tramontane-verbs --test simulated_groups {}",
            kind.name()
        )
    });
    let shown = shown.collect::<Vec<_>>().join("\n");
    assert!(tally.failed.is_empty(), "seeds {seeds:?} of {kind:?} failed:\n{shown}");
    tally
}

impl GroupKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Changing => "changing_groups",
            Self::Fixed => "fixed_groups",
        }
    }
}

/// Describes, for a reader, how a run ended.
pub fn tell(outcome: &RunOutcome) -> String {
    let lost: Vec<_> = outcome.processes.iter().map(|process| &process.lost).collect();
    format!("{:?} at {} ns, lost {lost:?}", outcome.ending, outcome.ended_ns)
}

pub fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}
