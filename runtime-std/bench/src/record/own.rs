//! Our own core with Spindle's switches, on the papers' machines: the second column.

use tramontane_core::ids::NodeId;
use tramontane_core::multicast::Switches;
use tramontane_fixtures::payload::Checked;
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::world::{self, Ending, Histogram, Load, Outcome, Plan};

use super::case::{Case, Figure, Machine, Sending, Wait};
use super::machines::Machines;
use super::multicasts;
use super::runs::{Figures, Missing, Model};
use crate::error::BenchError;
use crate::options::techniques_of;

/// Virtual time after which a run is given up.
const LIMIT_NS: u64 = 60_000_000_000;

/// Messages of each sender: of many fewer, so that a run takes no longer than of one.
const MESSAGES: u64 = 500;

/// Our core.
pub(super) struct Own<'m>(pub(super) &'m Machines);

impl Model for Own<'_> {
    fn run(&self, case: &Case, seed: u64) -> Result<Figures, Missing> {
        match case {
            Case::Sending(sending) => run(sending, self.0.of(Machine::SpindleCore), seed),
            Case::Transfer(_) | Case::Storage(_) => multicasts::run(self.0, case, seed),
        }
    }
}

fn run(case: &Sending, profile: &Profile, seed: u64) -> Result<Figures, Missing> {
    let plan = plan(case, profile, seed)?;
    let outcome = world::run(&plan).map_err(|error| BenchError::Setup(error.to_string()))?;
    if outcome.ending != Ending::Calm || !outcome.complaints.is_empty() {
        let ending = outcome.ending;
        return Err(BenchError::Setup(format!("the simulated run ended {ending:?}")).into());
    }
    Ok(figures(case, &plan, &outcome))
}

/// Which of our switches come nearest to a variant.
fn switches(case: &Sending) -> Result<Switches, Missing> {
    if case.fixed_batch.is_some() {
        return Err(Missing::NotThere("our core has no fixed batches".into()));
    }
    Ok(case.variant.derecho().map_or(Switches::all(), techniques_of))
}

fn plan(case: &Sending, profile: &Profile, seed: u64) -> Result<Plan, Missing> {
    let (nodes, senders) = (usize::from(case.nodes), usize::from(case.senders.of(case.nodes)));
    let mut plan = Plan::fixed(nodes, senders, case.window, case.bytes, seed);
    plan.switches = switches(case)?;
    plan.profile = profile.clone();
    plan.profile.delivered_ns += case.upcall_ns;
    if case.copies {
        let byte_ps = profile.copy_far_byte_ps.max(profile.copy_byte_ps);
        plan.profile.build_byte_ps += byte_ps;
        plan.profile.delivered_byte_ps += byte_ps;
        plan.profile.build_ns += profile.copy_ns;
        plan.profile.delivered_ns += profile.copy_ns;
    }
    plan.until_ns = LIMIT_NS;
    plan.checked = Checked::Ends;
    plan.keep_history = false;
    let subgroup = plan.subgroups[0].clone();
    plan.subgroups = vec![subgroup; case.subgroups.into()];
    let active = if case.all_active { usize::from(case.subgroups) } else { 1 };
    let waiting = if case.wait == Wait::No { 0 } else { case.waiting.of(case.nodes) };
    let delay_ns = if let Wait::Ns(delay_ns) = case.wait { delay_ns } else { 0 };
    plan.loads = (0..active)
        .flat_map(|subgroup| (0..senders).map(move |sender| (subgroup, sender)))
        .filter(|(_, sender)| case.wait != Wait::ForEver || *sender >= usize::from(waiting))
        .map(|(subgroup, sender)| {
            let waits = sender < usize::from(waiting);
            let load =
                Load::continuous(NodeId(sender as u32), subgroup, MESSAGES, case.bytes as usize);
            // One that waits sends as long as the others do, and no longer.
            let messages = if waits && delay_ns > 10_000 { MESSAGES / 50 } else { MESSAGES };
            Load { delay_ns: if waits { delay_ns } else { 0 }, messages, ..load }
        })
        .collect();
    Ok(plan)
}

