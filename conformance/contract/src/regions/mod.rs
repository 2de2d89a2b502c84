//! Regions with write permissions, and many views open at once, on fabrics that support them
//! ([`run_regions`]).
//!
//! Every view here has two members, as in protocols whose writers change. A scene opens and retires
//! views one by one, while others are in use.
//!
//! | module | clauses about |
//! |---|---|
//! | `views` | many views at once, which share regions |
//! | `rights` | write permissions: none at first, then those that the owner grants |
//! | `denial` | revoked permissions, and unaffected traffic |
//! | `carrying` | values, completions, full queues, and waking an owner that sleeps |
//! | `order` | content and guard, in one list and in consecutive lists |
//! | `reading` | reads of a peer's region |
//! | `bounds` | calls that must be refused without any effect |
//! | `ending` | processes that die, and views that end |

mod bounds;
mod carrying;
mod denial;
mod ending;
mod order;
mod reading;
mod rights;
mod scene;
mod testbed;
mod views;

pub use testbed::{
    PROCESSES, Process, RegionBench, RegionTestbed, Turns, interleave, race_in_threads,
};

use crate::report::{Clause, Report};

/// Returns all clauses about regions and many views, in the order in which they are run.
#[must_use]
pub fn region_clauses<B: RegionBench>() -> Vec<Clause<B>> {
    [
        views::clauses(),
        rights::clauses(),
        denial::clauses(),
        carrying::clauses(),
        order::clauses(),
        reading::clauses(),
        bounds::clauses(),
        ending::clauses(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Judges a fabric by every clause about regions and many views, each with its own processes.
pub fn run_regions<T: RegionTestbed>(testbed: &T) -> Report {
    run_regions_chosen(testbed, |_| true)
}

/// Judges a fabric by the clauses about regions with the chosen ids.
pub fn run_regions_chosen<T: RegionTestbed>(testbed: &T, chosen: impl Fn(&str) -> bool) -> Report {
    let mut report = Report::default();
    for index in 0..region_clauses::<T::Bench<'static>>().len() {
        if !chosen(region_clauses::<T::Bench<'static>>()[index].id) {
            continue;
        }
        testbed.with(|bench| report.add(&region_clauses()[index], bench));
    }
    report
}
