//! What the text of the paper says of its evaluation, as far as a run can answer it. Nothing is
//! read off a plot: the figures themselves are lost from the text that we have.
//!
//! "TRAM" stands for its best tree at a point, since the paper says that one chooses the right tree
//! for the case (8.2), unless a claim names one.

use super::experiment::{Experiment, GROUPS};
use super::judged::{Judged, Seen};
use super::leader_change::LeaderChange;
use super::report::Rows;
use super::system::{Switches, System};
use super::tree::Tree;

const BASE: System = System::Tram(Tree::Base, Switches::PAPER);
const BREADTH: System = System::Tram(Tree::Breadth, Switches::PAPER);
const DEPTH: System = System::Tram(Tree::Depth, Switches::PAPER);

/// Figures that differ by less than this share are the same.
const BAND: f64 = 0.25;

/// All claims.
pub(super) fn claims(rows: Rows<'_>, changes: &[LeaderChange]) -> Vec<Judged> {
    let looks = Looks(rows);
    let mut all = vec![
        Judged::by("3", "a write takes longer with more targets", looks.writes(), ""),
        Judged::by(
            "8.2",
            "the breadth tree orders messages almost in constant time from 2 destinations on",
            looks.constant(BREADTH),
            "constant: within 25 % of the time for 2",
        ),
        Judged::by(
            "8.2",
            "base and depth have a higher latency than breadth at 8 destinations",
            looks.higher_latency(),
            "",
        ),
        Judged::by(
            "8.2",
            "depth has the most messages a second, closely followed by base",
            looks.depth_leads(),
            "on average over 1 to 8 destinations; closely: within 25 %",
        ),
        Judged::by(
            "8.2",
            "TRAM's latency is lower than RamCast's from 3 destinations on",
            looks.lower_latency(Experiment::Random, 3..=GROUPS),
            "",
        ),
        Judged::by(
            "8.2",
            "RamCast has an advantage with few destinations: its latency is lower with 2",
            looks.ramcast_is_faster(2),
            "",
        ),
        Judged::by(
            "8.2",
            "TRAM's messages a second are more than RamCast's from 4 destinations on",
            looks.higher_rate(Experiment::Random, 4..=GROUPS, None),
            "",
        ),
        Judged::by(
            "8.3",
            "with adjacent groups TRAM's depth tree always has more messages a second",
            looks.higher_rate(Experiment::Adjacent, 1..=GROUPS, Some(DEPTH)),
            "",
        ),
        Judged::by(
            "8.3",
            "TRAM performs better with adjacent groups than with random ones",
            looks.adjacent_is_better(),
            "base tree, messages a second with 2 to 7 destinations; equal at 1 and 8 by definition",
        ),
    ];
    all.extend(later_sections(Looks(rows), changes));
    all
}

fn later_sections(looks: Looks<'_>, changes: &[LeaderChange]) -> Vec<Judged> {
    vec![
        Judged::by(
            "8.4",
            "with small payloads TRAM outperforms RamCast; around 16 KB both are similar",
            looks.payload(),
            "messages a second to 8 groups; similar: within 25 %",
        ),
        Judged::by(
            "8.5",
            "replication takes almost constant time for 3 to 9 replicas",
            looks.replicas(),
            "three groups, 3 destinations; almost constant: within 25 %",
        ),
        Judged::by(
            "8.6",
            "TRAM and RamCast outperform ByzCast and Skeen by orders of magnitude",
            looks.messages(),
            "the paper's are in Java, and no model of it is in here: only the network and the \
             kernel are",
        ),
        Judged::by(
            "8.7",
            "messages that a leader change delays take 28.3 ms on average (4.4 to 50.7)",
            leader_change(changes),
            "the paper's connections are made anew; here the rights change with the flags of a \
             connection, as in Mu",
        ),
    ]
}

#[derive(Clone, Copy)]
struct Looks<'r>(Rows<'r>);

