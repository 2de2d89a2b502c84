//! The chart of a history's course, as SVG: deliveries per second, their latency, and each node's
//! views, with a line for each fault.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::super::printable::printable;
use super::super::words;
use super::rate::Figures;
use super::{Course, Stay, moment};

const WIDTH: u32 = 1100;

/// The heights of the chart's sections, in pixels.
const FAULTS_HEIGHT: u32 = 70;
const RATE_HEIGHT: u32 = 170;
const LATENCY_HEIGHT: u32 = 190;
const LANE_HEIGHT: u32 = 18;

/// The margin on the left for labels.
const LEFT: u32 = 92;
const RIGHT: u32 = 14;
const MARGIN: u32 = 14;

/// Limit of nodes whose views are shown.
const LANES_MAX: usize = 24;

/// Length limit of a name that is shown whole.
const NAME_CHARACTERS_MAX: usize = 24;

const RATE: RGBColor = RGBColor(31, 119, 180);
const MEDIAN: RGBColor = RGBColor(44, 140, 60);
const HIGH: RGBColor = RGBColor(148, 80, 170);
const FAULT: RGBColor = RGBColor(198, 40, 40);
const FAULT_END: RGBColor = RGBColor(44, 140, 60);

/// The colours of views, used in turn.
const VIEWS: [RGBColor; 6] = [
    RGBColor(174, 199, 232),
    RGBColor(255, 205, 150),
    RGBColor(170, 220, 160),
    RGBColor(215, 190, 225),
    RGBColor(230, 210, 160),
    RGBColor(170, 220, 225),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Selects one of the latencies of a slot.
type SlotLatency = fn(&Figures) -> Option<u64>;

type DrawError = Box<dyn std::error::Error>;

/// Draws the chart, or returns nothing if the library fails.
pub(in super::super) fn draw(course: &Course) -> Option<String> {
    let lanes = lanes(course.stays());
    let lanes_height = u32::try_from(lanes.len()).unwrap_or(0) * LANE_HEIGHT;
    let height = FAULTS_HEIGHT + RATE_HEIGHT + LATENCY_HEIGHT + lanes_height;
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    let drawn = draw_parts(course, &lanes, &area);
    drop(area);
    drawn.ok()?;
    // Inline SVG needs no namespace declaration, and the page must not contain any external
    // address.
    let svg = svg.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    Some(svg)
}

/// Returns each group and node with views once.
fn lanes(stays: &[Stay]) -> Vec<(&str, &str)> {
    let mut lanes: Vec<(&str, &str)> =
        stays.iter().map(|stay| (&*stay.group, &*stay.node)).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes.truncate(LANES_MAX);
    lanes
}

fn draw_parts(course: &Course, lanes: &[(&str, &str)], area: &Area<'_>) -> Result<(), DrawError> {
    area.fill(&WHITE)?;
    let (faults, rest) = area.split_vertically(FAULTS_HEIGHT);
    let (rate, rest) = rest.split_vertically(RATE_HEIGHT);
    let (latency, views) = rest.split_vertically(LATENCY_HEIGHT);
    draw_faults(course, &faults)?;
    draw_rate(course, &rate)?;
    draw_latency(course, &latency)?;
    for (lane, (group, node)) in lanes.iter().enumerate() {
        draw_lane(course, &views, lane, (group, node))?;
    }
    area.present()?;
    Ok(())
}

/// Returns the end of the horizontal axis.
#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
fn end_s(course: &Course) -> f64 {
    (course.end_ns.max(1)) as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
fn seconds(t_ns: u64) -> f64 {
    t_ns as f64 / 1e9
}

/// Returns a time's distance from the left in pixels, which is the same in all sections.
#[expect(clippy::cast_possible_truncation, reason = "a place in a drawing")]
fn across(course: &Course, t_ns: u64) -> i32 {
    let width = f64::from(WIDTH - LEFT - RIGHT);
    (f64::from(LEFT) + width * seconds(t_ns) / end_s(course)) as i32
}

/// Draws the names of the faults, on several lines if they would overlap.
fn draw_faults(course: &Course, area: &Area<'_>) -> Result<(), DrawError> {
    let rows = i32::try_from((FAULTS_HEIGHT - 6) / 13).unwrap_or(1);
    for (place, fault) in course.faults.iter().enumerate() {
        let x = across(course, fault.t_ns);
        let y = i32::try_from(place).unwrap_or(0) % rows * 13 + 6;
        let colour = if fault.is_end { FAULT_END } else { FAULT };
        let text = printable(&fault.what, NAME_CHARACTERS_MAX);
        let style = ("sans-serif", 11).into_font().color(&colour);
        // The last labels end at their line, because they would not fit to its right.
        let width = i32::try_from(text.chars().count()).unwrap_or(0) * 6;
        let room = i32::try_from(WIDTH).unwrap_or(0) - x;
        let left = if width > room { x - width - 2 } else { x + 2 };
        area.draw(&Text::new(text, (left, y), style))?;
    }
    Ok(())
}

/// Draws a line for each fault over the height of a section.
fn mark_faults(course: &Course, area: &Area<'_>, bottom: u32) -> Result<(), DrawError> {
    let bottom = i32::try_from(bottom).unwrap_or(0);
    for fault in &course.faults {
        let colour = if fault.is_end { FAULT_END } else { FAULT };
        let x = across(course, fault.t_ns);
        area.draw(&PathElement::new(vec![(x, 0), (x, bottom)], colour.stroke_width(1)))?;
    }
    Ok(())
}

fn draw_rate(course: &Course, area: &Area<'_>) -> Result<(), DrawError> {
    let figures: Vec<_> = course.rates.figures().collect();
    let high = figures.iter().map(|figures| figures.per_second).fold(1.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(20)
        .margin_left(MARGIN)
        .y_label_area_size(LEFT - MARGIN)
        .margin_right(RIGHT)
        .margin_top(4)
        .build_cartesian_2d(0.0..end_s(course), 0.0..high)?;
    chart
        .configure_mesh()
        .y_desc("deliveries per second")
        .x_labels(8)
        .y_labels(5)
        .x_label_formatter(&|at| format!("{at:.2} s"))
        .y_label_formatter(&|rate| format!("{rate:.0}"))
        .draw()?;
    mark_faults(course, area, RATE_HEIGHT - 20)?;
    let points = figures.iter().map(|figures| (seconds(figures.middle_ns), figures.per_second));
    chart.draw_series(LineSeries::new(points, RATE.stroke_width(2)))?;
    Ok(())
}

fn draw_latency(course: &Course, area: &Area<'_>) -> Result<(), DrawError> {
    let figures: Vec<_> = course.rates.figures().collect();
    let known = || figures.iter().flat_map(|figures| [figures.median_ns, figures.high_ns]);
    let low = known().flatten().min().unwrap_or(1000);
    let high = known().flatten().max().unwrap_or(1_000_000).max(low * 2);
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(24)
        .margin_left(MARGIN)
        .y_label_area_size(LEFT - MARGIN)
        .margin_right(RIGHT)
        .margin_top(4)
        .build_cartesian_2d(
            0.0..end_s(course),
            (seconds(low) * 0.8..seconds(high) * 1.4).log_scale(),
        )?;
    chart
        .configure_mesh()
        .y_desc("latency: median, 99 in 100")
        .x_labels(8)
        .y_labels(5)
        .x_label_formatter(&|at| format!("{at:.2} s"))
        .y_label_formatter(&|latency| shown(*latency))
        .draw()?;
    mark_faults(course, area, LATENCY_HEIGHT - 24)?;
    let of: [(RGBColor, SlotLatency); 2] =
        [(MEDIAN, |figures| figures.median_ns), (HIGH, |figures| figures.high_ns)];
    for (colour, latency) in of {
        // A slot without deliveries has no latency, so the line is interrupted.
        for run in figures.split(|figures| latency(figures).is_none()) {
            let point = |one: &Figures| Some((seconds(one.middle_ns), seconds(latency(one)?)));
            let points: Vec<(f64, f64)> = run.iter().filter_map(point).collect();
            if let [alone] = points[..] {
                chart.draw_series([Circle::new(alone, 2, colour.filled())])?;
            }
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
        }
    }
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of nanoseconds"
)]
fn shown(latency_s: f64) -> String {
    words::nanoseconds((latency_s * 1e9) as u64)
}

/// Draws the views of one node in one group, with a box for each.
fn draw_lane(
    course: &Course,
    area: &Area<'_>,
    lane: usize,
    (group, node): (&str, &str),
) -> Result<(), DrawError> {
    let lane = i32::try_from(lane).unwrap_or(0);
    let height = i32::try_from(LANE_HEIGHT).unwrap_or(1);
    let (top, bottom) = (lane * height + 2, (lane + 1) * height - 2);
    let black = ("sans-serif", 11).into_font().color(&BLACK);
    let name = format!(
        "{} in {}",
        printable(node, NAME_CHARACTERS_MAX),
        printable(group, NAME_CHARACTERS_MAX)
    );
    area.draw(&Text::new(name, (6, top + 1), black.clone()))?;
    let own = course.stays().iter().filter(|stay| stay.group == group && stay.node == node);
    for stay in own {
        let (from, until) = (across(course, stay.from_ns), across(course, stay.until_ns));
        let place = usize::try_from(stay.view % VIEWS.len() as u64).unwrap_or(0);
        let until = until.max(from + 1);
        let filled = VIEWS[place].filled();
        area.draw(&Rectangle::new([(from, top), (until, bottom)], filled))?;
        let label = format!("{}: {} members", stay.view, stay.members.len());
        if until - from > i32::try_from(label.len()).unwrap_or(0) * 6 {
            area.draw(&Text::new(label, (from + 3, top + 1), black.clone()))?;
        }
    }
    for fault in &course.faults {
        let colour = if fault.is_end { FAULT_END } else { FAULT };
        let x = across(course, fault.t_ns);
        area.draw(&PathElement::new(vec![(x, top - 2), (x, bottom + 2)], colour.stroke_width(1)))?;
    }
    Ok(())
}

/// Returns the duration of a stay, for people.
pub(in super::super) fn lasted(stay: &Stay) -> String {
    format!("{} to {}", moment(stay.from_ns), moment(stay.until_ns))
}
