//! Figures as SVG, over members or another variable.

use std::path::Path;

use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use crate::error::BenchError;
use crate::spread::Spread;

/// Sizes of the whole drawing, and of the labels around the lines, in pixels.
const WIDTH: u32 = 1120;
const LEGEND_WIDTH: u32 = 340;
const HEIGHT: u32 = 560;

const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 96, 30),
    RGBColor(44, 140, 60),
    RGBColor(148, 80, 170),
    RGBColor(90, 90, 90),
    RGBColor(200, 60, 90),
    RGBColor(20, 150, 160),
    RGBColor(150, 120, 30),
];

/// Lengths of a dash and of the gap after it, in pixels.
const DASHES: (i32, i32) = (6, 4);

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

type Chart<'a, X, Y> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>;

/// The stroke that connects the points of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stroke {
    Solid,
    Dashed,
    /// None: the points are drawn as large crosses.
    None,
}

/// One line of a drawing.
pub(crate) struct DrawnSeries {
    pub(crate) label: String,
    pub(crate) stroke: Stroke,
    /// The number of its colour.
    pub(crate) hue: usize,
    /// The positions and their figures, drawn with their spread if there is one.
    pub(crate) points: Vec<(f64, Spread)>,
}

/// A drawing.
pub(crate) struct Drawing {
    pub(crate) title: String,
    /// The label of the horizontal axis.
    pub(crate) over: String,
    /// The unit of the figures.
    pub(crate) unit: String,
    /// Whether both axes are logarithmic.
    pub(crate) is_logarithmic: bool,
    /// Whether only the horizontal axis is logarithmic.
    pub(crate) has_logarithmic_places: bool,
    pub(crate) series: Vec<DrawnSeries>,
}

impl Drawing {
    /// Creates a drawing without lines.
    pub(crate) fn new(title: String, over: String, unit: String) -> Self {
        let (is_logarithmic, has_logarithmic_places) = (false, false);
        Self { title, over, unit, is_logarithmic, has_logarithmic_places, series: Vec::new() }
    }

    /// Writes the drawing to a file.
    ///
    /// # Errors
    /// Fails with [`BenchError::Setup`] if the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), BenchError> {
        let failed =
            |why: String| BenchError::Setup(format!("cannot draw {}: {why}", path.display()));
        // The drawing is rendered in memory first, so that a full disk causes an error rather than
        // a partial file.
        let svg = self.svg().map_err(|error| failed(error.to_string()))?;
        std::fs::write(path, svg).map_err(|error| failed(error.to_string()))
    }

    fn points(&self) -> impl Iterator<Item = &(f64, Spread)> {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// Returns every position that has a point, once.
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
        let mut chart = ChartBuilder::on(area);
        chart.caption(&self.title, ("sans-serif", 20)).margin(14);
        chart.x_label_area_size(42).y_label_area_size(64);
        if self.is_logarithmic {
            let over = (first..last).log_scale().with_key_points(places);
            let figures = (low..high).log_scale().with_key_points(ticks(low, high));
            self.draw_chart(chart.build_cartesian_2d(over, figures)?)
        } else if self.has_logarithmic_places {
            let over = (first..last).log_scale().with_key_points(places);
            self.draw_chart(chart.build_cartesian_2d(over, 0.0..high)?)
        } else {
            self.draw_chart(chart.build_cartesian_2d(0.0..last, 0.0..high)?)
        }
    }

    fn draw_chart<X, Y>(&self, mut chart: Chart<'_, X, Y>) -> Result<(), Box<dyn std::error::Error>>
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        chart
            .configure_mesh()
            .x_desc(&self.over)
            .y_desc(&self.unit)
            .x_label_formatter(&|place| counted(*place))
            .y_label_formatter(&|figure| short(*figure))
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        for DrawnSeries { points, hue, stroke, .. } in &self.series {
            let (colour, mark) = looks(*hue);
            let line = points.iter().map(|(place, ms)| (*place, ms.median));
            let style = colour.stroke_width(2);
            match stroke {
                Stroke::Solid => {
                    chart.draw_series(LineSeries::new(line.clone(), style))?;
                    chart.draw_series(line.map(|point| Circle::new(point, 4, mark)))?;
                }
                Stroke::Dashed => {
                    let (dash, gap) = DASHES;
                    let dashes = DashedLineSeries::new(line.clone(), dash, gap, style);
                    chart.draw_series(dashes)?;
                    chart.draw_series(line.map(|point| Circle::new(point, 3, mark)))?;
                }
                Stroke::None => {
                    let style = colour.stroke_width(3);
                    chart.draw_series(line.map(|point| Cross::new(point, 7, style)))?;
                }
            }
            let spreads = points.iter().map(|(place, ms)| [(*place, ms.min), (*place, ms.max)]);
            chart.draw_series(spreads.map(|ends| PathElement::new(ends, colour.mix(0.4))))?;
        }
        Ok(())
    }

    /// Draws the legend next to the lines, because they may fill the drawing.
    fn draw_legend(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        for (DrawnSeries { label, hue, stroke, .. }, y) in
            self.series.iter().zip((50..).step_by(18))
        {
            let (colour, mark) = looks(*hue);
            let (dash, gap) = match stroke {
                Stroke::Solid => (24, 1),
                Stroke::Dashed => DASHES,
                Stroke::None => (0, 24),
            };
            for start in (4..28).step_by((dash + gap) as usize).filter(|_| dash > 0) {
                let ends = [(start, y), ((start + dash).min(28), y)];
                area.draw(&PathElement::new(ends, colour.stroke_width(2)))?;
            }
            match stroke {
                Stroke::None => area.draw(&Cross::new((16, y), 7, colour.stroke_width(3)))?,
                _ => area.draw(&Circle::new((16, y), 4, mark))?,
            }
            area.draw(&Text::new(label.as_str(), (36, y - 6), ("sans-serif", 13)))?;
        }
        Ok(())
    }
}