impl Looks<'_> {
    fn latency(&self, experiment: Experiment, system: System, over: u32) -> Option<f64> {
        self.0.latency_us(experiment, system, over)
    }

    fn rate(&self, experiment: Experiment, system: System, over: u32) -> Option<f64> {
        self.0.messages_per_s(experiment, system, over)
    }

    fn best_latency(&self, experiment: Experiment, over: u32) -> Option<f64> {
        let all = [BASE, BREADTH, DEPTH].into_iter();
        all.filter_map(|system| self.latency(experiment, system, over)).reduce(f64::min)
    }

    fn best_rate(&self, experiment: Experiment, over: u32) -> Option<f64> {
        let all = [BASE, BREADTH, DEPTH].into_iter();
        all.filter_map(|system| self.rate(experiment, system, over)).reduce(f64::max)
    }

    fn writes(&self) -> Seen {
        let of = |targets| {
            let rows = self.0.0.iter();
            let mut found = rows.filter(|row| row.experiment == Experiment::Writes);
            found.find(|row| row.over == targets).map(|row| row.latency_us.median)
        };
        let (one, many) = (of(1)?, of(24)?);
        Some((many > one, format!("1: {one:.2} us, 24: {many:.2} us, all posted at once")))
    }

    fn constant(&self, system: System) -> Seen {
        let of = |over| self.latency(Experiment::Random, system, over);
        let (two, eight) = (of(2)?, of(GROUPS)?);
        Some(((eight / two - 1.0).abs() <= BAND, format!("2: {two:.1} us, 8: {eight:.1} us")))
    }

    fn higher_latency(&self) -> Seen {
        let of = |system| self.latency(Experiment::Random, system, GROUPS);
        let (base, breadth, depth) = (of(BASE)?, of(BREADTH)?, of(DEPTH)?);
        let seen = format!("breadth {breadth:.1} us, base {base:.1} us, depth {depth:.1} us");
        Some((base > breadth && depth > breadth, seen))
    }

    fn depth_leads(&self) -> Seen {
        let mean = |system| {
            let rates = (1..=GROUPS).map(|over| self.rate(Experiment::Random, system, over));
            let rates: Option<Vec<f64>> = rates.collect();
            rates.map(|rates| rates.iter().sum::<f64>() / f64::from(GROUPS) / 1e3)
        };
        let (base, breadth, depth) = (mean(BASE)?, mean(BREADTH)?, mean(DEPTH)?);
        let seen = format!("depth {depth:.0} k/s, base {base:.0} k/s, breadth {breadth:.0} k/s");
        Some((depth >= base && base >= depth * (1.0 - BAND) && depth >= breadth, seen))
    }

    fn lower_latency(&self, experiment: Experiment, over: impl Iterator<Item = u32>) -> Seen {
        self.all(over, |over| {
            let other = self.latency(experiment, System::RAMCAST, over)?;
            Some(self.best_latency(experiment, over)? / other)
        })
        .map(|ratios| {
            let holds = ratios.iter().all(|(_, ratio)| *ratio < 1.0);
            (holds, format!("of RamCast's: {}", listed(&ratios)))
        })
    }

    fn ramcast_is_faster(&self, over: u32) -> Seen {
        let ours = self.best_latency(Experiment::Random, over)?;
        let other = self.latency(Experiment::Random, System::RAMCAST, over)?;
        Some((other < ours, format!("RamCast {other:.1} us, TRAM {ours:.1} us")))
    }

    /// Of one system, or of the best tree at each point.
    fn higher_rate(
        &self,
        experiment: Experiment,
        over: impl Iterator<Item = u32>,
        system: Option<System>,
    ) -> Seen {
        let ratios = self.all(over, |over| {
            let ours = match system {
                Some(system) => self.rate(experiment, system, over),
                None => self.best_rate(experiment, over),
            };
            Some(ours? / self.rate(experiment, System::RAMCAST, over)?)
        })?;
        let holds = ratios.iter().all(|(_, ratio)| *ratio > 1.0);
        Some((holds, format!("of RamCast's: {}", listed(&ratios))))
    }

    fn adjacent_is_better(&self) -> Seen {
        let ratios = self.all(2..GROUPS, |over| {
            let random = self.rate(Experiment::Random, BASE, over)?;
            Some(self.rate(Experiment::Adjacent, BASE, over)? / random)
        })?;
        let holds = ratios.iter().all(|(_, ratio)| *ratio > 1.0);
        Some((holds, format!("of that with random groups: {}", listed(&ratios))))
    }

    fn payload(&self) -> Seen {
        let ratio = |bytes| {
            let other = self.rate(Experiment::Payload, System::RAMCAST, bytes)?;
            Some(self.best_rate(Experiment::Payload, bytes)? / other)
        };
        let (small, large) = (ratio(64)?, ratio(16 << 10)?);
        let holds = small > 1.0 && (large - 1.0).abs() <= BAND;
        Some((holds, format!("of RamCast's: {small:.2} at 64 B, {large:.2} at 16 KiB")))
    }

    fn replicas(&self) -> Seen {
        let rows = self.0.0.iter().filter(|row| row.experiment == Experiment::Replicas);
        let system = System::Tram(Tree::Three, Switches::PAPER).name();
        let found: Vec<_> =
            rows.filter(|row| row.system == system && row.destinations == 3).collect();
        let of = |replicas| found.iter().find(|row| row.over == replicas);
        let (few, many) = (of(3)?.latency_us.median, of(9)?.latency_us.median);
        Some((many <= few * (1.0 + BAND), format!("3: {few:.1} us, 9: {many:.1} us")))
    }

    fn messages(&self) -> Seen {
        let of = |system| self.latency(Experiment::Messages, system, GROUPS);
        let rate = |system| self.rate(Experiment::Messages, system, GROUPS);
        let tree = of(System::BYZCAST)? / of(BASE)?;
        let genuine = of(System::SKEEN)? / of(System::RAMCAST)?;
        let tree_rate = rate(BASE)? / rate(System::BYZCAST)?;
        let genuine_rate = rate(System::RAMCAST)? / rate(System::SKEEN)?;
        let seen = format!(
            "8 destinations: ByzCast takes {tree:.1} times as long as TRAM, Skeen {genuine:.1} \
             times as long as RamCast; messages a second: {tree_rate:.1} and {genuine_rate:.1} \
             times theirs"
        );
        Some((tree >= 10.0 && genuine >= 10.0, seen))
    }

    /// A figure at each place; none if it is missing at one.
    fn all(
        &self,
        over: impl Iterator<Item = u32>,
        figure: impl Fn(u32) -> Option<f64>,
    ) -> Option<Vec<(u32, f64)>> {
        over.map(|over| figure(over).map(|figure| (over, figure))).collect()
    }
}

fn leader_change(changes: &[LeaderChange]) -> Seen {
    let count = changes.iter().map(|change| change.delayed).sum::<usize>();
    let sum = changes.iter().map(|change| change.mean_us * change.delayed as f64).sum::<f64>();
    let mean_ms = sum / (count > 0).then_some(count)? as f64 / 1e3;
    let holds = (mean_ms / 28.3 - 1.0).abs() <= BAND;
    Some((holds, format!("{mean_ms:.2} ms on average, of {count} messages")))
}

fn listed(ratios: &[(u32, f64)]) -> String {
    let one = |(over, ratio): &(u32, f64)| format!("{over}: {ratio:.2}");
    ratios.iter().map(one).collect::<Vec<_>>().join(", ")
}
