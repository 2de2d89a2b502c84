//! Nodes as lines: solid while the node runs, dashed while it is stopped, faint while it is absent.

use maud::{Markup, html};

use super::super::printable::{printable, shortened};
use super::draw::px;
use super::pick::nodes;
use super::scene::{NAME_CHARACTERS_MAX, Scene};
use crate::history::{Event, FaultKind};

/// A node's state along a piece of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneState {
    Runs,
    Stopped,
    Gone,
}

impl LaneState {
    const fn class(self) -> &'static str {
        match self {
            Self::Runs => "lane",
            Self::Stopped => "lane stopped",
            Self::Gone => "lane gone",
        }
    }
}

/// Draws the names of the nodes next to their lanes.
pub(super) fn names(scene: &Scene<'_>) -> Markup {
    html! {
        @for (index, node) in scene.lanes.iter().enumerate() {
            text.node x="4" y=(px(scene.y_of(index) + 4.0)) {
                title { (printable(node, 200)) }
                (shortened(node, NAME_CHARACTERS_MAX))
            }
        }
    }
}

/// All lanes.
pub(super) fn lanes(scene: &Scene<'_>) -> Markup {
    html! {
        @for (index, node) in scene.lanes.iter().enumerate() {
            @let y = px(scene.y_of(index));
            @for (from, to) in cut_off(scene, node) {
                @let y = px(scene.y_of(index) - 13.0);
                rect.cut-off x=(px(from)) y=(y) width=(px(to - from)) height="26" {}
            }
            @for (state, from, to) in pieces(scene, node) {
                line class=(state.class()) x1=(px(from)) y1=(y) x2=(px(to)) y2=(y) {}
            }
        }
    }
}

/// Returns the pieces of a node's lane, from left to right.
fn pieces(scene: &Scene<'_>, node: &str) -> Vec<(LaneState, f64, f64)> {
    let mut pieces = Vec::new();
    let mut from = scene.left - 22.0;
    let mut state = first_state(scene, node);
    for column in scene.columns.iter().filter(|column| nodes(&column.event).contains(&node)) {
        let next = match &column.event {
            Event::Start { .. } | Event::Fault { kind: FaultKind::Continue, .. } => LaneState::Runs,
            Event::Fault { kind: FaultKind::Kill, .. } | Event::End { .. } => LaneState::Gone,
            Event::Fault { kind: FaultKind::Stop, .. } => LaneState::Stopped,
            _ => continue,
        };
        pieces.push((state, from, column.x));
        (state, from) = (next, column.x);
    }
    pieces.push((state, from, scene.width - 8.0));
    pieces
}

/// Returns a node's first state: a node that starts in the picture was absent before; any other was
/// running.
fn first_state(scene: &Scene<'_>, node: &str) -> LaneState {
    let mut columns = scene.columns.iter().filter(|column| nodes(&column.event).contains(&node));
    match columns.next().map(|column| &column.event) {
        Some(Event::Start { .. }) => LaneState::Gone,
        Some(Event::Fault { kind: FaultKind::Continue, .. }) => LaneState::Stopped,
        _ => LaneState::Runs,
    }
}

/// Returns the pieces of the lane in which the node was on the named side of a partition.
fn cut_off(scene: &Scene<'_>, node: &str) -> Vec<(f64, f64)> {
    let mut spans = Vec::new();
    let mut since = None;
    for column in scene.columns.iter().filter(|column| nodes(&column.event).contains(&node)) {
        match &column.event {
            Event::Fault { kind: FaultKind::Partition | FaultKind::Slow, .. } => {
                since = since.or(Some(column.x))
            }
            Event::Fault { kind: FaultKind::Heal, .. } => {
                spans.extend(Some((since.take().unwrap_or(scene.left - 22.0), column.x)));
            }
            _ => {}
        }
    }
    spans.extend(since.map(|since| (since, scene.width - 8.0)));
    spans
}
