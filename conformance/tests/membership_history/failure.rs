//! A plan that fails, and the smallest that fails in the same way.

use tramontane_fixtures::membership::{Outcome, Plan, run, shrink};

use super::complaints;

/// Plans that are tried to make a failing one smaller.
const TRIES_MAX: usize = 2_000;

/// Runs a plan and judges it. A panic is a complaint like any other.
pub fn judged(plan: &Plan) -> (Option<Outcome>, Vec<String>) {
    let done = std::panic::catch_unwind(|| {
        let outcome = run(plan);
        let complaints = complaints(plan, &outcome);
        (outcome, complaints)
    });
    match done {
        Ok((outcome, complaints)) => (Some(outcome), complaints),
        Err(cause) => {
            let text = cause.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            (None, vec![format!("panic: {text}")])
        }
    }
}

/// The smallest plan that fails as this one does, and how many plans were tried.
pub fn smallest(plan: &Plan, complaints: &[String]) -> (Plan, usize) {
    let kind = |complaint: &String| complaint.split(':').next().unwrap_or_default().to_owned();
    let meant = kind(&complaints[0]);
    shrink(plan, TRIES_MAX, |plan| judged(plan).1.iter().any(|complaint| kind(complaint) == meant))
}
