//! Milliseconds as SVG, over members or whatever else varies: the same drawing for simulated and
//! for real groups.

use std::path::Path;

use plotters::prelude::*;

use super::experiment::Experiment;
use super::report::Row;
use crate::error::BenchError;
use crate::plot::COLOURS;
use crate::spread::Spread;
use tramontane_local::options::name;

/// Of the whole drawing, and of what stands beside the lines, in pixels.
const WIDTH: u32 = 1120;
const LEGEND_WIDTH: u32 = 340;
const HEIGHT: u32 = 560;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// One line of a drawing.
pub(super) struct Series {
    pub(super) label: String,
    /// Where, and milliseconds there; where they spread, that is drawn too.
    pub(super) points: Vec<(f64, Spread)>,
}

/// What is drawn; both axes are logarithmic.
pub(super) struct Drawing {
    pub(super) title: String,
    /// What the horizontal axis counts.
    pub(super) over: &'static str,
    pub(super) series: Vec<Series>,
}

impl Drawing {
    /// What was simulated with several numbers of members: a line for each algorithm and size.
    ///
    /// # Errors
    /// [`BenchError::Arguments`] if there is nothing of that.
    pub(super) fn simulated(rows: &[Row]) -> Result<Self, BenchError> {
        let mut drawing = Self {
            title: "One message to all members, simulated".to_owned(),
            over: "members",
            series: Vec::new(),
        };
        for row in rows {
            if matches!(row.experiment, Experiment::Algorithms | Experiment::Scale) {
                let label = format!(
                    "{}: {}, {} MiB",
                    name(&row.experiment),
                    row.algorithm,
                    row.bytes >> 20
                );
                drawing.add(label, row.nodes as f64, Spread::of(&[row.latency_ms]));
            }
        }
        if drawing.series.is_empty() {
            let what = "nothing to draw: --plot is for the experiments algorithms and scale, and for real fabrics";
            return Err(BenchError::Arguments(what.into()));
        }
        Ok(drawing)
    }

    /// Adds a point to the line of that label.
    pub(super) fn add(&mut self, label: String, place: f64, ms: Spread) {
        match self.series.iter_mut().find(|series| series.label == label) {
            Some(series) => series.points.push((place, ms)),
            None => self.series.push(Series { label, points: vec![(place, ms)] }),
        }
    }

    /// Whether the line of that label has a point there.
    pub(super) fn has(&self, label: &str, place: f64) -> bool {
        let of_label = self.series.iter().filter(|series| series.label == label);
        of_label.flat_map(|series| &series.points).any(|(at, _)| *at == place)
    }