/// Returns the style of a line and its points: after all colours have been used, they repeat with
/// hollow points.
fn looks(index: usize) -> (RGBColor, ShapeStyle) {
    let colour = COLOURS[index % COLOURS.len()];
    let is_full = (index / COLOURS.len()).is_multiple_of(2);
    (colour, if is_full { colour.filled() } else { colour.stroke_width(1) })
}

/// Returns round figures between two bounds, enough for any range.
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

/// Formats a number without trailing zeros.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a count with the largest exact unit: `12`, `256 Ki`, `64 Mi`.
fn counted(count: f64) -> String {
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
    fn drawing_shows_every_point_and_label() {
        let mut drawing = Drawing::new("T & T".into(), "bytes".into(), "ms".into());
        drawing.is_logarithmic = true;
        let spread = |median: f64| Spread { median, min: median / 2.0, max: median * 2.0 };
        let points = vec![(1024.0, spread(1.0)), (2_097_152.0, spread(9.0))];
        let series = |label: &str, stroke, points| {
            DrawnSeries { label: label.into(), stroke, hue: 0, points } //
        };
        drawing.series.push(series("one", Stroke::Solid, points.clone()));
        drawing.series.push(series("other", Stroke::Dashed, points.clone()));
        drawing.series.push(series("stated", Stroke::None, points));
        let svg = drawing.svg().expect("drawn");
        assert_eq!(svg.matches("<circle").count(), 4 + 2, "{svg}");
        for text in ["one", "other", "stated", "T &amp; T", "1 Ki", "2 Mi", "bytes", "ms"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
    }

    #[test]
    fn axis_ticks_are_round_numbers() {
        assert_eq!(ticks(120.0, 450.0), [120.0, 150.0, 200.0, 250.0, 300.0, 400.0]);
        assert_eq!(
            ticks(0.08, 3.0).into_iter().map(short).collect::<Vec<_>>(),
            ["0.1", "0.2", "0.5", "1", "2"]
        );
        assert_eq!(ticks(0.5, 2000.0).len(), 4);
    }

    #[test]
    fn plot_can_draw_a_single_point() {
        let mut drawing = Drawing::new(String::new(), "members".into(), "ms".into());
        drawing.is_logarithmic = true;
        let points = vec![(4.0, Spread::of(&[0.2]))];
        let stroke = Stroke::Solid;
        drawing.series.push(DrawnSeries { label: "alone".into(), stroke, hue: 0, points });
        assert_eq!(drawing.svg().expect("drawn").matches("<circle").count(), 1 + 1);
    }
}
