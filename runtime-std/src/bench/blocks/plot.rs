//! Milliseconds over members, as SVG: of the experiments that vary the members.

use std::path::Path;

use plotters::prelude::*;

use super::command::Experiment;
use super::report::Row;
use crate::bench::BenchError;
use crate::bench::plot::COLOURS;

/// Draws a line for each algorithm and size, both axes logarithmic.
///
/// # Errors
/// [`BenchError::Setup`] if there is nothing to draw or the file cannot be written.
pub(super) fn draw(rows: &[Row], path: &Path) -> Result<(), BenchError> {
    let is_drawn = |row: &&Row| matches!(row.experiment, Experiment::Algorithms | Experiment::Scale);
    let rows: Vec<&Row> = rows.iter().filter(is_drawn).collect();
    if rows.is_empty() {
        let what = "nothing to draw: --plot is for the experiments algorithms and scale";
        return Err(BenchError::Arguments(what.into()));
    }
    draw_rows(&rows, path)
        .map_err(|error| BenchError::Setup(format!("cannot draw {}: {error}", path.display())))
}

fn draw_rows(rows: &[&Row], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (860, 520)).into_drawing_area();
        area.fill(&WHITE)?;
        let most = rows.iter().map(|row| row.nodes).max().unwrap_or(2) as f64;
        let times = || rows.iter().map(|row| row.latency_ms);
        let (low, high) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
        let mut chart = ChartBuilder::on(&area)
            .caption("One message to all members, simulated", ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d((2.0..most * 1.1).log_scale(), (low * 0.8..high * 1.3).log_scale())?;
        chart.configure_mesh().x_desc("members").y_desc("ms").light_line_style(WHITE.mix(0.0)).draw()?;
        let mut series: Vec<(Experiment, &str, usize)> = Vec::new();
        for row in rows {
            let key = (row.experiment, row.algorithm, row.bytes);
            if !series.contains(&key) {
                series.push(key);
            }
        }
        for (key, colour) in series.iter().zip(COLOURS.iter().cycle()) {
            let of_key = rows.iter().filter(|row| (row.experiment, row.algorithm, row.bytes) == *key);
            let points: Vec<(f64, f64)> = of_key.map(|row| (row.nodes as f64, row.latency_ms)).collect();
            chart
                .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?
                .label(format!("{}, {} MiB", key.1, key.2 >> 20))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
    }
    std::fs::write(path, svg)?;
    Ok(())
}
