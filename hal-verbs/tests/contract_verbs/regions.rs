//! Regions and many views over RDMA keep the contract: three processes on one device, with TCP as
//! the side channel.

use std::time::{Duration, Instant};

use tramontane_contract::{
    Breach, PROCESSES, Process, RegionBench, RegionTestbed, Turns, race_in_threads, run_regions,
};
use tramontane_core::fabric::HostFabric as _;
use tramontane_core::ids::NodeId;
use tramontane_verbs::Limits;
use tramontane_verbs::devices::DataInOrder;
use tramontane_verbs::fake::{Keys, Placement, Profile};

use super::VerbsViews;
use super::group::beside::{ids, meet_all_alone};
use super::group::device;

/// The shortest wait that yields the processor to the device emulated on it.
const PASS: Duration = Duration::from_micros(20);

struct ConnectedVerbs {
    limits: Limits,
    rounds: u64,
    views_tried: usize,
}

struct VerbsProcesses {
    fabrics: [Option<VerbsViews>; PROCESSES],
    rounds: u64,
    views_tried: usize,
}

impl RegionTestbed for ConnectedVerbs {
    type Bench<'b> = VerbsProcesses;

    fn with(&self, scene: impl FnOnce(&mut VerbsProcesses)) {
        let members = u16::try_from(PROCESSES).expect("few");
        let mut met = meet_all_alone(members, &self.limits).into_iter();
        let fabrics = std::array::from_fn(|_| met.next());
        let Self { rounds, views_tried, .. } = *self;
        scene(&mut VerbsProcesses { fabrics, rounds, views_tried });
    }
}

impl RegionBench for VerbsProcesses {
    type Fabric = VerbsViews;

    fn nodes(&self) -> [NodeId; PROCESSES] {
        ids(u16::try_from(PROCESSES).expect("few")).try_into().expect("as many")
    }

    fn fabric(&mut self, process: Process) -> &mut VerbsViews {
        self.fabrics[process.0].as_mut().expect("nobody uses who was lost")
    }

    fn pass(&mut self) {
        for fabric in self.fabrics.iter_mut().flatten() {
            fabric.check_peers();
            fabric.flush();
        }
        std::thread::sleep(PASS);
    }

    fn passes_to_settle(&self) -> u32 {
        40
    }

    fn is_quiet(&self, process: Process) -> bool {
        self.fabrics[process.0].as_ref().is_none_or(|fabric| fabric.in_flight() == 0)
    }

    fn lose(&mut self, process: Process) -> Result<(), &'static str> {
        // Acts like a process that ends: its queue pairs and sockets disappear without notice.
        self.fabrics[process.0] = None;
        Ok(())
    }

    fn rounds(&self) -> u64 {
        self.rounds
    }

    fn views_tried(&self) -> usize {
        self.views_tried
    }

    fn race(&mut self, actors: [(Process, Turns<'_, VerbsViews>); 2]) -> Result<(), Breach> {
        let [(first, one), (second, other)] = actors;
        let fabrics = self.fabrics.get_disjoint_mut([first.0, second.0]).expect("two processes");
        let fabrics = fabrics.map(|fabric| fabric.as_mut().expect("nobody uses who was lost"));
        race_in_threads(fabrics, [one, other])
    }
}

/// The check that a port cannot decide if it allows writes longer than an entry.
const SILENT: [&str; 1] = ["region-address-order"];

/// With updates, a completion promises nothing.
const SILENT_WITH_UPDATES: [&str; 2] = ["region-completion-visible", "region-address-order"];

fn assert_kept(what: &str, how: &ConnectedVerbs) -> String {
    assert_kept_except(what, how, &SILENT)
}

#[track_caller]
fn assert_kept_except(what: &str, how: &ConnectedVerbs, silent: &[&str]) -> String {
    let started = Instant::now();
    let report = run_regions(how);
    println!("Regions over verbs, {what}, in {:.1?}:\n{report}", started.elapsed());
    report.assert_kept();
    assert_eq!(report.not_applicable().collect::<Vec<_>>(), silent, "clauses that say nothing");
    report.to_string()
}

#[test]
fn regions_over_verbs_keep_the_contract() {
    let limits = Limits::default();
    assert_kept("the usual limits", &ConnectedVerbs { limits, rounds: 200, views_tried: 24 });
}

#[test]
fn regions_over_verbs_keep_the_contract_with_short_queues() {
    let limits =
        Limits { depth: 64, signal_every: 5, inline_bytes_max: Some(0), ..Limits::default() };
    let how = ConnectedVerbs { limits, rounds: 100, views_tried: 8 };
    assert_kept("short queues, nothing inline", &how);
}

/// The device executes requests late and reuses key numbers: a write posted with a revoked right is
/// still in flight when the next right is granted.
#[test]
fn regions_keep_contract_with_late_writes_reusing_keys() {
    let profile =
        Profile { late_read_ns: 200_000, keys: Keys::ReusedAtOnce, ..Profile::soft_roce() };
    let network = device::take_instead(profile, 7);
    let how = ConnectedVerbs { limits: Limits::default(), rounds: 30, views_tried: 6 };
    let report = assert_kept("late requests, keys that come again", &how);
    println!("{:?}", network.counts());
    let mut lines = report.lines().filter(|line| line.starts_with("denied-leave-no-gap"));
    assert!(lines.all(|line| line.ends_with(" holds")), "something was under way: {report}");
}

/// The device places writes in any order and completes them before they are visible. The owner
/// applies updates under the sender's current right.
#[test]
fn regions_with_updates_keep_the_contract() {
    let profile = Profile {
        placement: Placement::BytesReordered,
        placement_delay_ns: 20_000,
        data_in_order: DataInOrder::No,
        completes_before_visible: true,
        ..Profile::strict()
    };
    let _network = device::take_instead(profile, 9);
    let limits = Limits { inline_bytes_max: Some(64), ..Limits::default() };
    let how = ConnectedVerbs { limits, rounds: 30, views_tried: 6 };
    assert_kept_except("updates", &how, &SILENT_WITH_UPDATES);
}
