//! The papers' main conclusions, as figures of short runs.

use crate::record::case::Variant::{Baseline, Batching, Nulls, Spindle};
use crate::record::case::{Case, Figure, Machine, Sending, Transfer, Variant, Way};
use crate::record::runs::{Missing, Runs};

use crate::record::claim::Measure;

/// A main figure or ratio of a paper.
pub(super) struct Conclusion {
    /// What it is.
    pub(super) says: &'static str,
    /// Where its runs are.
    pub(super) machine: Machine,
    pub(super) unit: &'static str,
    pub(super) measure: Measure,
    /// At this it turns into its opposite.
    pub(super) turns_at: Option<f64>,
}

const LARGE: usize = 64 << 20;

pub(super) const CONCLUSIONS: &[Conclusion] = &[
    of_spindle("everything on, 16 members", "GB/s", None, |runs| {
        Ok(rate(runs, Sending::new(Spindle, 16))? / 1e9)
    }),
    of_spindle("batching by the baseline, 16 members", "times", Some(1.0), |runs| {
        gain(runs, (Batching, Baseline), 16)
    }),
    of_spindle("everything by the baseline, 16 members", "times", Some(1.0), |runs| {
        gain(runs, (Spindle, Baseline), 16)
    }),
    of_spindle("posts outside the lock by inside, 16 members", "times", Some(1.0), |runs| {
        gain(runs, (Spindle, Nulls), 16)
    }),
    of_spindle("with nulls by without, 4 members", "times", Some(1.0), |runs| {
        gain(runs, (Nulls, Batching), 4)
    }),
    of_spindle("baseline beside one idle subgroup by alone", "times", Some(1.0), |runs| {
        let alone = Sending::new(Baseline, 16);
        Ok(rate(runs, alone.idle(2))? / rate(runs, alone)?)
    }),
    of_spindle("posting's share of the baseline's time", "%", None, |runs| {
        let case = Case::Sending(Sending::new(Baseline, 16));
        Ok(100.0 * runs.figure(case, Figure::PostingShare)?)
    }),
    Conclusion {
        says: "a transfer of 64 MiB to 3 (Table 1)",
        machine: Machine::Stampede,
        unit: "ms",
        measure: |runs| latency_ms(runs, Machine::Stampede, Way::Pipeline, 4),
        turns_at: None,
    },
    Conclusion {
        says: "tree by pipeline, 16 members",
        machine: Machine::Fractus,
        unit: "times",
        measure: |runs| by_pipeline(runs, Way::Tree),
        turns_at: Some(1.0),
    },
    Conclusion {
        says: "chain by pipeline, 16 members",
        machine: Machine::Fractus,
        unit: "times",
        measure: |runs| by_pipeline(runs, Way::Chain),
        turns_at: Some(1.0),
    },
    Conclusion {
        says: "63 copies by 15, pipeline",
        machine: Machine::Sierra,
        unit: "times",
        measure: |runs| {
            let of = |nodes| latency_ms(runs, Machine::Sierra, Way::Pipeline, nodes);
            Ok(of(64)? / of(16)?)
        },
        turns_at: None,
    },
];

const fn of_spindle(
    says: &'static str,
    unit: &'static str,
    turns_at: Option<f64>,
    measure: Measure,
) -> Conclusion {
    Conclusion { says, machine: Machine::Spindle, unit, measure, turns_at }
}

fn rate(runs: &Runs<'_>, sending: Sending) -> Result<f64, Missing> {
    runs.figure(Case::Sending(sending), Figure::BytesPerSecond)
}

fn gain(runs: &Runs<'_>, (with, without): (Variant, Variant), nodes: u16) -> Result<f64, Missing> {
    Ok(rate(runs, Sending::new(with, nodes))? / rate(runs, Sending::new(without, nodes))?)
}

fn latency_ms(runs: &Runs<'_>, machine: Machine, way: Way, nodes: usize) -> Result<f64, Missing> {
    let case = Case::Transfer(Transfer::new(machine, way, nodes, LARGE));
    Ok(runs.figure(case, Figure::LatencyUs)? / 1e3)
}

fn by_pipeline(runs: &Runs<'_>, way: Way) -> Result<f64, Missing> {
    let of = |way| latency_ms(runs, Machine::Fractus, way, 16);
    Ok(of(way)? / of(Way::Pipeline)?)
}
