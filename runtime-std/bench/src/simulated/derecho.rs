//! Continuous sending of Derecho as Spindle's paper describes it: counters without bytes.

use tramontane_fixtures::derecho::{self, Delay, Report, Run};
use tramontane_fixtures::profile::Profile;

use super::figures::Figures;
use super::{Case, MESSAGES};
use crate::error::BenchError;

/// What a case's runs share.
pub(super) struct Derecho<'c> {
    pub(super) case: &'c Case,
    pub(super) profile: &'c Profile,
    pub(super) variant: derecho::Variant,
}

impl Derecho<'_> {
    /// One run.
    ///
    /// # Errors
    /// [`BenchError::Setup`] if it does not end as it should.
    pub(super) fn run(&self, seed: u64) -> Result<Figures, BenchError> {
        let setup = self.setup(seed);
        let report = ended(derecho::run(&setup))?;
        let others_alone = if setup.delayed > 0 && setup.delayed < setup.senders {
            let others = Run { senders: setup.senders - setup.delayed, delayed: 0, ..setup };
            Some(report.bytes_per_s / ended(derecho::run(&others))?.bytes_per_s)
        } else {
            None
        };
        Ok(Figures { others_alone, ..figures(self.case, &report) })
    }

    fn setup(&self, seed: u64) -> Run {
        let Case { nodes, senders, bytes, window, messages, delayed, delay_us } = *self.case;
        Run {
            senders: senders.into(),
            bytes: bytes.into(),
            window: window.into(),
            messages: messages.unwrap_or(MESSAGES),
            delay: Delay::Ns(delay_us * 1_000),
            delayed: delayed.into(),
            seed,
            ..Run::new(self.variant, nodes.into(), self.profile)
        }
    }
}

/// The report of a run that went on to its end.
fn ended(report: Report) -> Result<Report, BenchError> {
    if report.is_stalled {
        return Err(BenchError::Setup("the simulated run stalled: nothing was delivered".into()));
    }
    Ok(report)
}

/// The figures of a run, but for what it is compared with.
fn figures(case: &Case, report: &Report) -> Figures {
    let members = f64::from(case.nodes);
    let peers = f64::from(case.nodes.saturating_sub(1).max(1));
    Figures {
        posting_share: report.posting_share,
        blocked_share: report.blocked_share,
        // Its three predicates are tested one by one: there are no steps.
        idle_share: None,
        send_batch: report.send_batches.mean(),
        receive_batch: report.receive_batches.mean(),
        delivery_batch: report.delivery_batches.mean(),
        latency_us: report.latency_ns / 1e3,
        // What a member delivers is what all have sent.
        writes_per_message: report.writes * members / report.delivered.max(1.0) / peers,
        nulls: report.nulls_sent.iter().sum::<u64>() as f64,
        messages_per_s: report.messages_per_s,
        bytes_per_s: report.bytes_per_s,
        others_alone: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: Case = Case {
        nodes: 3,
        senders: 2,
        bytes: 100,
        window: 10,
        messages: Some(50),
        delayed: 0,
        delay_us: 0,
    };

    fn run(case: &Case, variant: derecho::Variant) -> Figures {
        let profile = Profile::default();
        Derecho { case, profile: &profile, variant }.run(1).expect("it ends")
    }

    #[test]
    fn without_batches_each_message_is_written_once_and_acknowledged_twice_by_each_member() {
        let figures = run(&CASE, derecho::Variant::UNBATCHED);
        // One write of the message, three of receptions, three of deliveries; that of the message
        // is of its sender alone.
        assert_eq!(figures.writes_per_message, 7.0);
        assert_eq!(
            (figures.send_batch, figures.receive_batch, figures.delivery_batch),
            (1.0, 1.0, 1.0)
        );
        assert!((figures.bytes_per_s / figures.messages_per_s - 100.0).abs() < 1e-6);
        assert_eq!((figures.idle_share, figures.others_alone), (None, None));
    }

    #[test]
    fn the_first_senders_wait_and_nulls_keep_the_others_from_waiting() {
        let case = Case { delayed: 1, delay_us: 1_000, ..CASE };
        let alone = |variant| run(&case, variant).others_alone.expect("one waits");
        assert!(alone(derecho::Variant::BATCHING) < 0.1);
        assert!(alone(derecho::Variant::NULLS) > 0.5);
        let all_wait = run(&Case { delayed: 2, ..case }, derecho::Variant::NULLS);
        assert_eq!(all_wait.others_alone, None);
    }

    #[test]
    fn a_run_that_stalls_has_no_figures() {
        let case = Case { delayed: 1, ..CASE };
        let profile = Profile::default();
        let variant = derecho::Variant::BATCHING;
        let setup = Derecho { case: &case, profile: &profile, variant }.setup(1);
        let told = ended(derecho::run(&Run { delay: Delay::ForEver, ..setup }));
        assert!(told.expect_err("it stalls").to_string().contains("stalled"));
    }
}