fn figures(case: &Sending, plan: &Plan, outcome: &Outcome) -> Figures {
    let peers = f64::from(case.nodes.max(2) - 1);
    let messages = plan.loads.iter().map(|load| load.messages).max().unwrap_or(1) as f64;
    let processes = outcome.processes.len() as f64;
    let posting_ns = outcome.total(|process| process.posting_ns) as f64;
    let writes = outcome.total(|process| process.counts.writes) as f64;
    let blocked_ns = outcome.total(|process| process.blocked_ns) as f64;
    let sends = outcome.batches(|process| &process.send_batches);
    let deliveries = outcome.batches(|process| &process.delivery_batches);
    let senders = u64::from(case.senders.of(case.nodes));
    Figures::from([
        (Figure::BytesPerSecond, outcome.gigabytes_per_second() * 1e9),
        (Figure::MessagesPerSecond, outcome.messages_per_second()),
        (Figure::LatencyUs, outcome.latency().mean_ns() / 1e3),
        (Figure::Puts, writes / peers / processes / messages),
        (Figure::PostingUs, posting_ns / 1e3 / processes / messages),
        (Figure::PostingShare, outcome.posting_share()),
        (
            Figure::BlockedShare,
            blocked_ns / outcome.duration_ns.max(1) as f64 / plan.loads.len().max(1) as f64,
        ),
        (Figure::SendBatch, sends.mean()),
        (Figure::ReceiveBatch, outcome.batches(|process| &process.receive_batches).mean()),
        (Figure::DeliveryBatch, deliveries.mean()),
        (Figure::SmallSendBatches, share(&sends, |size| size < 5)),
        (Figure::WholeDeliveryBatches, share(&deliveries, |size| size.is_multiple_of(senders))),
    ])
}

/// The share of batches of such sizes.
pub(super) fn share(batches: &Histogram, is_meant: impl Fn(u64) -> bool) -> f64 {
    let counts = batches.counts.iter().filter(|(size, _)| is_meant(**size));
    counts.map(|(_, count)| *count).sum::<u64>() as f64 / batches.batches().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Variant;

    #[test]
    fn a_run_of_our_core_has_its_figures() {
        let machines = Machines::load(&Default::default()).expect("they are here");
        let case = Case::Sending(Sending { bytes: 100, ..Sending::new(Variant::Spindle, 3) });
        let figures = Own(&machines).run(&case, 1).expect("it ran");
        let rates = figures[&Figure::BytesPerSecond] / figures[&Figure::MessagesPerSecond];
        assert!((rates - 100.0).abs() < 1e-6, "{rates}");
        for (figure, value) in figures {
            assert!(value >= 0.0 && value.is_finite(), "{figure:?}: {value}");
        }
    }

    #[test]
    fn declared_senders_that_never_send_have_no_load() {
        let case =
            Sending::new(Variant::Nulls, 4).waits(Wait::ForEver, super::super::case::Who::Half);
        let plan = plan(&case, &Profile::default(), 1).expect("a plan");
        assert_eq!((plan.subgroups[0].senders.len(), plan.loads.len()), (4, 2));
        let idle = super::plan(&Sending::new(Variant::Nulls, 4).idle(3), &Profile::default(), 1);
        let idle = idle.expect("a plan");
        assert_eq!((idle.subgroups.len(), idle.loads.len()), (3, 4));
    }

    #[test]
    fn shares_of_batches() {
        let mut batches = Histogram::default();
        [1, 1, 4, 16, 32].into_iter().for_each(|size| batches.add(size));
        assert_eq!(share(&batches, |size| size < 5), 0.6);
        assert_eq!(share(&batches, |size| size.is_multiple_of(16)), 0.4);
        assert_eq!(share(&Histogram::default(), |_| true), 0.0);
    }
}
