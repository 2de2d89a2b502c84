//! Views over RDMA keep the contract: three members on one device, each with its own context,
//! memory and queue pairs, and TCP as the side channel. The checks run with the usual limits, with
//! the shortest possible queues, and with nothing sent inline, so that guards are staged.
//!
//! The device is a fake one, or in the lab a real one (`hal-verbs/lab/run`; see
//! `hal-verbs/README.md`).

#[path = "contract_verbs/coming_and_going.rs"]
mod coming_and_going;
mod group;
#[path = "contract_verbs/regions.rs"]
mod regions;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use group::beside::{Beside, ids, meet_all};
use group::{VIEW, device};
use tramontane_contract::{
    Actor, BLOCK_BYTES_MIN, Bench, BlockBench, Breach, MEMBERS, Next, ROW_BYTES_MIN, Seat, Testbed,
    Wake, run, run_blocks,
};
use tramontane_core::fabric::{
    BlockStore as _, BlockUse, ErrorKind, Fabric as _, HostBlocks as _, HostFabric as _, Region,
    ViewRows as _,
};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_tcp::Tcp;
use tramontane_verbs::devices::DataInOrder;
use tramontane_verbs::fake::{Placement, Profile};
use tramontane_verbs::{BlockMemory, Limits, RdmaViews, Rows};

/// The fabric under test: views over RDMA with TCP as the side channel, as in programs.
type VerbsViews = RdmaViews<Tcp>;

/// Time limit for a ring on an emulated machine.
const SLEEP_MAX: Duration = Duration::from_secs(10);

/// Time limit for any race on an emulated machine.
const RACE_MAX: Duration = Duration::from_secs(120);

/// Time within which anything in flight arrives, unless its peer is gone.
const SETTLE_MAX: Duration = Duration::from_secs(20);

/// The shortest wait that yields the processor to the device emulated on it.
const PASS: Duration = Duration::from_micros(20);

struct VerbsGroups {
    limits: Limits,
    rounds: u64,
}

impl Testbed for VerbsGroups {
    type Bench<'b> = Group3;

    fn with(&self, scene: impl FnOnce(&mut Group3)) {
        let member = |Beside { fabric, rows }| {
            let store = fabric.block_store();
            let blocks = store.memory(BLOCK_BYTES_MIN, BlockUse::Both).expect("memory");
            Some(VerbsMember { fabric, rows, blocks })
        };
        let members = meet_all(MEMBERS, &self.limits, ROW_BYTES_MIN).into_iter();
        let members = members.map(member).collect();
        scene(&mut Group3 { members, rounds: self.rounds, opened: 0 });
    }
}

struct VerbsMember {
    fabric: VerbsViews,
    rows: Rows,
    blocks: BlockMemory,
}

/// Three members; a lost one is `None`.
struct Group3 {
    members: Vec<Option<VerbsMember>>,
    rounds: u64,
    /// Number of members that have opened the view.
    opened: usize,
}

impl Group3 {
    fn member(&self, rank: Rank) -> &VerbsMember {
        self.members[rank.index()].as_ref().expect("nobody uses who was lost")
    }

    fn member_mut(&mut self, rank: Rank) -> &mut VerbsMember {
        self.members[rank.index()].as_mut().expect("nobody uses who was lost")
    }

    /// Checks every member once. Returns whether nothing is in flight anywhere.
    fn is_quiet(&mut self) -> bool {
        let mut quiet = true;
        // Connections are built by both ends, so nothing more happens while a peer has yet to open
        // the view.
        let may_build = self.opened >= usize::from(MEMBERS);
        for member in self.members.iter_mut().flatten() {
            member.fabric.check_peers();
            member.fabric.flush();
            let before = taken(&member.fabric);
            member.fabric.carry();
            quiet &= before == taken(&member.fabric);
            quiet &= member.fabric.in_flight() == 0;
            quiet &= !(may_build && member.fabric.is_building());
        }
        quiet
    }
}

/// Returns the number of received notices, which may be answered.
fn taken(fabric: &VerbsViews) -> u64 {
    let counters = fabric.counters();
    counters.notices_taken + counters.block_messages_taken + counters.updates_taken
}

impl Bench for Group3 {
    type Fabric = VerbsViews;

    fn fabric(&mut self, member: Rank) -> &mut VerbsViews {
        &mut self.member_mut(member).fabric
    }

