//! A panel of bars for each conclusion, as SVG.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Tornado;
use crate::error::BenchError;

/// Of a panel, in pixels.
const WIDTH: i32 = 620;
const HEIGHT: i32 = 250;
/// Where its bars are.
const LEFT: i32 = 200;
const RIGHT: i32 = 560;
const TOP: i32 = 52;
const ROW: i32 = 22;

/// A panel shows at least this part of the conclusion on each side.
const LEAST: f64 = 0.05;

/// Bars of a panel.
const BARS: usize = 8;

const HALF: RGBColor = RGBColor(31, 119, 180);
const DOUBLE: RGBColor = RGBColor(214, 96, 30);

/// Writes the panels to a file, two a row.
///
/// # Errors
/// [`BenchError::Setup`] if the file cannot be written.
pub(super) fn write(tornados: &[Tornado], path: &Path) -> Result<(), BenchError> {
    let failed = |why: String| BenchError::Setup(format!("cannot draw {}: {why}", path.display()));
    let svg = svg(tornados).map_err(|error| failed(error.to_string()))?;
    std::fs::write(path, svg).map_err(|error| failed(error.to_string()))
}

fn svg(tornados: &[Tornado]) -> Result<String, Box<dyn std::error::Error>> {
    let rows = tornados.len().div_ceil(2).max(1);
    let mut svg = String::new();
    let size = (2 * WIDTH as u32, HEIGHT as u32 * rows as u32);
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    for (panel, tornado) in area.split_evenly((rows, 2)).iter().zip(tornados) {
        draw(panel, tornado)?;
    }
    area.present()?;
    drop(area);
    Ok(svg)
}

type Panel<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(panel: &Panel<'_>, tornado: &Tornado) -> Result<(), Box<dyn std::error::Error>> {
    let Tornado { conclusion, machine, unit, usual, .. } = tornado;
    let black = ("sans-serif", 14).into_font().color(&BLACK);
    let small = ("sans-serif", 12).into_font().color(&BLACK);
    let title = format!("{conclusion} ({machine}): {usual:.2} {unit}");
    panel.draw(&Text::new(title, (12, 8), black))?;
    for (name, colour, at) in [("half", HALF, LEFT), ("double", DOUBLE, LEFT + 70)] {
        panel.draw(&Rectangle::new([(at, 30), (at + 12, 42)], colour.filled()))?;
        panel.draw(&Text::new(name, (at + 16, 30), small.clone()))?;
    }
    let bars: Vec<_> = tornado.bars.iter().take(BARS).collect();
    let figures = || bars.iter().flat_map(|bar| [bar.half, bar.double]).filter(|it| !it.is_nan());
    // What hardly moves a conclusion is drawn as hardly anything.
    let low = figures().fold(usual * (1.0 - LEAST), f64::min);
    let high = figures().fold(usual * (1.0 + LEAST), f64::max);
    let scale = f64::from(RIGHT - LEFT - 60) / (high - low).max(f64::EPSILON);
    let place = |figure: f64| LEFT + 30 + ((figure - low) * scale) as i32;
    for (row, bar) in (0..).zip(&bars) {
        let (top, bottom) = (TOP + row * ROW, TOP + row * ROW + ROW - 6);
        let name = small.clone().pos(Pos::new(HPos::Right, VPos::Top));
        panel.draw(&Text::new(bar.parameter, (LEFT - 8, top), name))?;
        for (figure, colour) in [(bar.half, HALF), (bar.double, DOUBLE)] {
            if figure.is_nan() {
                continue;
            }
            let ends = [(place(*usual), top), (place(figure), bottom)];
            panel.draw(&Rectangle::new(ends, colour.mix(0.8).filled()))?;
            let (side, at) = match figure < *usual {
                true => (HPos::Right, place(figure) - 3),
                false => (HPos::Left, place(figure) + 3),
            };
            let label = small.clone().pos(Pos::new(side, VPos::Top));
            // Of two on one side, the nearer one lies on the bar of the other.
            let other = bar.half + bar.double - figure;
            let is_hidden = (other < *usual) == (figure < *usual)
                && (other - usual).abs() > (figure - usual).abs();
            if place(figure) != place(*usual) && !is_hidden {
                panel.draw(&Text::new(format!("{figure:.2}"), (at, top), label))?;
            }
        }
    }
    let line = [(place(*usual), TOP - 4), (place(*usual), TOP + ROW * bars.len() as i32)];
    panel.draw(&PathElement::new(line.to_vec(), BLACK))?;
    Ok(())
}
