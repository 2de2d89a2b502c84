//! Draws a scene as SVG.
//!
//! Texts go through the templates, which escape them; numbers are computed in this module. Elements
//! are closed by braces, because an unclosed SVG element in HTML swallows everything after it.

use maud::{Markup, html};

use super::super::printable::printable;
use super::arrow;
use super::lane;
use super::scene::{CALLOUT_HEIGHT, Column, Scene, text_width};
use crate::history::{Event, FaultKind};

/// Number of message colours in the style sheet.
const COLOURS: usize = 6;
/// Maximum length of a record that a tooltip shows in full.
const TITLE_CHARACTERS_MAX: usize = 600;

/// Draws the scene in two parts: the node names, which stay in place, and the picture, which
/// scrolls if it is wide.
pub(super) fn draw(scene: &Scene<'_>, title: &str, absence: bool) -> Markup {
    let height = scene.bottom() + 34.0;
    let split = scene.split();
    let width = scene.width - split;
    html! {
        svg.diagram.names aria-hidden="true" width=(px(split)) height=(px(height)) {
            (lane::names(scene))
            text.foot x="4" y=(px(scene.bottom() + 12.0)) { "line" }
            text.foot x="4" y=(px(scene.bottom() + 26.0)) { "time" }
        }
        svg.diagram role="img" aria-label=(title) width=(px(width)) height=(px(height))
            viewBox={ (px(split)) " 0 " (px(width)) " " (px(height)) } {
            (axis(scene))
            (lane::lanes(scene))
            @for column in &scene.columns { (arrow::arrow(scene, column)) }
            @if absence { (arrow::missing(scene)) }
            @let culprits = scene.columns.iter().filter(|column| column.is_culprit());
            @for (index, column) in culprits.enumerate() {
                (callout(scene, column, index))
            }
            @for column in &scene.columns { (marks(scene, column)) }
        }
    }
}

/// Formats a length in the picture.
pub(super) fn px(length: f64) -> String {
    format!("{length:.1}")
}

/// Returns the class that gives a message its colour.
pub(super) fn colour_class(scene: &Scene<'_>, message: Option<&str>) -> String {
    match message.and_then(|message| scene.colour(message)) {
        Some(index) => format!("m{}", index % COLOURS),
        None => "context".to_owned(),
    }
}

/// Draws line numbers and times at the foot.
fn axis(scene: &Scene<'_>) -> Markup {
    let y = scene.bottom();
    html! {
        @for column in &scene.columns {
            @let x = px(column.x);
            line.grid x1=(x) y1=(px(scene.top - 20.0)) x2=(x) y2=(px(y)) {}
            text.foot.culprit[column.is_culprit()] x=(x) y=(px(y + 12.0)) text-anchor="middle" {
                (column.line)
            }
            text.foot x=(x) y=(px(y + 26.0)) text-anchor="middle" { (column.time) }
        }
    }
}

/// Draws the culprit's action at the top, with a line down to its record.
fn callout(scene: &Scene<'_>, column: &Column<'_>, index: usize) -> Markup {
    let y = 16.0 + CALLOUT_HEIGHT * f64::from(u16::try_from(index).unwrap_or(u16::MAX));
    let lowest = places(scene, column).into_iter().fold(y, f64::max);
    // The text begins or ends at the line, depending on the available room.
    let to_the_right = column.x + column.callout_width() < scene.width;
    let (anchor, x) =
        if to_the_right { ("start", column.x - 4.0) } else { ("end", column.x + 4.0) };
    html! {
        line.guide x1=(px(column.x)) y1=(px(y + 5.0)) x2=(px(column.x)) y2=(px(lowest)) {}
        text.callout x=(px(x)) y=(px(y)) text-anchor=(anchor) { (column.callout()) }
    }
}

/// Returns the heights of a record's lanes: a fault may be on several.
pub(super) fn places(scene: &Scene<'_>, column: &Column<'_>) -> Vec<f64> {
    super::pick::nodes(&column.event).into_iter().filter_map(|node| scene.y(node)).collect()
}