    fn members(&self) -> Vec<NodeId> {
        ids(MEMBERS)
    }

    fn open(&mut self, member: Rank) -> Result<(), ErrorKind> {
        let VerbsMember { fabric, rows, .. } = self.member_mut(member);
        fabric.open(VIEW, &rows.memory())?;
        self.opened += 1;
        Ok(())
    }

    fn row(&self, member: Rank) -> RowWriter<'_> {
        self.member(member).rows.row()
    }

    fn copy(&self, holder: Rank, owner: Rank) -> Row<'_> {
        self.member(holder).rows.rows()[owner.index()]
    }

    fn pass(&mut self) {
        // Members step like polling threads, even while they wait for something else, so that
        // blocks make progress on all members.
        for member in self.members.iter_mut().flatten() {
            member.fabric.carry();
        }
        std::thread::sleep(PASS);
    }

    fn settle(&mut self) {
        // A member that writes to a dead or departed peer finds that out, and then all is quiet.
        let until = Instant::now() + SETTLE_MAX;
        let mut quiet_looks = 0;
        while quiet_looks < 3 && Instant::now() < until {
            quiet_looks = if self.is_quiet() { quiet_looks + 1 } else { 0 };
            std::thread::sleep(PASS * 10);
        }
        if quiet_looks < 3 {
            println!("after {SETTLE_MAX:?} something is still under way");
        }
    }

    fn sleep(&mut self, member: Rank) -> Wake {
        // The others step meanwhile, because that is how they learn that a member is going to
        // sleep.
        let until = Instant::now() + SLEEP_MAX;
        while Instant::now() < until {
            for (rank, other) in self.members.iter_mut().enumerate() {
                if let Some(other) = other.as_mut().filter(|_| rank != member.index()) {
                    other.fabric.carry();
                }
            }
            if self.member_mut(member).fabric.sleep(Duration::from_millis(1)) {
                return Wake::Rung;
            }
        }
        Wake::Overslept
    }

    fn lose(&mut self, member: Rank) -> Result<(), &'static str> {
        self.members[member.index()] = None;
        Ok(())
    }

    fn rounds(&self) -> u64 {
        self.rounds
    }

    fn race(&mut self, actors: [(Rank, &mut dyn Actor<VerbsViews>); 2]) -> Result<(), Breach> {
        let stop = AtomicBool::new(false);
        let mut members: Vec<Option<&mut VerbsMember>> =
            self.members.iter_mut().map(Option::as_mut).collect();
        std::thread::scope(|scope| {
            let racing = actors.map(|(rank, actor)| {
                let member = members[rank.index()].take().expect("two different members");
                let stop = &stop;
                scope.spawn(move || {
                    let ended = act(member, actor, stop);
                    if ended.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    ended
                })
            });
            let [first, second] = racing.map(|thread| thread.join().expect("no panic"));
            first.and(second)
        })
    }
}

impl BlockBench for Group3 {
    /// All members allocated their memory in the same order, so each fabric's first region has the
    /// same number.
    fn block_region(&self) -> Region {
        self.member(Rank::ZERO).blocks.region()
    }

    fn fill_blocks(&mut self, member: Rank, offset: usize, bytes: &[u8]) {
        self.member_mut(member).blocks.write(offset, bytes).expect("inside");
    }

    fn look_blocks(&mut self, member: Rank, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.member(member).blocks.read(offset, &mut bytes).expect("inside");
        bytes
    }
}

fn sleep(fabric: &mut VerbsViews) -> Wake {
    if fabric.sleep(SLEEP_MAX) { Wake::Rung } else { Wake::Overslept }
}

