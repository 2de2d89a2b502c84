//! The papers' variants as they were: Derecho before Spindle, and each of its steps.

use tramontane_fixtures::derecho::{self, Active, Delay, Report, Run};

use super::case::{Case, Figure, Machine, Sending, Wait};
use super::machines::Machines;
use super::multicasts;
use super::runs::{Figures, Missing, Model};

/// The papers' systems on the papers' machines.
pub(super) struct Papers<'m>(pub(super) &'m Machines);

impl Model for Papers<'_> {
    fn run(&self, case: &Case, seed: u64) -> Result<Figures, Missing> {
        match case {
            Case::Sending(sending) => run(sending, self.0, seed),
            Case::Transfer(_) | Case::Storage(_) => multicasts::run(self.0, case, seed),
        }
    }
}

/// Messages of each sender: enough for the start not to matter, and for a window to fill often.
fn messages(case: &Sending) -> u64 {
    (12_000 / u64::from(case.senders.of(case.nodes)))
        .clamp(1_000, 2_000)
        .max(5 * u64::from(case.window))
}

fn variant(case: &Sending) -> Result<derecho::Variant, Missing> {
    let variant = case
        .variant
        .derecho()
        .ok_or_else(|| Missing::NotThere("it is no variant of the papers'".into()))?;
    Ok(match case.fixed_batch {
        Some(messages) => variant.in_batches_of(messages.into()),
        None => variant,
    })
}

fn run(case: &Sending, machines: &Machines, seed: u64) -> Result<Figures, Missing> {
    let senders = case.senders.of(case.nodes);
    let setup = Run {
        senders: senders.into(),
        bytes: case.bytes.into(),
        window: case.window.into(),
        messages: messages(case),
        subgroups: case.subgroups.into(),
        active: if case.all_active { Active::All } else { Active::One },
        delay: match case.wait {
            Wait::No => Delay::Ns(0),
            Wait::Ns(wait_ns) => Delay::Ns(wait_ns),
            Wait::ForEver => Delay::ForEver,
        },
        delayed: if case.wait == Wait::No { 0 } else { case.waiting.of(senders).into() },
        upcall_ns: case.upcall_ns,
        copies: case.copies,
        seed,
        ..Run::new(variant(case)?, case.nodes.into(), machines.of(Machine::Spindle))
    };
    let report = derecho::run(&setup);
    if report.is_stalled {
        return Err(Missing::NotThere("the run stalls: a sender never sends".into()));
    }
    Ok(figures(&setup, &report))
}

fn figures(setup: &Run, report: &Report) -> Figures {
    let messages = setup.messages as f64;
    let senders = setup.senders as u64;
    let mut figures = Figures::from([
        (Figure::BytesPerSecond, report.bytes_per_s),
        (Figure::MessagesPerSecond, report.messages_per_s),
        (Figure::LatencyUs, report.latency_ns / 1e3),
        (Figure::Puts, report.puts / messages),
        (Figure::PostingUs, report.posting_ns / 1e3 / messages),
        (Figure::PostingShare, report.posting_share),
        (Figure::BlockedShare, report.blocked_share),
        (Figure::ActiveShare, report.active_share),
        (Figure::SendBatch, report.send_batches.mean()),
        (Figure::ReceiveBatch, report.receive_batches.mean()),
        (Figure::DeliveryBatch, report.delivery_batches.mean()),
        (Figure::SmallSendBatches, report.send_batches.share(|size| size < 5)),
        (
            Figure::WholeDeliveryBatches,
            report.delivery_batches.share(|size| size > 0 && size.is_multiple_of(senders)),
        ),
    ]);
    let iterations = &report.null_iterations;
    if let (Some(first), true) = (iterations.first(), setup.delayed > 0) {
        // The first senders wait.
        figures.insert(Figure::WaitingNulls, *first as f64 / messages);
        if let Some(count) = iterations.get(setup.delayed) {
            figures.insert(Figure::OtherNulls, *count as f64 / messages);
        }
    }
    if let (Some(since), true) = (report.since_previous_ns.first(), setup.delayed > 0) {
        figures.insert(Figure::BetweenUs, since / 1e3);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::case::Variant;
    use super::*;

    #[test]
    fn a_run_of_derecho_has_its_figures() {
        let machines = Machines::load(&Default::default()).expect("they are here");
        let case = Sending { bytes: 100, ..Sending::new(Variant::Spindle, 3) };
        let figures = Papers(&machines).run(&Case::Sending(case), 1).expect("it ran");
        let bytes = figures[&Figure::BytesPerSecond] / figures[&Figure::MessagesPerSecond];
        assert!((bytes - 100.0).abs() < 1e-6, "{bytes}");
        assert!(figures.values().all(|figure| *figure >= 0.0 && figure.is_finite()));
    }
}
