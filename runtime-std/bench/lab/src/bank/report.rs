//! The outcome of a run, as text or as JSON.

use serde::Serialize;
use tramontane_conformance::history::Event;
use tramontane_runtime::shards::{Destinations, GroupId, Places};

use super::accounts::{ACCOUNTS, OPENING, Totals};
use super::history::Merged;
use super::messages::ClientTransfer;
use super::plan::BankPlan;
use super::supervisor::{BankRun, Kill};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::table::Table;

/// The JSON output.
#[derive(Debug, Serialize)]
pub(super) struct BankResult {
    /// Number of transfers that clients multicast.
    transfers: u64,
    /// Number of those transfers that were delivered by one replica of each of their groups,
    /// according to their clients.
    delivered: u64,
    /// Number of leaders killed.
    leader_kills: usize,
    /// Durations of the transfers that a kill delayed, in ms. `None` if there were none.
    delayed_ms: Option<Spread>,
    /// Time from a kill to the first delivery by the next leader of the group, in ms. `None` if no
    /// group had a next leader.
    takeover_ms: Option<Spread>,
    /// Whether no money is missing.
    conserved: bool,
    /// Whether all replicas of each group have the same state.
    replicas_equal: bool,
    /// The conformance suite's verdict on the histories.
    suite: String,
    transfers_per_s: f64,
    seconds: f64,
    /// Number of deliveries by all replicas.
    deliveries: u64,
}

/// A median and a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    median: f64,
    max: f64,
}

impl Spread {
    /// Computes the spread of times in nanoseconds.
    fn of(mut times_ns: Vec<u64>) -> Option<Self> {
        times_ns.sort_unstable();
        let ms = |ns: u64| (ns / 1_000) as f64 / 1_000.0;
        let median = *times_ns.get(times_ns.len() / 2)?;
        Some(Self { median: ms(median), max: ms(*times_ns.last()?) })
    }
}

/// A period in which a group has no leader, from the kill to the next leader's first delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    group: GroupId,
    from_ns: u64,
    to_ns: u64,
}

impl BankResult {
    /// Evaluates the results of a run.
    pub(super) fn of(
        plan: &BankPlan,
        places: &Places,
        run: &BankRun,
        merged: &Merged,
        suite: String,
    ) -> Self {
        let answered = run.sent.iter().filter(|sent| sent.answered_ns.is_some()).count() as u64;
        let gaps = gaps(places, &run.kills, merged);
        let takeover = gaps.iter().map(|gap| gap.to_ns - gap.from_ns).collect();
        let held = || run.held.iter().flatten();
        Self {
            transfers: run.sent.len() as u64,
            delivered: answered,
            leader_kills: run.kills.len(),
            delayed_ms: Spread::of(delayed(places, &gaps, &run.sent)),
            takeover_ms: Spread::of(takeover),
            conserved: is_conserved(plan, &run.held),
            replicas_equal: is_equal(places, &run.held),
            suite,
            transfers_per_s: answered as f64 / run.seconds.max(0.001),
            seconds: run.seconds,
            deliveries: held().map(|held| held.delivered).sum(),
        }
    }

    /// Returns the outcome as text.
    pub(super) fn table(&self) -> String {
        let mut table = Table::new("the bank  it was", &[0, 1]);
        let spread = |spread: Option<Spread>| {
            spread.map_or_else(
                || "none".to_owned(),
                |of| format!("{:.1} median, {:.1} max", of.median, of.max),
            )
        };
        let yes = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
        table.row(["transfers".to_owned(), self.transfers.to_string()]);
        table.row(["delivered".to_owned(), self.delivered.to_string()]);
        table.row(["a second".to_owned(), format!("{:.0}", self.transfers_per_s)]);
        table.row(["leaders killed".to_owned(), self.leader_kills.to_string()]);
        table.row(["delayed by that, ms".to_owned(), spread(self.delayed_ms)]);
        table.row(["to the next leader, ms".to_owned(), spread(self.takeover_ms)]);
        table.row(["all money is there".to_owned(), yes(self.conserved)]);
        table.row(["replicas are equal".to_owned(), yes(self.replicas_equal)]);
        table.row(["the suite".to_owned(), self.suite.clone()]);
        table.to_string()
    }

    /// Returns an error unless all checks have passed.
    pub(super) fn verdict(&self, kept: &str) -> Result<(), Failure> {
        let wrong = if !self.conserved {
            "money was lost or created"
        } else if !self.replicas_equal {
            "replicas of a group have different states"
        } else if self.suite != "passed" {
            "the conformance suite found a broken promise"
        } else if self.delivered != self.transfers {
            "a transfer was not delivered"
        } else {
            return Ok(());
        };
        let what = format_args!("{wrong}; the history is {kept}");
        Err(Failure::new(Status::Disagreement, what, "please report this, with the history"))
    }
}

