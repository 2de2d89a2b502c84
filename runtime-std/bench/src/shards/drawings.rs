//! The figures as drawings: latency of one client's messages, and messages a second of many.

use std::path::Path;

use tramontane_local::options::name;

use super::case::Demand;
use super::experiment::Experiment;
use super::report::Row;
use super::system::{Switches, System};
use crate::error::BenchError;
use crate::plot::Drawing;
use crate::spread::Spread;

/// Writes a drawing of each figure whose points are there into a folder.
///
/// # Errors
/// [`BenchError::Setup`] if a file cannot be written.
pub(super) fn write(rows: &[Row], folder: &Path) -> Result<(), BenchError> {
    for rows in rows.chunk_by(|one, other| one.experiment == other.experiment) {
        for demand in [Demand::Low, Demand::Saturating] {
            let drawing = drawing(rows, demand);
            if !drawing.series.is_empty() {
                drawing.write(&folder.join(file(rows[0].experiment, demand)))?;
            }
        }
    }
    Ok(())
}

/// The name of a figure's file.
pub(super) fn file(experiment: Experiment, demand: Demand) -> String {
    let of = match demand {
        Demand::Low => "latency",
        Demand::Saturating => "rate",
    };
    format!("shards-{}-{of}.svg", name(&experiment))
}

fn drawing(rows: &[Row], demand: Demand) -> Drawing {
    let experiment = rows[0].experiment;
    let (unit, what) = match demand {
        Demand::Low => ("us", "latency, one client"),
        Demand::Saturating => ("thousand messages/s", "many clients"),
    };
    let title = format!("{}: {what}", experiment.title());
    let mut drawing = Drawing::new(title, experiment.axis(), unit);
    drawing.is_logarithmic = matches!(experiment, Experiment::Payload | Experiment::Messages);
    for row in rows.iter().filter(|row| row.demand == demand && is_drawn(row)) {
        let Spread { median, min, max } = match demand {
            Demand::Low => row.latency_us,
            Demand::Saturating => row.messages_per_s,
        };
        let scale = if demand == Demand::Low { 1.0 } else { 1e-3 };
        let figure = Spread { median: median * scale, min: min * scale, max: max * scale };
        drawing.add(row.label(), row.over.into(), figure);
    }
    drawing
}

/// Of TRAM the paper's variant and all of ours: the switches alone are in the tables.
fn is_drawn(row: &Row) -> bool {
    row.case.is_none_or(|case| match case.system {
        System::Tram(_, switches) => [Switches::PAPER, Switches::ALL].contains(&switches),
        System::Baseline { .. } => true,
    })
}
