//! The contract that every `Fabric` must meet: one generic test per property, which runs over every
//! fabric.
//!
//! A fabric provides a [`Testbed`], which creates small groups of members, lets traffic flow, and
//! provokes failures if it can. [`run`] then judges the fabric by every [`Clause`], each on a fresh
//! group, and returns a [`Report`]: the clauses by id, each with its verdict. A clause that cannot
//! be tested on a fabric is listed as not applicable, with the reason; so is a clause that can be
//! tested only partly. No clause is omitted.
//!
//! Start with [`Testbed`] and [`Bench`]. The following test runs a clause on the simulated fabric:
//!
//! ```
//! # use tramontane_contract::{Actor, Bench, Breach, MEMBERS, ROW_BYTES_MIN, Testbed};
//! # use tramontane_contract::{VIEW, Wake, run_chosen};
//! # use tramontane_core::fabric::{ErrorKind, Fabric as _, HostFabric as _, ViewPlan};
//! # use tramontane_core::fabric::ViewRows as _;
//! # use tramontane_core::{ids::{NodeId, Rank}, memory::{Row, RowWriter}};
//! # use tramontane_fixtures::memory::MemberRows;
//! # use tramontane_fixtures::network::{Network, SharedNetwork, SimFabric};
//! # use tramontane_fixtures::profile::Profile;
//! const NODES: [NodeId; MEMBERS as usize] = [NodeId(1), NodeId(2), NodeId(3)];
//! struct Simulated;
//! struct Group(SharedNetwork, Vec<(SimFabric, MemberRows)>);
//!
//! impl Testbed for Simulated {
//!     type Bench<'b> = Group;
//!     fn with(&self, scene: impl FnOnce(&mut Group)) {
//!         let network = Network::new(Profile::default(), &NODES, 1).shared();
//!         let members = [Rank(0), Rank(1), Rank(2)].map(|own| {
//!             let mut fabric = SimFabric::start(&network, own.index());
//!             let plan = ViewPlan::with_sizes(VIEW, own, &NODES, &[ROW_BYTES_MIN; 3], 42);
//!             let rows = fabric.rows(&plan).expect("memory");
//!             (fabric, rows)
//!         });
//!         scene(&mut Group(network, members.into()));
//!     }
//! }
//! impl Bench for Group {
//!     type Fabric = SimFabric;
//!     fn fabric(&mut self, member: Rank) -> &mut SimFabric { &mut self.1[member.index()].0 }
//!     fn settle(&mut self) { self.0.borrow_mut().advance(10_000_000); }
//! #   fn members(&self) -> Vec<NodeId> { NODES.to_vec() }
//! #   fn open(&mut self, member: Rank) -> Result<(), ErrorKind> {
//! #       let (fabric, rows) = &mut self.1[member.index()];
//! #       fabric.open(VIEW, &rows.memory())
//! #   }
//! #   fn row(&self, member: Rank) -> RowWriter<'_> { self.1[member.index()].1.row() }
//! #   fn copy(&self, holder: Rank, owner: Rank) -> Row<'_> {
//! #       self.1[holder.index()].1.rows()[owner.index()]
//! #   }
//! #   fn pass(&mut self) { self.0.borrow_mut().advance(100); }
//! #   fn sleep(&mut self, _: Rank) -> Wake { Wake::Overslept }
//! #   fn lose(&mut self, _: Rank) -> Result<(), &'static str> { Err("not in this example") }
//! #   fn rounds(&self) -> u64 { 1 }
//! #   fn race(&mut self, _: [(Rank, &mut dyn Actor<SimFabric>); 2]) -> Result<(), Breach> {
//! #       Err(Breach("this example has no threads".into()))
//! #   }
//!     // ... and the other methods: rows, the passing of time, failures, sleep.
//! }
//!
//! let report = run_chosen(&Simulated, |id| id == "write-lands-exactly");
//! report.assert_kept();
//! assert_eq!(report.entries.len(), 1);
//! ```
//!
//! | module | clauses about |
//! |---|---|
//! | `promises` | capabilities, and calls that return at once |
//! | `landing` | bytes that land only at their target |
//! | `refusal` | posts that must be refused without any effect |
//! | `crowding` | full queues |
//! | `ordering` | order within a write, between writes, and of content and guard |
//! | `values` | the value of a write, and the meaning of a completion |
//! | `life` | open, ready, cut, retire |
//! | `opening` | memory that `open` must refuse |
//! | `losing` | lost peers |
//! | `sleeping` | wakeups |
//! | `blocks` | blocks, on fabrics that carry them ([`run_blocks`]) |
//! | `regions` | regions with permissions, and many views, on fabrics that have them ([`run_regions`]) |
//!
//! The clauses use a fabric only through its trait. They compare bytes that they read from the
//! rows, as a member would.
//!
//! The clauses are tested themselves: `fixtures/tests/contract` breaks a fabric in a few dozen
//! ways, and the clause meant for each defect must detect it.

mod blocks;
mod crowding;
mod landing;
mod life;
mod losing;
mod opening;
mod ordering;
mod promises;
mod refusal;
mod regions;
mod report;
mod scene;
mod sleeping;
mod testbed;
mod values;

pub use blocks::{BLOCK_BYTES_MIN, BlockBench, clauses as block_clauses};
pub use regions::{
    PROCESSES, Process, RegionBench, RegionTestbed, Turns, interleave, race_in_threads,
    region_clauses, run_regions, run_regions_chosen,
};
pub use report::{Breach, Clause, ClauseResult, Finding, Report, ReportEntry, Verdict};
pub use testbed::{Actor, Bench, MEMBERS, Next, ROW_BYTES_MIN, Seat, Testbed, VIEW, Wake};

/// Returns all clauses of the contract, in the order in which they are run.
#[must_use]
pub fn clauses<B: Bench>() -> Vec<Clause<B>> {
    [
        promises::clauses(),
        landing::clauses(),
        refusal::clauses(),
        crowding::clauses(),
        ordering::clauses(),
        values::clauses(),
        life::clauses(),
        opening::clauses(),
        losing::clauses(),
        sleeping::clauses(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Judges a fabric by every clause, each with its own group.
pub fn run<T: Testbed>(testbed: &T) -> Report {
    run_chosen(testbed, |_| true)
}

/// Judges a fabric by the clauses with the chosen ids.
pub fn run_chosen<T: Testbed>(testbed: &T, chosen: impl Fn(&str) -> bool) -> Report {
    let mut report = Report::default();
    for index in 0..clauses::<T::Bench<'static>>().len() {
        if !chosen(clauses::<T::Bench<'static>>()[index].id) {
            continue;
        }
        testbed.with(|bench| report.add(&clauses()[index], bench));
    }
    report
}

/// Judges a fabric that carries blocks by every clause about them, each with its own group.
pub fn run_blocks<T: Testbed>(testbed: &T) -> Report
where
    for<'b> T::Bench<'b>: BlockBench,
{
    let mut report = Report::default();
    for index in 0..block_clauses::<T::Bench<'static>>().len() {
        testbed.with(|bench| report.add(&block_clauses()[index], bench));
    }
    report
}
