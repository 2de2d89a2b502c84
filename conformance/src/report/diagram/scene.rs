//! The layout of a diagram: a lane for each node, a column for each record.
//!
//! Columns are in time order, which for one node is line order; the distances between them have no
//! meaning. Each column is as wide as its texts, so that nothing overlaps on a lane.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::super::printable::{printable, shortened};
use super::super::words;
use super::pick::{Picked, message, nodes};
use crate::check::{Finding, Witness};
use crate::history::{Event, parse};

/// Limit of lanes.
const LANES_MAX: usize = 12;
/// Length limit of a name that is shown whole.
pub(super) const NAME_CHARACTERS_MAX: usize = 16;
/// Length limit of a list of members that is shown whole.
const MEMBERS_CHARACTERS_MAX: usize = 20;
/// Approximate width of a character in a label.
pub(super) const CHARACTER_WIDTH: f64 = 6.7;
/// Width of the gap for a record that is missing.
pub(super) const ABSENCE_WIDTH: f64 = 44.0;
/// Distance between lanes.
const LANE_HEIGHT: f64 = 74.0;
/// Height above the first lane, without call-outs.
const TOP: f64 = 44.0;
/// Height of a culprit's call-out at the top.
pub(super) const CALLOUT_HEIGHT: f64 = 20.0;

/// A record with its position.
pub(super) struct Column<'a> {
    pub(super) line: u64,
    pub(super) text: &'a str,
    pub(super) event: Event<'a>,
    /// The record's number among the witnesses, from 1, and its role.
    pub(super) witness: Option<(usize, &'a Witness)>,
    /// The time since the first record shown.
    pub(super) time: String,
    pub(super) x: f64,
}

/// The whole drawing.
pub(super) struct Scene<'a> {
    pub(super) columns: Vec<Column<'a>>,
    /// The nodes, from top to bottom.
    pub(super) lanes: Vec<String>,
    /// The messages of the witnesses, in order of appearance: each has its own colour.
    pub(super) messages: Vec<String>,
    /// Whether more than one group is involved.
    pub(super) several_groups: bool,
    /// Whether views are involved.
    pub(super) views: bool,
    /// Number of nodes that did not fit.
    pub(super) lanes_left_out: usize,
    pub(super) left: f64,
    pub(super) width: f64,
    pub(super) top: f64,
}

impl<'a> Scene<'a> {
    /// Lays out the scene; returns nothing if there is nothing to show.
    ///
    /// With `absence`, the finding is about a missing event, which needs room before the culprit.
    pub(super) fn of(finding: &'a Finding, picked: &'a [Picked], absence: bool) -> Option<Self> {
        let columns = columns(finding, picked);
        if columns.is_empty() {
            return None;
        }
        let (lanes, lanes_left_out) = lanes(&columns);
        let columns: Vec<Column<'a>> = columns
            .into_iter()
            .filter(|column| {
                nodes(&column.event).iter().any(|node| lanes.iter().any(|lane| lane == node))
            })
            .collect();
        let views = columns.iter().any(|column| matches!(column.event, Event::View { .. }))
            || differ(columns.iter().filter_map(|column| match &column.event {
                Event::Deliver { view, .. } => *view,
                _ => None,
            }));
        let several_groups = differ(columns.iter().flat_map(|column| groups(&column.event)));
        let culprits = columns.iter().filter(|column| column.is_culprit()).count();
        let longest =
            lanes.iter().map(|lane| shortened(lane, NAME_CHARACTERS_MAX).chars().count()).max();
        let left = 34.0 + text_width(longest.unwrap_or(0)).max(30.0);
        let mut scene = Self {
            messages: messages(&columns),
            columns,
            lanes,
            several_groups,
            views,
            lanes_left_out,
            left,
            width: 0.0,
            top: TOP + CALLOUT_HEIGHT * f64::from(u16::try_from(culprits).unwrap_or(u16::MAX)),
        };
        scene.spread(absence);
        Some(scene)
    }

    /// Assigns each column its position.
    fn spread(&mut self, absence: bool) {
        let mut previous = self.left - 20.0;
        let mut ends: BTreeMap<String, f64> = BTreeMap::new();
        for index in 0..self.columns.len() {
            let foot = self.columns[index].foot_width();
            let column = &self.columns[index];
            let half = self.half_width(column);
            let room = if absence && column.is_culprit() { ABSENCE_WIDTH } else { 0.0 };
            let names: Vec<String> = nodes(&column.event).into_iter().map(str::to_owned).collect();
            let lane_end = names
                .iter()
                .filter_map(|node| ends.get(node))
                .copied()
                .fold(self.left - 8.0, f64::max);
            let x = (previous + foot.max(40.0)).max(lane_end + half + 8.0 + room);
            ends.extend(names.into_iter().map(|node| (node, x + half)));
            previous = x;
            self.columns[index].x = x;
        }
        let end = ends.values().copied().fold(previous, f64::max) + 40.0;
        let callouts = self.columns.iter().filter(|column| column.is_culprit());
        self.width = callouts.map(|column| column.callout_end(self.split())).fold(end, f64::max);
    }

