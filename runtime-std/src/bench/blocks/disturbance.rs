//! What is out of order in the experiment `delays`, simulated or real: a link at half speed, or a member that pauses;
//! and what the paper's analysis of the pipeline says of it (RDMC 4.5, RDM-9).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::command::{Arguments, Experiment};
use crate::bench::BenchError;

/// Links that are tried where none is named: at the root, and further out.
const LINKS: [Link; 4] = [Link(0, 1), Link(5, 7), Link(32, 33), Link(21, 53)];

/// Pauses that are tried where none is named, by the time of so many blocks.
const PAUSES: [u32; 3] = [1, 4, 16];

/// The link between two members, by rank; on the command line `0-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link(pub u16, pub u16);

impl Link {
    /// The other end, if a member is at one.
    pub(super) fn peer_of(self, member: u16) -> Option<u16> {
        match self {
            Self(one, other) if one == member => Some(other),
            Self(one, other) if other == member => Some(one),
            Self(..) => None,
        }
    }
}

impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no link: name its two members, as in 0-1");
        let (one, other) = text.split_once('-').ok_or_else(wrong)?;
        let link = Self(one.parse().map_err(|_| wrong())?, other.parse().map_err(|_| wrong())?);
        if link.0 == link.1 { Err(wrong()) } else { Ok(link) }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.0, self.1)
    }
}

/// One thing that is out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// A link has half the speed of the others.
    SlowLink(Link),
    /// A member does nothing for the time of so many blocks, once a message has begun.
    Pause { member: u16, blocks: u32 },
}

/// The links that are slowed, one after the other, in a group of so many.
pub(super) fn links(arguments: &Arguments, nodes: usize) -> Vec<Link> {
    if !arguments.slow_link.is_empty() {
        return arguments.slow_link.clone();
    }
    LINKS.into_iter().filter(|link| usize::from(link.0.max(link.1)) < nodes).collect()
}

/// The members that pause, one after the other, in a group of so many: the root, some, and the last.
pub(super) fn delayed(arguments: &Arguments, nodes: usize) -> Vec<u16> {
    if !arguments.delayed.is_empty() {
        return arguments.delayed.clone();
    }
    let last = u16::try_from(nodes.saturating_sub(1)).unwrap_or(u16::MAX);
    let mut members: Vec<u16> = [0, 1, 21].into_iter().filter(|member| *member < last).collect();
    members.push(last);
    members
}

/// For how many blocks' time they pause.
pub(super) fn pauses(arguments: &Arguments) -> &[u32] {
    if arguments.pause_blocks.is_empty() { &PAUSES } else { &arguments.pause_blocks }
}

/// Whether what is asked for is of the experiment, and in the groups.
pub(super) fn check(
    arguments: &Arguments,
    chosen: &[Experiment],
    nodes: &[usize],
) -> Result<(), BenchError> {
    let refused = |what: String| Err(BenchError::Arguments(what));
    let given = [
        ("--slow-link", !arguments.slow_link.is_empty()),
        ("--delayed", !arguments.delayed.is_empty()),
        ("--pause-blocks", !arguments.pause_blocks.is_empty()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given)
        && !chosen.contains(&Experiment::Delays)
    {
        return refused(format!("{option} is of the experiment delays: add --experiment delays"));
    }
    let ends = arguments.slow_link.iter().flat_map(|link| [link.0, link.1]);
    let farthest = ends.chain(arguments.delayed.iter().copied()).max();
    let fewest = nodes.iter().copied().min().unwrap_or(0);
    match farthest {
        Some(member) if usize::from(member) >= fewest => refused(format!(
            "there is no member {member}: of {fewest}, they are 0 to {}",
            fewest - 1
        )),
        _ => Ok(()),
    }
}

/// The least share of the full bandwidth that a pipeline keeps with one link at half speed: of its steps, the link is used
/// in one of `l`, the members' logarithm, and takes two steps' time then.
pub(super) fn share_left(steps: u64, members: usize) -> f64 {
    let dimensions = u64::from(members.next_power_of_two().ilog2()).max(1);
    steps as f64 / (steps + steps.div_ceil(dimensions)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_and_the_bound_for_few_blocks() {
        assert_eq!(format!("{:.3}", share_left(1024 + 6 - 1, 64)), "0.857");
        assert_eq!(format!("{:.3}", share_left(16 + 6 - 1, 64)), "0.840");
        assert_eq!(share_left(10, 2), 0.5, "there is no other link");
    }

    #[test]
    fn a_link_has_two_ends() {
        assert_eq!("0-11".parse(), Ok(Link(0, 11)));
        assert_eq!((Link(3, 5).peer_of(5), Link(3, 5).peer_of(4)), (Some(3), None));
        for wrong in ["", "3", "3-", "3-3", "a-b", "1-2-3"] {
            assert!(wrong.parse::<Link>().is_err(), "{wrong}");
        }
    }
}
