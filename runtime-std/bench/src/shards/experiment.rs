//! The experiments, and what each varies.

use clap::ValueEnum;
use serde::Serialize;

use super::case::{Case, Demand};
use super::system::{Switches, System};
use super::tree::Tree;

/// An experiment of the paper's evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Figure 2: the time of writes to so many peers at once.
    Writes,
    /// Figure 5: messages to random groups.
    Random,
    /// Figure 6: messages to groups next to each other in the tree.
    Adjacent,
    /// Figure 7: larger messages, to all eight groups.
    Payload,
    /// Figure 8: more replicas, in a tree of three groups.
    Replicas,
    /// Figure 9: TRAM and RamCast beside their counterparts over messages.
    Messages,
    /// Table 1: all eight leaders crash at once.
    LeaderChange,
}

/// A point of a figure: a case, and where it stands on the horizontal axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) experiment: Experiment,
    pub(super) over: u32,
    pub(super) case: Case,
}

/// Sizes of the payload experiment, in bytes.
const PAYLOADS: [u32; 5] = [64, 1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// Replicas of a group in the replicas experiment.
const REPLICAS: [u16; 5] = [1, 3, 5, 7, 9];

/// Groups of the trees of eight.
pub(super) const GROUPS: u32 = 8;

impl Experiment {
    /// What it runs, beside writes and leader changes, which are no cases.
    pub(super) fn points(self, is_quick: bool) -> Vec<Point> {
        let mut points = match self {
            Self::Writes | Self::LeaderChange => Vec::new(),
            Self::Random => self.over_destinations(&systems(&Switches::EACH), false),
            Self::Adjacent => self.over_destinations(&systems(&Switches::ENDS), true),
            Self::Payload => self.over_payloads(),
            Self::Replicas => self.over_replicas(),
            Self::Messages => self.over_destinations(&counterparts(), false),
        };
        for point in &mut points {
            point.case.is_quick = is_quick;
        }
        points.retain(|point| !is_quick || point.is_in_quick_run());
        points
    }

    /// What it shows.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Writes => "Writes to several targets (figure 2)",
            Self::Random => "Random groups (figure 5)",
            Self::Adjacent => "Adjacent groups (figure 6)",
            Self::Payload => "Payloads, to all 8 groups (figure 7)",
            Self::Replicas => "Replicas of each of three groups (figure 8)",
            Self::Messages => "Shared memory and messages (figure 9)",
            Self::LeaderChange => "Leader changes (table 1)",
        }
    }

    /// What its horizontal axis counts.
    pub(super) const fn axis(self) -> &'static str {
        match self {
            Self::Writes => "targets",
            Self::Random | Self::Adjacent | Self::Messages => "destination groups",
            Self::Payload => "bytes of a message",
            Self::Replicas => "replicas of a group",
            Self::LeaderChange => "",
        }
    }

    fn over_destinations(self, systems: &[System], is_adjacent: bool) -> Vec<Point> {
        let mut points = Vec::new();
        for system in systems {
            for destinations in 1..=GROUPS {
                // One group, or all of them, are drawn alike: such a case is run once.
                let is_adjacent = is_adjacent && (2..GROUPS).contains(&destinations);
                let case = Case { is_adjacent, ..Case::of(*system, destinations) };
                points.extend(self.under_both(destinations, case));
            }
        }
        points
    }

    fn over_payloads(self) -> Vec<Point> {
        let mut points = Vec::new();
        for system in systems(&Switches::OF_PAYLOADS) {
            for payload_bytes in PAYLOADS {
                let case = Case { payload_bytes, ..Case::of(system, GROUPS) };
                points.extend(self.under_both(payload_bytes, case));
            }
        }
        points
    }

    fn over_replicas(self) -> Vec<Point> {
        let mut points = Vec::new();
        for switches in Switches::ENDS {
            for replicas in REPLICAS {
                for destinations in 1..=3 {
                    let system = System::Tram(Tree::Three, switches);
                    let case = Case { replicas, ..Case::of(system, destinations) };
                    points.push(Point { experiment: self, over: replicas.into(), case });
                }
            }
        }
        points
    }

    /// One client, and many.
    fn under_both(self, over: u32, case: Case) -> [Point; 2] {
        [Demand::Low, Demand::Saturating].map(|demand| Point {
            experiment: self,
            over,
            case: Case { demand, ..case },
        })
    }
}

impl Point {
    /// A quick run has the ends of each axis alone, and of TRAM the paper's variant and ours.
    fn is_in_quick_run(&self) -> bool {
        let is_end = match self.experiment {
            Experiment::Payload => [64, 4 << 10].contains(&self.over),
            Experiment::Replicas => [1, 3].contains(&self.over),
            _ => [1, GROUPS].contains(&self.over),
        };
        let is_shown = match self.case.system {
            System::Tram(tree, switches) => {
                let is_tree = [Tree::Breadth, Tree::Three].contains(&tree)
                    || self.experiment == Experiment::Messages;
                is_tree && Switches::ENDS.contains(&switches)
            }
            System::Baseline { .. } => true,
        };
        is_end && is_shown
    }
}

/// TRAM's trees with each of the variants, and RamCast.
fn systems(variants: &[Switches]) -> Vec<System> {
    let of_tree = |tree| variants.iter().map(move |switches| System::Tram(tree, *switches));
    let mut systems: Vec<System> = Tree::OF_EIGHT.into_iter().flat_map(of_tree).collect();
    systems.extend([System::RAMCAST, System::RAMCAST_BATCHED]);
    systems
}

/// TRAM and RamCast, and what goes the same way over messages.
fn counterparts() -> [System; 4] {
    let tram = System::Tram(Tree::Base, Switches::PAPER);
    [tram, System::RAMCAST, System::BYZCAST, System::SKEEN]
}
