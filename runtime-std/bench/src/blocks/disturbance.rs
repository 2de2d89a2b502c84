//! Disturbances of the experiment `delays`: a link at half speed, or a member that pauses; and the
//! paper's analysis of the pipeline (RDMC 4.5, RDM-9).

use super::command::BlocksArguments;
use super::experiment::Experiment;
use super::link::MemberLink;
use crate::error::BenchError;

/// The default slow links: one at the root, and one further out.
const LINKS: [MemberLink; 2] = [MemberLink { one: 0, other: 1 }, MemberLink { one: 5, other: 7 }];

/// The default durations of a pause, in block times.
const PAUSES: [u32; 3] = [1, 4, 16];

/// A single disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// A link has half the speed of the others.
    SlowLink(MemberLink),
    /// A member is idle for this number of block times once a message has begun.
    Pause { member: u16, blocks: u32 },
}

/// Returns the links that are slowed, one at a time, in a group of this size.
pub(super) fn links(arguments: &BlocksArguments, nodes: usize) -> Vec<MemberLink> {
    if !arguments.slow_link.is_empty() {
        return arguments.slow_link.clone();
    }
    LINKS.into_iter().filter(|link| usize::from(link.one.max(link.other)) < nodes).collect()
}

/// Returns the members that pause, one at a time, in a group of this size: the root, some others,
/// and the last.
pub(super) fn delayed(arguments: &BlocksArguments, nodes: usize) -> Vec<u16> {
    if !arguments.delayed.is_empty() {
        return arguments.delayed.clone();
    }
    let last = u16::try_from(nodes.saturating_sub(1)).unwrap_or(u16::MAX);
    let mut members: Vec<u16> = [0, 1].into_iter().filter(|member| *member < last).collect();
    members.push(last);
    members
}

/// Returns the pauses in block times.
pub(super) fn pauses(arguments: &BlocksArguments) -> &[u32] {
    if arguments.pause_blocks.is_empty() { &PAUSES } else { &arguments.pause_blocks }
}

/// Checks that the disturbance options suit the experiment and the groups.
pub(super) fn check(
    arguments: &BlocksArguments,
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
        return refused(format!(
            "{option} applies only to the experiment delays; add --experiment delays"
        ));
    }
    let ends = arguments.slow_link.iter().flat_map(|link| [link.one, link.other]);
    let farthest = ends.chain(arguments.delayed.iter().copied()).max();
    let fewest = nodes.iter().copied().min().unwrap_or(0);
    match farthest {
        Some(member) if usize::from(member) >= fewest => refused(format!(
            "there is no member {member} in a group of {fewest}; give a member from 0 to {}",
            fewest - 1
        )),
        _ => Ok(()),
    }
}

/// Returns the minimum share of the full bandwidth that a pipeline keeps with one link at half
/// speed: the link is used in one step out of `l`, the base-2 logarithm of the number of members,
/// and that step then takes twice as long.
pub(super) fn share_left(steps: u64, members: usize) -> f64 {
    let dimensions = u64::from(members.next_power_of_two().ilog2()).max(1);
    steps as f64 / (steps + steps.div_ceil(dimensions)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_bandwidth_share_matches_the_papers_example() {
        assert_eq!(format!("{:.3}", share_left(1024 + 6 - 1, 64)), "0.857");
        assert_eq!(format!("{:.3}", share_left(16 + 6 - 1, 64)), "0.840");
        assert_eq!(share_left(10, 2), 0.5, "there is no other link");
    }
}
