//! Arrows from the multicasts of messages to their deliveries.

use maud::{Markup, html};

use super::draw::{colour_class, places, px};
use super::pick::{message, nodes};
use super::scene::{ABSENCE_WIDTH, Column, Scene};
use crate::history::Event;

/// Returns the arrow that ends at a delivery. A delivery without a multicast gets a short arrow
/// with a label that says so. The records next to witnesses get no arrows, because they show the
/// surroundings, not the path of the message.
pub(super) fn arrow(scene: &Scene<'_>, column: &Column<'_>) -> Markup {
    let Event::Deliver { msg: Some(name), replayed, .. } = &column.event else {
        return html! {};
    };
    let (Some(to), true) = (places(scene, column).first().copied(), scene.colour(name).is_some())
    else {
        return html! {};
    };
    let class = format!("arrow {}", colour_class(scene, Some(name)));
    let Some((multicast, from)) = source(scene, name) else {
        return nowhere(scene, column, to, name);
    };
    // A replay comes from the node's own storage, not over the network.
    if *replayed {
        return html! {};
    }
    html! {
        g class=(class) { (line(scene, (multicast.x, from), (column.x, to), gap(column))) }
    }
}

/// Returns the position of a message's multicast.
fn source<'s, 'a>(scene: &'s Scene<'a>, name: &str) -> Option<(&'s Column<'a>, f64)> {
    let multicast = scene.multicast(name)?;
    let y = places(scene, multicast).first().copied()?;
    Some((multicast, y))
}

/// Returns the distance between a mark's centre and the end of its arrow.
fn gap(column: &Column<'_>) -> f64 {
    if column.is_culprit() {
        15.0
    } else if column.witness.is_some() {
        11.0
    } else {
        7.0
    }
}

/// Returns whether a record's arrow arrives from above or leaves only downwards. Its label is then
/// drawn on the other side.
pub(super) fn comes_from_above(scene: &Scene<'_>, column: &Column<'_>, y: f64) -> bool {
    match &column.event {
        Event::Deliver { msg: Some(name), .. } if scene.colour(name).is_some() => {
            source(scene, name)
                .is_none_or(|(_, from)| from < y || (same(from, y) && is_lowest(scene, y)))
        }
        _ => is_lowest(scene, y),
    }
}

/// Returns whether this is the lowest of several lanes, so that all its arrows are above it.
fn is_lowest(scene: &Scene<'_>, y: f64) -> bool {
    scene.lanes.len() > 1 && y >= scene.y_of(scene.lanes.len() - 1)
}

/// Returns whether two heights belong to one lane.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1.0
}

/// Draws a line with a head. Within one lane it is an arc, on the side without labels.
fn line(scene: &Scene<'_>, from: (f64, f64), to: (f64, f64), gap: f64) -> Markup {
    if same(from.1, to.1) {
        let depth = 26.0_f64.min((to.0 - from.0).abs() / 2.0);
        let middle = (
            f64::midpoint(from.0, to.0),
            from.1 + if is_lowest(scene, from.1) { -depth } else { depth },
        );
        let (tip, head) = head(middle, to, gap);
        return html! {
            path d={ "M" (point(from)) " Q" (point(middle)) " " (point(tip)) } {}
            polygon points=(head) {}
        };
    }
    let (tip, head) = head(from, to, gap);
    html! {
        path d={ "M" (point(from)) " L" (point(tip)) } {}
        polygon points=(head) {}
    }
}

/// Returns the end of an arrow's line from one point to another, and the arrow's head.
fn head(from: (f64, f64), to: (f64, f64), gap: f64) -> ((f64, f64), String) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let tip = (to.0 - ux * gap, to.1 - uy * gap);
    let back = (tip.0 - ux * 9.0, tip.1 - uy * 9.0);
    let (left, right) =
        ((back.0 - uy * 4.0, back.1 + ux * 4.0), (back.0 + uy * 4.0, back.1 - ux * 4.0));
    (back, [tip, left, right].map(point).join(" "))
}

fn point((x, y): (f64, f64)) -> String {
    format!("{},{}", px(x), px(y))
}

/// Draws a delivery of a message that no node multicast.
fn nowhere(scene: &Scene<'_>, column: &Column<'_>, y: f64, name: &str) -> Markup {
    let from = (column.x - 26.0, y - 30.0);
    html! {
        g.arrow.missing {
            title { "no node multicast " (super::super::printable::shortened(name, 80)) }
            (line(scene, from, (column.x, y), gap(column)))
            text.unknown x=(px(from.0 - 4.0)) y=(px(from.1)) text-anchor="middle" { "?" }
        }
    }
}

/// Draws the missing delivery: an arrow from the multicast to the culprit's lane, if the witnesses
/// are about a single message and the culprit's node did not deliver it.
pub(super) fn missing(scene: &Scene<'_>) -> Markup {
    let [name] = scene.messages.as_slice() else {
        return html! {};
    };
    let delivered = |node: &str| {
        scene.columns.iter().any(|column| {
            matches!(column.event, Event::Deliver { .. })
                && message(&column.event) == Some(name)
                && nodes(&column.event).contains(&node)
        })
    };
    let culprit = scene.columns.iter().find(|column| column.is_culprit());
    let node =
        culprit.and_then(|culprit| nodes(&culprit.event).into_iter().find(|node| !delivered(node)));
    let (Some((multicast, from)), Some(culprit), Some(to)) =
        (source(scene, name), culprit, node.and_then(|node| scene.y(node)))
    else {
        return html! {};
    };
    // The delivery is missing before the culprit's record, but after the other nodes' deliveries.
    let x = culprit.x - scene.half_width(culprit) - ABSENCE_WIDTH / 2.0;
    if culprit.line == multicast.line || x < multicast.x {
        return html! {};
    }
    html! {
        g.arrow.missing {
            title { "never delivered" }
            (line(scene, (multicast.x, from), (x, to), 8.0))
            circle.absent cx=(px(x)) cy=(px(to)) r="7" {}
            @let y = if from < to { to + 23.0 } else { to - 15.0 };
            text.unknown x=(px(x)) y=(px(y)) text-anchor="middle" { "never" }
        }
    }
}
