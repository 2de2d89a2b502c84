//! Steps of the view protocol, or of what a host does around it, done wrong by all members: the search of simulated groups must
//! find each that shows at this level, and make the plan that shows it small. Run with `cargo test -p tramontane-conformance --features
//! planted-faults --test planted_view_faults`.
//!
//! `core-nostd/tests/view/planted.rs` finds all of the protocol by itself, but for `BlocksAfterWedge`: it has no large messages. Three are not found here in 1,500 plans: `TrimRecomputed`,
//! `TakeoverTooEarly` and `AcceptsFromSuspected`. Two cannot show here: `GuardFirst`, since columns are posted at the end of a
//! step, when both are there; `SuspectedGoesOn`, since a fabric that copies cuts who is suspected before it could read so.

mod membership_history;

use membership_history::failure::{judged, smallest};
use tramontane_core::view::Fault;
use tramontane_fixtures::membership::{HostFault, Plan};

/// What is planted: in the protocol, around it, or both.
#[derive(Clone, Copy, Debug)]
struct Planted(Option<Fault>, Option<HostFault>);

impl From<Fault> for Planted {
    fn from(fault: Fault) -> Self {
        Self(Some(fault), None)
    }
}

impl From<HostFault> for Planted {
    fn from(fault: HostFault) -> Self {
        Self(None, Some(fault))
    }
}

/// The first of so many plans that finds a fault, and what it says.
fn found(planted: impl Into<Planted>, plans: u64) -> Option<(Plan, Vec<String>)> {
    let Planted(fault, host_fault) = planted.into();
    (0..plans).find_map(|seed| {
        let plan = Plan { fault, host_fault, ..Plan::random(seed) };
        let complaints = judged(&plan).1;
        (!complaints.is_empty()).then_some((plan, complaints))
    })
}

/// Finds a fault, and a small plan that shows it.
fn must_be_found(planted: impl Into<Planted>, plans: u64) {
    let fault = planted.into();
    let (plan, complaints) =
        found(fault, plans).unwrap_or_else(|| panic!("{plans} plans do not find {fault:?}"));
    let (small, tries) = smallest(&plan, &complaints);
    println!("{fault:?}: seed {}: {}\n{tries} tried\n{small}", plan.seed, complaints.join("; "));
    assert!(things(&small) <= THINGS_MAX, "{fault:?}: this is not small:\n{small}");
    assert!(!judged(&small).1.is_empty(), "{fault:?}: the smallest plan does not fail:\n{small}");
}

/// The most that a reader has to keep in mind of a plan: a drawn one has some forty things.
const THINGS_MAX: usize = 16;

fn things(plan: &Plan) -> usize {
    plan.members.len() + plan.subgroups.len() + plan.loads.len() + plan.deeds.len()
}

macro_rules! faults {
    ($($name:ident $fault:expr, $plans:literal)*) => {$(
        #[test]
        fn $name() {
            must_be_found($fault, $plans);
        }
    )*};
}

faults! {
    a_takeover_that_forgets Fault::TakeoverForgets, 400
    a_decision_without_the_echo Fault::EchoSkipped, 200
    no_majority Fault::NoMajority, 200
    a_seal_without_memory Fault::MemoryNotReady, 50
    installing_before_the_trim Fault::InstallsEarly, 400
    a_leaver_that_goes_early Fault::LeaverGoesEarly, 1000
    receiving_after_the_last_counts Fault::ReceivesAfterWedge, 400
    large_messages_that_are_not_sent_again HostFault::LargeNotSentAgain, 400
    large_messages_sent_again_without_their_blocks HostFault::BlocksNotSentAgain, 400
    blocks_that_are_told_before_they_are_whole HostFault::ToldEarly, 50
    blocks_that_count_after_the_last_counts Fault::BlocksAfterWedge, 400
    blocks_that_are_told_and_count_after_the_last_counts
        Planted(Some(Fault::BlocksAfterWedge), Some(HostFault::ToldAfterWedge)), 400
}

/// A node that has wedged has no stage that receives: what its host tells it too late changes nothing (RDM-7).
#[test]
fn blocks_that_are_told_after_the_last_counts_do_no_harm() {
    let told_late = found(HostFault::ToldAfterWedge, 200);
    assert!(told_late.is_none(), "{told_late:?}");
}

/// A plan that shows it needs many members, and stays large.
#[test]
fn trims_from_a_majority_alone() {
    let (plan, complaints) = found(Fault::TrimFromMajority, 100).expect("100 plans find it");
    println!("seed {}: {}", plan.seed, complaints.join("; "));
}
