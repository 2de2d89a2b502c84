//! What a host does around the view protocol, done wrong by all hosts: the search of simulated groups must find each that does
//! harm, and make the plan that shows it small. Run with `cargo test -p tramontane-conformance --features planted-faults
//! --test planted_host_faults`. Faults of the core are patches: `fixtures/faults`.

mod membership_history;

use membership_history::failure::{judged, smallest};
use tramontane_fixtures::membership::{HostFault, Plan};

/// The first of so many plans that finds a fault, and what it says.
fn found(fault: HostFault, plans: u64) -> Option<(Plan, Vec<String>)> {
    (0..plans).find_map(|seed| {
        let plan = Plan { host_fault: Some(fault), ..Plan::random(seed) };
        let complaints = judged(&plan).1;
        (!complaints.is_empty()).then_some((plan, complaints))
    })
}

/// Finds a fault, and a small plan that shows it.
fn must_be_found(fault: HostFault, plans: u64) {
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
    large_messages_that_are_not_sent_again HostFault::LargeNotSentAgain, 400
    large_messages_sent_again_without_their_blocks HostFault::BlocksNotSentAgain, 400
    blocks_that_are_told_before_they_are_whole HostFault::ToldEarly, 50
    suppliers_of_the_view_that_a_joiner_found HostFault::SuppliersOfTheWelcome, 200
    a_group_that_is_formed_again_unasked HostFault::FormsAgain, 400
}

/// A node that has wedged has no stage that receives: what its host tells it too late changes nothing (RDM-7).
#[test]
fn blocks_that_are_told_after_the_last_counts_do_no_harm() {
    let told_late = found(HostFault::ToldAfterWedge, 200);
    assert!(told_late.is_none(), "{told_late:?}");
}