fn marks(scene: &Scene<'_>, column: &Column<'_>) -> Markup {
    let class = colour_class(scene, super::pick::message(&column.event));
    html! {
        g class={ "mark " (class) @if column.is_culprit() { " culprit" } @if column.witness.is_some() { " witness" } } {
            title { "line " (column.line) ": " (printable(column.text, TITLE_CHARACTERS_MAX)) }
            @for y in places(scene, column) { (mark(scene, column, y)) }
        }
    }
}

fn mark(scene: &Scene<'_>, column: &Column<'_>, y: f64) -> Markup {
    let labels = column.labels(scene);
    let number = column.witness.map(|(number, _)| number);
    let x = column.x;
    if column.is_tag() {
        return tag(x, y, &labels, number);
    }
    // The label stays clear of the arrows.
    let above = !arrow::comes_from_above(scene, column, y);
    html! {
        @if column.is_culprit() { circle.ring cx=(px(x)) cy=(px(y)) r="14" {} }
        (shape(&column.event, x, y, number.is_some()))
        @if let Some(number) = number {
            text.number x=(px(x)) y=(px(y + 3.8)) text-anchor="middle" { (number) }
        }
        @for (index, label) in labels.iter().filter(|label| !label.is_empty()).enumerate() {
            @let down = 12.0 * f64::from(u16::try_from(index).unwrap_or(0));
            @let y = if above { y - 17.0 - down } else { y + 25.0 + down };
            text class={ "label" @if index > 0 { " more" } } x=(px(x)) y=(px(y)) text-anchor="middle" { (label) }
        }
    }
}

/// Draws the first label on the lane and the other labels below it.
fn tag(x: f64, y: f64, labels: &[String], number: Option<usize>) -> Markup {
    let label = labels.first().map_or("", String::as_str);
    let width =
        text_width(label.chars().count()) + 12.0 + if number.is_some() { 18.0 } else { 0.0 };
    let left = x - width / 2.0;
    let middle = if number.is_some() { x + 9.0 } else { x };
    html! {
        rect.tag x=(px(left)) y=(px(y - 11.0)) width=(px(width)) height="22" rx="5" {}
        @if let Some(number) = number {
            circle.badge cx=(px(left + 12.0)) cy=(px(y)) r="8" {}
            text.number x=(px(left + 12.0)) y=(px(y + 3.8)) text-anchor="middle" { (number) }
        }
        text.inside x=(px(middle)) y=(px(y + 4.0)) text-anchor="middle" { (label) }
        @for more in labels.iter().skip(1) {
            text.label.more x=(px(x)) y=(px(y + 23.0)) text-anchor="middle" { (more) }
        }
    }
}

/// Draws the mark. Its shape identifies the event without colours.
fn shape(event: &Event<'_>, x: f64, y: f64, large: bool) -> Markup {
    let size = if large { 10.0 } else { 5.5 };
    let at = |dx: f64, dy: f64| format!("{},{}", px(x + dx), px(y + dy));
    match event {
        Event::Multicast { .. } | Event::Refused { .. } => {
            let size = size + 2.0;
            let hollow = matches!(event, Event::Refused { .. });
            let points = [at(0.0, -size), at(size, 0.0), at(0.0, size), at(-size, 0.0)].join(" ");
            html! { polygon.dot.hollow[hollow] points=(points) {} }
        }
        Event::Deliver { msg, .. } => {
            html! { circle.dot.hollow[msg.is_none()] cx=(px(x)) cy=(px(y)) r=(px(size)) {} }
        }
        Event::Start { .. } => {
            let points = [at(-size, -size), at(size + 2.0, 0.0), at(-size, size)].join(" ");
            html! { polygon.state points=(points) {} }
        }
        Event::Fault { kind: FaultKind::Kill, .. } => html! {
            @if large { circle.state cx=(px(x)) cy=(px(y)) r=(px(size)) {} }
            @else {
                path.cross d={
                    "M" (at(-7.0, -7.0)) " L" (at(7.0, 7.0))
                    " M" (at(-7.0, 7.0)) " L" (at(7.0, -7.0))
                } {}
            }
        },
        _ => html! {
            @let size = size.min(8.5);
            @let side = px(size * 2.0);
            rect.state x=(px(x - size)) y=(px(y - size)) width=(side) height=(side) rx="2" {}
        },
    }
}