    /// Writes it to a file.
    ///
    /// # Errors
    /// [`BenchError::Setup`] if the file cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<(), BenchError> {
        let failed =
            |why: String| BenchError::Setup(format!("cannot draw {}: {why}", path.display()));
        // Drawn into memory first, so that a full disk is an error here and not half a file.
        let svg = self.svg().map_err(|error| failed(error.to_string()))?;
        std::fs::write(path, svg).map_err(|error| failed(error.to_string()))
    }

    fn points(&self) -> impl Iterator<Item = &(f64, Spread)> {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// Every place at which there is a point, once.
    fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self.points().map(|(place, _)| *place).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    fn svg(&self) -> Result<String, Box<dyn std::error::Error>> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = area.split_horizontally(WIDTH - LEGEND_WIDTH);
        self.draw_lines(&left)?;
        self.draw_legend(&right)?;
        area.present()?;
        drop((left, right, area));
        Ok(svg)
    }

    fn draw_lines(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let places = self.places();
        let (first, last) =
            (places.first().unwrap_or(&1.0) * 0.9, places.last().unwrap_or(&1.0) * 1.1);
        let low = self.points().map(|(_, ms)| ms.min).fold(f64::MAX, f64::min) * 0.8;
        let high = self.points().map(|(_, ms)| ms.max).fold(0.0, f64::max) * 1.25;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(
                (first..last).log_scale().with_key_points(places),
                (low..high).log_scale().with_key_points(ticks(low, high)),
            )?;
        chart
            .configure_mesh()
            .x_desc(self.over)
            .y_desc("ms")
            .x_label_formatter(&|place| counted(*place))
            .y_label_formatter(&|ms| short(*ms))
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        for (index, Series { points, .. }) in self.series.iter().enumerate() {
            let (colour, mark) = looks(index);
            let line = points.iter().map(|(place, ms)| (*place, ms.median));
            chart.draw_series(LineSeries::new(line.clone(), colour.stroke_width(2)))?;
            chart.draw_series(line.map(|point| Circle::new(point, 4, mark)))?;
            let spreads = points.iter().map(|(place, ms)| [(*place, ms.min), (*place, ms.max)]);
            chart.draw_series(spreads.map(|ends| PathElement::new(ends, colour.mix(0.4))))?;
        }
        Ok(())
    }

    /// Beside the lines, since there may be as many as fill a drawing.
    fn draw_legend(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        for (index, (Series { label, .. }, y)) in
            self.series.iter().zip((50..).step_by(18)).enumerate()
        {
            let (colour, mark) = looks(index);
            area.draw(&PathElement::new([(4, y), (28, y)], colour.stroke_width(2)))?;
            area.draw(&Circle::new((16, y), 4, mark))?;
            area.draw(&Text::new(label.as_str(), (36, y - 6), ("sans-serif", 13)))?;
        }
        Ok(())
    }
}

/// How a line, and its points, are drawn: the colours come again with empty points.
fn looks(index: usize) -> (RGBColor, ShapeStyle) {
    let colour = COLOURS[index % COLOURS.len()];
    let is_full = (index / COLOURS.len()).is_multiple_of(2);
    (colour, if is_full { colour.filled() } else { colour.stroke_width(1) })
}

/// Round figures between two bounds, enough of them for any range.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = match (high / low).log10() {
        ..0.8 => &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
        ..2.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

/// A number without the zeros at its end.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A count as short as it is whole: `12`, `256 Ki`, `64 Mi`.
pub(super) fn counted(count: f64) -> String {
    let count = count.round() as u64;
    match (count % (1 << 20), count % (1 << 10)) {
        (0, _) if count > 0 => format!("{} Mi", count >> 20),
        (_, 0) if count > 0 => format!("{} Ki", count >> 10),
        _ => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_one_label_are_one_line_and_all_is_drawn() {
        let mut drawing = Drawing { title: "T & T".into(), over: "bytes", series: Vec::new() };
        let spread = |median: f64| Spread { median, min: median / 2.0, max: median * 2.0 };
        drawing.add("one".into(), 1024.0, spread(1.0));
        drawing.add("other".into(), 1024.0, spread(3.0));
        drawing.add("one".into(), 2_097_152.0, spread(9.0));
        assert_eq!(
            drawing.series.iter().map(|series| series.points.len()).collect::<Vec<_>>(),
            [2, 1]
        );
        let svg = drawing.svg().expect("drawn");
        assert_eq!(svg.matches("<circle").count(), 3 + 2, "{svg}");
        for text in ["one", "other", "T &amp; T", "1 Ki", "2 Mi", "bytes", "ms"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
    }

    #[test]
    fn any_range_has_round_figures() {
        assert_eq!(ticks(120.0, 450.0), [120.0, 150.0, 200.0, 250.0, 300.0, 400.0]);
        assert_eq!(
            ticks(0.08, 3.0).into_iter().map(short).collect::<Vec<_>>(),
            ["0.1", "0.2", "0.5", "1", "2"]
        );
        assert_eq!(ticks(0.5, 2000.0).len(), 4);
    }

    #[test]
    fn one_point_is_a_drawing_too() {
        let mut drawing = Drawing { title: String::new(), over: "members", series: Vec::new() };
        drawing.add("alone".into(), 4.0, Spread::of(&[0.2]));
        assert_eq!(drawing.svg().expect("drawn").matches("<circle").count(), 1 + 1);
    }
}
