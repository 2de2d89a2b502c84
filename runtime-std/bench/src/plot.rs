//! Bytes a second over members, as SVG.

use std::path::Path;

use plotters::prelude::*;

use crate::error::BenchError;
use crate::report::Row;

/// Draws the rows: a line for each size of message, and the paper's numbers as points.
///
/// # Errors
/// [`BenchError::Setup`] if the file cannot be written.
pub fn draw(rows: &[Row], path: &Path) -> Result<(), BenchError> {
    draw_rows(rows, path)
        .map_err(|error| BenchError::Setup(format!("cannot draw {}: {error}", path.display())))
}

pub(crate) const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 96, 30),
    RGBColor(44, 140, 60),
    RGBColor(148, 80, 170),
    RGBColor(90, 90, 90),
    RGBColor(200, 60, 90),
    RGBColor(20, 150, 160),
    RGBColor(150, 120, 30),
];

fn draw_rows(rows: &[Row], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    // Drawn into memory first, so that a full disk is an error here and not half a file.
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (860, 520)).into_drawing_area();
        area.fill(&WHITE)?;
        let nodes_max = rows.iter().map(|row| row.nodes).max().unwrap_or(2);
        let paper_max = rows.iter().filter_map(|row| row.paper).map(|paper| paper.gigabytes_per_s);
        let top = rows.iter().map(|row| row.bytes_per_s / 1e9).chain(paper_max).fold(0.1, f64::max)
            * 1.15;
        let first = rows.first();
        let title = first.map_or_else(String::new, |row| {
            format!("Delivered at each member, {} fabric, window {}", row.fabric, row.window)
        });
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..f64::from(nodes_max) + 0.5, 0.0..top)?;
        chart
            .configure_mesh()
            .x_desc("members")
            .y_desc("GB/s")
            .x_labels(usize::from(nodes_max).min(17) + 1)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        let mut series: Vec<(u32, String)> = Vec::new();
        for row in rows {
            let key = (row.bytes, row.techniques.clone());
            if !series.contains(&key) {
                series.push(key);
            }
        }
        for ((bytes, techniques), colour) in series.iter().zip(COLOURS.iter().cycle()) {
            let points: Vec<(f64, f64)> = rows
                .iter()
                .filter(|row| row.bytes == *bytes && row.techniques == *techniques)
                .map(|row| (f64::from(row.nodes), row.bytes_per_s / 1e9))
                .collect();
            chart
                .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?
                .label(format!("{bytes} B, techniques: {techniques}"))
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                });
            chart
                .draw_series(points.iter().map(|point| Circle::new(*point, 4, colour.filled())))?;
        }
        let reported: Vec<(f64, f64)> = rows
            .iter()
            .filter_map(|row| Some((f64::from(row.nodes), row.paper?.gigabytes_per_s)))
            .collect();
        if !reported.is_empty() {
            chart
                .draw_series(
                    reported.iter().map(|point| Cross::new(*point, 5, BLACK.stroke_width(2))),
                )?
                .label("the paper's number")
                .legend(|(x, y)| Cross::new((x + 9, y), 5, BLACK.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
    }
    std::fs::write(path, svg)?;
    Ok(())
}