/// Returns whether no money is missing, counting one replica of each group.
fn is_conserved(plan: &BankPlan, held: &[Vec<Totals>]) -> bool {
    let money: i64 = held.iter().filter_map(|group| group.first()).map(|held| held.money).sum();
    let groups = i64::try_from(plan.overlay.groups.len()).unwrap_or(0);
    money == groups * i64::from(ACCOUNTS) * OPENING
}

fn is_equal(places: &Places, held: &[Vec<Totals>]) -> bool {
    let same = |held: &Totals| (held.messages, held.digest, held.money);
    let is_whole = |(group, held): (GroupId, &Vec<Totals>)| {
        held.len() == usize::from(places.overlay().replicas(group))
            && held.iter().all(|one| Some(same(one)) == held.first().map(same))
    };
    let groups: Vec<GroupId> = places.overlay().all().iter().collect();
    held.len() == groups.len() && groups.into_iter().zip(held).all(is_whole)
}

/// Returns the gaps caused by kills. A kill has no gap if no leader follows before the end.
fn gaps(places: &Places, kills: &[Kill], merged: &Merged) -> Vec<Gap> {
    let mut open: Vec<(Kill, Option<(String, u32)>)> = Vec::new();
    let mut waiting: Vec<Kill> = kills.to_vec();
    waiting.reverse();
    let mut found = Vec::new();
    for event in merged.events() {
        match event {
            Event::Leader { t_ns, node, inc, group, .. } => {
                while waiting.last().is_some_and(|kill| kill.at_ns <= t_ns) {
                    open.extend(waiting.pop().map(|kill| (kill, None)));
                }
                let of = |(kill, _): &&mut (Kill, _)| places.group_name(kill.group) == group;
                if let Some((_, next)) = open.iter_mut().find(of) {
                    *next = Some((node.into_owned(), inc));
                }
            }
            Event::Deliver { t_ns, node, inc, replayed: false, .. } => {
                let is_its = |(_, next): &(Kill, Option<(String, u32)>)| {
                    next.as_ref().is_some_and(|(leader, start)| *leader == node && *start == inc)
                };
                if let Some(place) = open.iter().position(is_its) {
                    let (kill, _) = open.swap_remove(place);
                    found.push(Gap { group: kill.group, from_ns: kill.at_ns, to_ns: t_ns });
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the durations of the transfers that passed through a group while it had no leader.
fn delayed(places: &Places, gaps: &[Gap], sent: &[ClientTransfer]) -> Vec<u64> {
    let took = |sent: &ClientTransfer| {
        let answered = sent.answered_ns?;
        let way = way(places, Destinations(sent.destinations));
        let is_delayed = gaps
            .iter()
            .any(|gap| way.contains(gap.group) && sent.at_ns < gap.to_ns && answered > gap.from_ns);
        is_delayed.then(|| answered - sent.at_ns)
    };
    sent.iter().filter_map(took).collect()
}

/// Returns all groups that order a message: its destinations, and the groups above them, up to the
/// lowest group that reaches all of them.
fn way(places: &Places, to: Destinations) -> Destinations {
    let overlay = places.overlay();
    let Some(top) = overlay.lowest_common_ancestor(to) else { return to };
    let mut way = to.with(top);
    for group in to.iter() {
        let mut at = group;
        while at != top
            && let Some(parent) = overlay.parent(at)
        {
            way = way.with(parent);
            at = parent;
        }
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use tramontane_runtime::shards::Description;

    #[test]
    fn transfer_passes_through_intermediate_groups() {
        let chain = [None, Some(0), Some(1), Some(2)];
        let overlay = Description::local("bank", &chain, 3);
        let places = Places::new(&overlay, overlay.overlay().expect("a tree"));
        let set = |groups: &[u16]| {
            groups.iter().fold(Destinations::default(), |set, group| set.with(GroupId(*group)))
        };
        assert_eq!(way(&places, set(&[1, 3])), set(&[1, 2, 3]));
        let sent = |at_ns, answered_ns, groups: &[u16]| ClientTransfer {
            at_ns,
            answered_ns: Some(answered_ns),
            destinations: set(groups).0,
        };
        let gaps = [Gap { group: GroupId(2), from_ns: 100, to_ns: 200 }];
        let all = [
            sent(90, 220, &[1, 3]),
            sent(90, 220, &[0, 1]),
            sent(10, 99, &[2]),
            sent(201, 240, &[2]),
            sent(150, 260, &[2]),
        ];
        assert_eq!(delayed(&places, &gaps, &all), [130, 110]);
        let spread = Spread::of(vec![5_000_000, 1_000_000, 3_000_000]);
        assert_eq!(spread, Some(Spread { median: 3.0, max: 5.0 }));
    }
}