    /// Returns half of a record's width.
    pub(super) fn half_width(&self, column: &Column<'_>) -> f64 {
        let labels = column.labels(self);
        let longest = labels.iter().map(|label| label.chars().count()).max();
        let frame =
            if column.is_tag() { if column.witness.is_some() { 30.0 } else { 12.0 } } else { 4.0 };
        ((text_width(longest.unwrap_or(0)) + frame) / 2.0).max(14.0)
    }

    /// Returns the boundary between the node names and the picture.
    pub(super) fn split(&self) -> f64 {
        self.left - 24.0
    }

    /// Returns the height of a node's lane.
    pub(super) fn y(&self, node: &str) -> Option<f64> {
        self.lanes.iter().position(|lane| lane == node).map(|index| self.y_of(index))
    }

    /// Returns the height of a lane.
    pub(super) fn y_of(&self, lane: usize) -> f64 {
        self.top + LANE_HEIGHT * f64::from(u16::try_from(lane).unwrap_or(u16::MAX))
    }

    /// Returns the height of the axis.
    pub(super) fn bottom(&self) -> f64 {
        self.y_of(self.lanes.len()) - 26.0
    }

    /// Returns the column in which a message is multicast.
    pub(super) fn multicast(&self, name: &str) -> Option<&Column<'a>> {
        self.columns.iter().find(|column| match &column.event {
            Event::Multicast { msg, .. } => msg == name,
            _ => false,
        })
    }

    /// Returns the index of a message's colour, if it is a witness's message.
    pub(super) fn colour(&self, name: &str) -> Option<usize> {
        self.messages.iter().position(|message| message == name)
    }
}

impl Column<'_> {
    pub(super) fn is_culprit(&self) -> bool {
        self.witness.is_some_and(|(_, witness)| witness.culprit)
    }

    /// Returns the text of a culprit's call-out.
    pub(super) fn callout(&self) -> String {
        self.witness
            .map_or_else(String::new, |(number, one)| format!("{number} culprit: {}", one.role))
    }

    /// Returns the width of the call-out, whose text is larger than a label.
    pub(super) fn callout_width(&self) -> f64 {
        text_width(self.callout().chars().count()) * 1.15
    }

    /// Returns the right end of the call-out, which extends to the right if there is no room to the
    /// left.
    fn callout_end(&self, split: f64) -> f64 {
        if self.x - self.callout_width() > split {
            0.0
        } else {
            self.x + self.callout_width() + 4.0
        }
    }

    /// Returns whether the record is drawn as a tag on the lane, with its label inside.
    pub(super) fn is_tag(&self) -> bool {
        matches!(
            self.event,
            Event::View { .. }
                | Event::Accepted { .. }
                | Event::Durable { .. }
                | Event::Leader { .. }
                | Event::Leave { .. }
                | Event::Stop { .. }
                | Event::Stats { .. }
        )
    }

    /// Returns the record's labels: the second line gives the group and the view, if they differ
    /// between records.
    pub(super) fn labels(&self, scene: &Scene<'_>) -> Vec<String> {
        let name = |text: &str| shortened(text, NAME_CHARACTERS_MAX);
        let group = |group: &str| scene.several_groups.then(|| name(group));
        match &self.event {
            Event::Multicast { msg, groups, .. } => {
                vec![
                    name(msg),
                    if scene.several_groups { name(&groups.join("+")) } else { String::new() },
                ]
            }
            Event::Accepted { msg, .. } => vec![name(msg), "accepted".to_owned()],
            Event::Leave { .. } => vec!["asked to leave".to_owned()],
            Event::Stop { .. } => vec!["asked to stop".to_owned()],
            Event::Refused { msg, definite, .. } => {
                vec![name(msg), if *definite { "refused" } else { "perhaps refused" }.to_owned()]
            }
            Event::Deliver { msg, group: by, view, replayed, .. } => {
                let view = view.filter(|_| scene.views).map(|view| format!("view {view}"));
                let replayed = replayed.then(|| "replayed".to_owned());
                let parts: Vec<String> =
                    [group(by), view, replayed].into_iter().flatten().collect();
                vec![msg.as_deref().map_or_else(|| "null".to_owned(), name), parts.join(" · ")]
            }
            Event::View { view, group: by, members, .. } => {
                let group = group(by).map(|group| format!(" of {group}"));
                let members = printable(&members.join(" "), MEMBERS_CHARACTERS_MAX);
                vec![format!("view {view}{}", group.unwrap_or_default()), members]
            }
            Event::Durable { upto, group: by, .. } => {
                let group = group(by).map(|group| format!(" of {group}"));
                vec![format!("durable to {upto}{}", group.unwrap_or_default())]
            }
            Event::Leader { group: by, term, .. } => {
                let term = term.map(|term| format!("term {term}"));
                vec![format!("leads {}", name(by)), term.unwrap_or_default()]
            }
            Event::Stats { posts, .. } => vec![format!("{posts} posts")],
            Event::Start { inc, .. } => vec![format!("start {inc}")],
            Event::Fault { kind, how, .. } => {
                let how = how.as_deref().map(name).unwrap_or_default();
                vec![format!("{kind:?}").to_lowercase(), how]
            }
            Event::End { reason, .. } => {
                vec![format!("end: {}", format!("{reason:?}").to_lowercase())]
            }
            Event::Run { .. } | Event::Group { .. } | Event::Unknown { .. } => Vec::new(),
        }
    }

    /// Returns the width of the texts on the axis.
    fn foot_width(&self) -> f64 {
        text_width(self.line.to_string().len().max(self.time.chars().count())) + 9.0
    }
}

