//! The contract can fail: fabrics that are spoilt in one way each, and the clause that must find it.
//!
//! A checker that never says no is not a checker. Each line of the table below puts one fault around the
//! simulated fabric; the clause beside it must be broken by it. Every clause stands in the table at least
//! once, and the same wrapper without a fault keeps the whole contract.

mod fault;
#[path = "../testbeds/simulated.rs"]
mod simulated;
mod spoilt;

use fault::{Fault, TABLE};
use simulated::{Simulated, Wrap};
use spoilt::Spoilt;
use tramontane_conformance::contract::{Testbed, Verdict, clauses, run, run_chosen};
use tramontane_core::fabric::Promises;
use tramontane_fixtures::fabric::SimFabric;
use tramontane_fixtures::profile::Profile;

impl Wrap for Fault {
    type Fabric<'m> = Spoilt<SimFabric<'m>>;

    fn wrap<'m>(&self, inner: SimFabric<'m>) -> Spoilt<SimFabric<'m>> {
        Spoilt::new(inner, *self)
    }
}

fn testbed(fault: Fault) -> Simulated<Fault> {
    let usual = Profile::default();
    let profile = match fault {
        Fault::ClaimsAddressOrder => usual.without(Promises::ADDRESS_ORDER),
        Fault::ClaimsWriteOrder => usual.without(Promises::WRITE_ORDER),
        Fault::ClaimsVisibleCompletions => usual.without(Promises::COMPLETION_VISIBLE),
        _ => usual,
    };
    Simulated { profile, seed: 1, wrap: fault }
}

#[test]
fn every_fault_is_found_by_the_clause_that_is_meant_for_it() {
    let mut missed = Vec::new();
    for (fault, id) in TABLE {
        let report = run_chosen(&testbed(*fault), |clause| clause == *id);
        let verdict = report.verdict(id).unwrap_or_else(|| panic!("there is no clause {id}"));
        println!("{fault:?}: {id}: {verdict}");
        if !matches!(verdict, Verdict::Broken(_)) {
            missed.push(format!("{fault:?} is not found by {id}: {verdict}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn every_clause_has_a_fault_that_it_finds() {
    let ids = clauses::<<Simulated<Fault> as Testbed>::Bench<'static>>()
        .into_iter()
        .map(|clause| clause.id);
    let untried: Vec<&str> =
        ids.filter(|id| TABLE.iter().all(|(_, clause)| clause != id)).collect();
    assert_eq!(untried, [""; 0], "clauses that were never seen to fail");
}

#[test]
fn the_wrapper_without_a_fault_keeps_the_contract() {
    run(&testbed(Fault::None)).assert_kept();
}
