//! A plan as a drawing: it has one line per member and one arrow per block, and time runs to the
//! right.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::schedule::{PlannedSchedule, Send};
use tramontane_local::exit::Failure;

/// Maximum number of lines at which a drawing is legible.
const MEMBERS_MAX: u16 = 64;
const STEPS_MAX: u64 = 200;

/// Sizes in pixels: of a step, of a member's line, and of the border.
const STEP: i32 = 96;
const LINE: i32 = 44;
const LEFT: i32 = 60;
const TOP: i32 = 48;

/// Draws a plan.
pub(super) fn svg(plan: &PlannedSchedule) -> Result<String, Failure> {
    let (members, steps) = (plan.members(), plan.schedule.steps());
    if members > MEMBERS_MAX || steps > STEPS_MAX {
        let what = format_args!("{members} members and {steps} steps are too many to draw");
        return Err(Failure::usage(what, "draw at most 64 members and 200 steps, or omit --svg"));
    }
    let mut svg = String::new();
    drawn(plan, &mut svg).map_err(|error| Failure::other(error, "omit --svg"))?;
    Ok(svg)
}

fn drawn(plan: &PlannedSchedule, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let steps = i32::try_from(plan.schedule.steps())?;
    let (width, height) = (LEFT + steps.max(1) * STEP + 40, TOP + i32::from(plan.members()) * LINE);
    let size = (u32::try_from(width)?, u32::try_from(height)?);
    let area = SVGBackend::with_string(svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    let grey = RGBColor(120, 120, 120);
    for step in 0..=steps {
        let x = LEFT + step * STEP;
        area.draw(&PathElement::new([(x, TOP - 12), (x, height - 12)], grey.mix(0.25)))?;
        if step < steps {
            area.draw(&label(format!("step {step}"), (x + STEP / 2, 20), &grey))?;
        }
    }
    for member in 0..plan.members() {
        let y = line(member);
        area.draw(&PathElement::new([(LEFT, y), (LEFT + steps * STEP, y)], grey.mix(0.5)))?;
        let name = if member == 0 { "root".to_owned() } else { member.to_string() };
        area.draw(&label(name, (LEFT / 2, y), &BLACK))?;
    }
    for step in 0..plan.schedule.steps() {
        for send in plan.sends(step) {
            arrow(&area, plan, &send)?;
        }
    }
    area.present()?;
    Ok(())
}

type DrawArea<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws an arrow from the sender's line at the step's beginning to the receiver's at its end, with
/// the block's number.
fn arrow(
    area: &DrawArea<'_>,
    plan: &PlannedSchedule,
    send: &Send,
) -> Result<(), Box<dyn std::error::Error>> {
    let x = LEFT + i32::try_from(send.step)? * STEP;
    let (from, to) = ((x + 8, line(send.from)), (x + STEP - 14, line(send.to)));
    let hue = f64::from(send.block) / f64::from(plan.schedule.shape().blocks.get());
    let colour = HSLColor(hue, 0.75, 0.4);
    area.draw(&PathElement::new([from, to], colour.stroke_width(2)))?;
    area.draw(&Circle::new(to, 4, colour.filled()))?;
    // Arrows do not overlap near the receiver, because no member receives twice in a step.
    let at = (to.0 - (to.0 - from.0) / 5, to.1 - (to.1 - from.1) / 5);
    area.draw(&Circle::new(at, 9, WHITE.filled()))?;
    area.draw(&label(send.block.to_string(), at, &colour))?;
    Ok(())
}

fn line(member: u16) -> i32 {
    TOP + i32::from(member) * LINE + LINE / 3
}

fn label<'t>(text: String, at: (i32, i32), colour: &impl Color) -> Text<'t, (i32, i32), String> {
    let style =
        ("sans-serif", 14).into_font().color(colour).pos(Pos::new(HPos::Center, VPos::Center));
    Text::new(text, at, style)
}