/// Returns the approximate width of a text.
pub(super) fn text_width(characters: usize) -> f64 {
    CHARACTER_WIDTH * f64::from(u16::try_from(characters).unwrap_or(u16::MAX))
}

/// Returns the records that belong to a node, in time order.
fn columns<'a>(finding: &'a Finding, picked: &'a [Picked]) -> Vec<Column<'a>> {
    let mut timed: Vec<(u64, Column<'a>)> = Vec::new();
    for (line, text) in picked {
        let Ok(event) = parse(text) else { continue };
        let Some(t_ns) = time_of(&event) else { continue };
        let mut witnesses = finding.witness.iter().enumerate();
        let witness = witnesses.find(|(_, witness)| witness.line == *line);
        let witness = witness.map(|(index, witness)| (index + 1, witness));
        timed.push((
            t_ns,
            Column { line: *line, text, event, witness, time: String::new(), x: 0.0 },
        ));
    }
    timed.sort_by_key(|(t_ns, column)| (*t_ns, column.line));
    let first = timed.first().map_or(0, |(t_ns, _)| *t_ns);
    let placed = timed.into_iter().map(|(t_ns, mut column)| {
        column.time = format!("+{}", words::nanoseconds(t_ns - first));
        column
    });
    placed.collect()
}

/// Returns the nodes of these records, and the number of nodes that did not fit. The witnesses'
/// nodes come first.
fn lanes(columns: &[Column<'_>]) -> (Vec<String>, usize) {
    let mut lanes: Vec<&str> = Vec::new();
    let witnesses = columns.iter().filter(|column| column.witness.is_some());
    for column in witnesses.chain(columns) {
        for node in nodes(&column.event) {
            if !lanes.contains(&node) {
                lanes.push(node);
            }
        }
    }
    let left_out = lanes.len().saturating_sub(LANES_MAX);
    lanes.truncate(LANES_MAX);
    lanes.sort_by(|one, other| by_number(one, other));
    (lanes.into_iter().map(str::to_owned).collect(), left_out)
}

/// Returns the messages of the witnesses.
fn messages(columns: &[Column<'_>]) -> Vec<String> {
    let mut messages: Vec<&str> = Vec::new();
    for column in columns.iter().filter(|column| column.witness.is_some()) {
        messages.extend(message(&column.event).filter(|name| !messages.contains(name)));
    }
    messages.into_iter().map(str::to_owned).collect()
}

fn groups<'a>(event: &'a Event<'_>) -> Vec<&'a str> {
    match event {
        Event::Multicast { groups, .. } => groups.iter().map(|group| &**group).collect(),
        Event::Deliver { group, .. }
        | Event::View { group, .. }
        | Event::Durable { group, .. }
        | Event::Leader { group, .. } => vec![group],
        _ => Vec::new(),
    }
}

fn differ<T: Ord>(values: impl Iterator<Item = T>) -> bool {
    values.collect::<BTreeSet<T>>().len() > 1
}

/// Returns the time of a record; a group and the run have none.
const fn time_of(event: &Event<'_>) -> Option<u64> {
    match event {
        Event::Start { t_ns, .. }
        | Event::View { t_ns, .. }
        | Event::Multicast { t_ns, .. }
        | Event::Accepted { t_ns, .. }
        | Event::Refused { t_ns, .. }
        | Event::Leave { t_ns, .. }
        | Event::Stop { t_ns, .. }
        | Event::Deliver { t_ns, .. }
        | Event::Durable { t_ns, .. }
        | Event::Leader { t_ns, .. }
        | Event::Stats { t_ns, .. }
        | Event::Fault { t_ns, .. }
        | Event::End { t_ns, .. } => Some(*t_ns),
        Event::Run { .. } | Event::Group { .. } | Event::Unknown { .. } => None,
    }
}

/// Compares names by the numbers in them: n2 comes before n10.
fn by_number(one: &str, other: &str) -> Ordering {
    let split = |name: &str| {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (stem, number) = name.split_at(name.len() - digits);
        (stem.to_owned(), number.trim_start_matches('0').len(), number.to_owned())
    };
    split(one).cmp(&split(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_sorted_by_number() {
        let mut names = ["n10", "n2", "a", "n1", "b3"];
        names.sort_by(|one, other| by_number(one, other));
        assert_eq!(names, ["a", "b3", "n1", "n2", "n10"]);
    }
}