/// Lets an actor take turns until it has finished, or until the other has found a violation.
fn act(
    member: &mut VerbsMember,
    actor: &mut dyn Actor<VerbsViews>,
    stop: &AtomicBool,
) -> Result<(), Breach> {
    let until = Instant::now() + RACE_MAX;
    let VerbsMember { fabric, rows, .. } = member;
    let (row, all) = (rows.row(), rows.rows());
    let mut slept = None;
    let mut turns = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        match actor.turn(&mut Seat { fabric: &mut *fabric, row, rows: all }, slept.take())? {
            Next::Done => return finish(fabric, stop),
            Next::Sleep => slept = Some(sleep(fabric)),
            Next::Turn => {}
        }
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(16) {
            if Instant::now() > until {
                return Err(Breach(format!("after {RACE_MAX:?} the two members are not done")));
            }
            // Steps like a polling thread: rings beyond the first few are sent when answers are
            // processed.
            fabric.carry();
            // The device is emulated on the same processors, so this yields to it.
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// A finished member still answers peers that go to sleep, for as long as the other may need it.
fn finish(fabric: &mut VerbsViews, stop: &AtomicBool) -> Result<(), Breach> {
    for _ in 0..200 {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        fabric.carry();
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[track_caller]
fn assert_kept(what: &str, limits: Limits, rounds: u64, silent: &[&str]) {
    let started = Instant::now();
    let report = run(&VerbsGroups { limits, rounds });
    println!("Verbs, {what}, in {:.1?}:\n{report}", started.elapsed());
    report.assert_kept();
    assert_eq!(report.not_applicable().collect::<Vec<_>>(), silent, "clauses that say nothing");
}

/// The check that rows of 8 KiB cannot decide, because the port allows longer writes.
const SILENT: [&str; 1] = ["address-order"];

#[test]
fn verbs_keep_the_contract() {
    assert_kept("the usual limits", Limits::default(), 400, &SILENT);
}

#[test]
fn verbs_keep_the_contract_with_short_queues() {
    let limits = Limits { depth: 64, signal_every: 5, ..Limits::default() };
    assert_kept("short queues", limits, 200, &SILENT);
}

#[test]
fn verbs_keep_the_contract_without_inline_data() {
    let limits = Limits { inline_bytes_max: Some(0), ..Limits::default() };
    assert_kept("nothing inline", limits, 200, &SILENT);
}

#[test]
fn verbs_keep_the_contract_without_completion_visibility() {
    let limits = Limits { completion_visible: Some(false), ..Limits::default() };
    assert_kept(
        "completions that show nothing",
        limits,
        100,
        &["address-order", "completion-visible"],
    );
}

#[test]
fn blocks_over_verbs_keep_the_contract() {
    for (what, limits) in [
        ("the usual limits", Limits::default()),
        ("short queues", Limits { depth: 64, signal_every: 5, ..Limits::default() }),
        ("nothing inline", Limits { inline_bytes_max: Some(0), ..Limits::default() }),
    ] {
        let report = run_blocks(&VerbsGroups { limits, rounds: 1 });
        println!("Blocks over verbs, {what}:\n{report}");
        report.assert_kept();
        assert_eq!(report.not_applicable().count(), 0, "{what}: clauses that say nothing");
    }
}

/// Devices that place writes out of order guarantee neither address order nor visibility upon
/// completion.
const SILENT_BY_UPDATES: [&str; 2] = ["address-order", "completion-visible"];

/// Returns a device that places writes in every permitted way, and reports that.
fn reordering() -> Profile {
    Profile {
        placement: Placement::BytesReordered,
        placement_delay_ns: 300_000,
        completes_before_visible: true,
        late_read_ns: 20_000,
        jitter_ns: 5_000,
        data_in_order: DataInOrder::No,
        ..Profile::strict()
    }
}

fn assert_kept_out_of_order(what: &str, limits: Limits, seed: u64) {
    let network = device::take_instead(reordering(), seed);
    assert_kept(what, limits, 50, &SILENT_BY_UPDATES);
    let counts = network.counts();
    println!("{what}: {counts:?}");
    assert!(counts.placed_out_of_order > 0 && counts.placed_late > 0, "{counts:?}");
    assert_eq!(counts.not_ready, 0, "a request found no receive");
}

#[test]
fn views_keep_the_contract_with_reordered_bytes() {
    assert_kept_out_of_order("bytes out of order", Limits::default(), 2);
}

#[test]
fn reordered_views_keep_contract_with_minimal_queues() {
    let limits =
        Limits { depth: 64, signal_every: 5, inline_bytes_max: Some(0), ..Limits::default() };
    assert_kept_out_of_order("bytes out of order, short queues, nothing inline", limits, 3);
}

#[test]
fn blocks_keep_the_contract_with_reordered_bytes() {
    let _network = device::take_instead(reordering(), 5);
    let report = run_blocks(&VerbsGroups { limits: Limits::default(), rounds: 1 });
    println!("Blocks, bytes out of order:\n{report}");
    report.assert_kept();
    assert_eq!(report.not_applicable().count(), 0, "clauses that say nothing");
}
