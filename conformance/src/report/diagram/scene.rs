//! What a diagram shows, and where: lanes for nodes, a column for each record.
//!
//! Columns are in the order of time, which for one node is the order of its lines; their distances
//! say nothing. Each column is as wide as its texts need, so that nothing overlaps on a lane.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::super::printable::{printable, shortened};
use super::super::words;
use super::pick::{Picked, message, nodes};
use crate::check::{Finding, Witness};
use crate::history::{Event, parse};

/// The most lanes that are drawn.
const LANES_MAX: usize = 12;
/// The longest name that is shown whole.
pub(super) const NAME_CHARACTERS_MAX: usize = 16;
/// The longest list of members that is shown whole.
const MEMBERS_CHARACTERS_MAX: usize = 20;
/// How wide a character of a label is, about.
pub(super) const CHARACTER_WIDTH: f64 = 6.7;
/// What the place of a record that never came takes.
pub(super) const ABSENCE_WIDTH: f64 = 44.0;
/// From one lane to the next.
const LANE_HEIGHT: f64 = 74.0;
/// What is above the first lane, call-outs apart.
const TOP: f64 = 44.0;
/// What a call-out of a culprit takes at the top.
pub(super) const CALLOUT_HEIGHT: f64 = 20.0;

/// A record with its place.
pub(super) struct Column<'a> {
    pub(super) line: u64,
    pub(super) text: &'a str,
    pub(super) event: Event<'a>,
    /// Its number among the witnesses, from 1, and what it shows.
    pub(super) witness: Option<(usize, &'a Witness)>,
    /// When it happened, after the first record that is shown.
    pub(super) time: String,
    pub(super) x: f64,
}

/// All that is drawn.
pub(super) struct Scene<'a> {
    pub(super) columns: Vec<Column<'a>>,
    /// The nodes, from top to bottom.
    pub(super) lanes: Vec<String>,
    /// The messages of the witnesses, in the order in which they are shown: each has its colour.
    pub(super) messages: Vec<String>,
    /// Whether more than one group is about.
    pub(super) several_groups: bool,
    /// Whether views are about.
    pub(super) views: bool,
    /// How many nodes had no room.
    pub(super) lanes_left_out: usize,
    pub(super) left: f64,
    pub(super) width: f64,
    pub(super) top: f64,
}

impl<'a> Scene<'a> {
    /// Puts everything in its place; nothing if there is nothing to show.
    ///
    /// With `absence`, the finding is about what did not happen, which needs room before the
    /// culprit.
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

    /// Gives each column its place.
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

    /// How far a record reaches to each side.
    pub(super) fn half_width(&self, column: &Column<'_>) -> f64 {
        let labels = column.labels(self);
        let longest = labels.iter().map(|label| label.chars().count()).max();
        let frame =
            if column.is_tag() { if column.witness.is_some() { 30.0 } else { 12.0 } } else { 4.0 };
        ((text_width(longest.unwrap_or(0)) + frame) / 2.0).max(14.0)
    }

    /// Where the names of the nodes end and the rest begins.
    pub(super) fn split(&self) -> f64 {
        self.left - 24.0
    }

    /// Where a node's lane is.
    pub(super) fn y(&self, node: &str) -> Option<f64> {
        self.lanes.iter().position(|lane| lane == node).map(|index| self.y_of(index))
    }

    /// Where a lane is.
    pub(super) fn y_of(&self, lane: usize) -> f64 {
        self.top + LANE_HEIGHT * f64::from(u16::try_from(lane).unwrap_or(u16::MAX))
    }

    /// Where the axis is.
    pub(super) fn bottom(&self) -> f64 {
        self.y_of(self.lanes.len()) - 26.0
    }

    /// The column in which a message is multicast.
    pub(super) fn multicast(&self, name: &str) -> Option<&Column<'a>> {
        self.columns.iter().find(|column| match &column.event {
            Event::Multicast { msg, .. } => msg == name,
            _ => false,
        })
    }

    /// A message's place among the colours, if it is a witness's.
    pub(super) fn colour(&self, name: &str) -> Option<usize> {
        self.messages.iter().position(|message| message == name)
    }
}

impl Column<'_> {
    pub(super) fn is_culprit(&self) -> bool {
        self.witness.is_some_and(|(_, witness)| witness.culprit)
    }

    /// What is written at the top about a culprit.
    pub(super) fn callout(&self) -> String {
        self.witness
            .map_or_else(String::new, |(number, one)| format!("{number} culprit: {}", one.role))
    }

    /// How wide that is, as it is larger than a label.
    pub(super) fn callout_width(&self) -> f64 {
        text_width(self.callout().chars().count()) * 1.15
    }

    /// How far it reaches to the right, if there is no room for it to the left.
    fn callout_end(&self, split: f64) -> f64 {
        if self.x - self.callout_width() > split {
            0.0
        } else {
            self.x + self.callout_width() + 4.0
        }
    }

    /// Whether it is drawn as a tag on the lane, with its label inside.
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

    /// What is written at it: the second line says by which group and in which view, where that
    /// differs.
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

    /// How wide the texts on the axis are.
    fn foot_width(&self) -> f64 {
        text_width(self.line.to_string().len().max(self.time.chars().count())) + 9.0
    }
}

/// How wide a text is, about.
pub(super) fn text_width(characters: usize) -> f64 {
    CHARACTER_WIDTH * f64::from(u16::try_from(characters).unwrap_or(u16::MAX))
}

/// The records that are of a node, in the order of time.
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

/// The nodes of these records, and how many had no room. Those of the witnesses come before all
/// others.
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

/// The messages of the witnesses.
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

/// When a record happened; a group and the run have no time.
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

/// Names with numbers in them in the order of these: n2 before n10.
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
    fn nodes_are_in_the_order_of_their_numbers() {
        let mut names = ["n10", "n2", "a", "n1", "b3"];
        names.sort_by(|one, other| by_number(one, other));
        assert_eq!(names, ["a", "b3", "n1", "n2", "n10"]);
    }
}
