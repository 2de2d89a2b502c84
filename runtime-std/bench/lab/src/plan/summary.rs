//! A summary of a plan: steps, the load of each link, and the slack.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use tramontane_core::rdmc::Schedule;

use super::Send;

/// Counts sends in the order of their steps.
#[derive(Debug)]
pub(super) struct Summary {
    members: u16,
    steps: u64,
    sends: u64,
    /// Number of blocks on each link, which has a direction.
    links: HashMap<(u16, u16), u64>,
    /// The step in which a member received a block.
    came: HashMap<(u16, u32), u64>,
    relayed: u64,
    slack: u64,
    slack_min: Option<u64>,
}

/// The load of a link in blocks.
#[derive(Debug, Serialize)]
struct LinkLoad {
    from: u16,
    to: u16,
    blocks: u64,
}

/// The results of the counts.
#[derive(Debug, Serialize)]
pub(super) struct Finished {
    steps: u64,
    sends: u64,
    /// Number of used links, counting each direction separately.
    links: usize,
    /// Number of blocks on the busiest link.
    blocks_per_link_max: u64,
    /// Number of blocks that the busiest member sends.
    blocks_sent_max: u64,
    /// Mean number of steps between the arrival of a block and its relay, excluding the root's
    /// sends (RDMC 4.5).
    slack_mean: Option<f64>,
    /// Minimum number of steps between the arrival of a block and its relay.
    slack_min: Option<u64>,
    /// The loads, sorted by sender and then by receiver.
    load: Vec<LinkLoad>,
}

impl Summary {
    pub(super) fn new(schedule: &Schedule) -> Self {
        Self {
            members: schedule.shape().members.get(),
            steps: schedule.steps(),
            sends: 0,
            links: HashMap::new(),
            came: HashMap::new(),
            relayed: 0,
            slack: 0,
            slack_min: None,
        }
    }

    pub(super) fn count(&mut self, send: &Send) {
        let Send { step, from, to, block } = *send;
        self.sends += 1;
        *self.links.entry((from, to)).or_default() += 1;
        self.came.insert((to, block), step);
        if let Some(came) = self.came.get(&(from, block)) {
            let slack = step - came;
            self.relayed += 1;
            self.slack += slack;
            self.slack_min = Some(self.slack_min.map_or(slack, |least| least.min(slack)));
        }
    }

    pub(super) fn finish(self) -> Finished {
        let mut sent = vec![0_u64; usize::from(self.members)];
        for ((from, _), blocks) in &self.links {
            sent[usize::from(*from)] += blocks;
        }
        // Counts of printed items, far below the limit of exact floats.
        let mean = |relayed| self.slack as f64 / relayed as f64;
        let mut load: Vec<LinkLoad> = self
            .links
            .iter()
            .map(|((from, to), blocks)| LinkLoad { from: *from, to: *to, blocks: *blocks })
            .collect();
        load.sort_by_key(|load| (load.from, load.to));
        Finished {
            steps: self.steps,
            sends: self.sends,
            links: load.len(),
            blocks_per_link_max: load.iter().map(|load| load.blocks).max().unwrap_or(0),
            blocks_sent_max: sent.into_iter().max().unwrap_or(0),
            slack_mean: (self.relayed > 0).then(|| mean(self.relayed)),
            slack_min: self.slack_min,
            load,
        }
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "steps                   {:>8}", self.steps)?;
        writeln!(out, "sends                   {:>8}", self.sends)?;
        writeln!(out, "links used              {:>8}", self.links)?;
        writeln!(out, "blocks on busiest link  {:>8}", self.blocks_per_link_max)?;
        writeln!(out, "blocks of busiest sender {:>7}", self.blocks_sent_max)?;
        if let (Some(mean), Some(least)) = (self.slack_mean, self.slack_min) {
            writeln!(
                out,
                "slack, mean             {mean:>8.2} steps\nslack, least            {least:>8} steps"
            )?;
        }
        write!(out, "\nlink  from>to:blocks")?;
        for links in self.load.chunk_by(|one, other| one.from == other.from) {
            write!(out, "\n{:>4}", links[0].from)?;
            for LinkLoad { from, to, blocks } in links {
                write!(out, "  {from}>{to}:{blocks}")?;
            }
        }
        writeln!(out)
    }
}
