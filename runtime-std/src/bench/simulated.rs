//! Continuous sending in the simulator, on the paper's hardware.

use tramontane_core::multicast::Switches;
use tramontane_fixtures::cluster::{self, Ending, Load, OwnedGroup, Report, Setup};
use tramontane_fixtures::payload::Care;

use super::BenchError;
use super::command::{Multicast, switches_without};
use super::paper;
use super::processes::Spread;
use super::report::Row;

/// Messages of each sender where nothing else is said: enough for the start and the end not to matter.
const MESSAGES: u64 = 2_000;

/// Virtual time after which a run is given up.
const LIMIT_NS: u64 = 60_000_000_000;

/// One simulated run.
///
/// # Errors
/// [`BenchError::Setup`] if it does not end as it should.
pub fn run(arguments: &Multicast, nodes: u16, bytes: u32) -> Result<Row, BenchError> {
    let senders = arguments.senders.of(nodes);
    let messages = arguments.messages.unwrap_or(MESSAGES);
    let switches = switches_without(&arguments.without);
    let delayed = if arguments.delay_us > 0 { arguments.delayed.of(senders) } else { 0 };

    // What the senders that never wait could do alone comes first: it says how long a run with the others
    // takes, and so how many messages those who wait can send meanwhile.
    let run = Run { nodes, bytes, switches, window: arguments.window, seed: arguments.seed };
    let (alone, counts) = if delayed > 0 && delayed < senders {
        let counts = |rank| if rank < delayed { 0 } else { messages };
        let alone = run.simulate(senders, counts, 0, 0)?;
        let delay_ns = arguments.delay_us * 1_000;
        (Some(alone.gigabytes_per_second()), alone.duration_ns.div_ceil(delay_ns))
    } else {
        (None, messages)
    };
    let counts = |rank| if rank < delayed { counts.min(messages) } else { messages };
    let report = run.simulate(senders, counts, delayed, arguments.delay_us * 1_000)?;

    let rate = report.messages_per_second();
    let sent = report.total(|member| member.sent).max(1);
    let writes = report.total(|member| member.counts.writes);
    let peers = u64::from(nodes.saturating_sub(1)).max(1);
    let is_standard = bytes == 10_240 && arguments.window == 100;
    Ok(Row {
        fabric: "sim",
        nodes,
        senders,
        bytes,
        window: arguments.window,
        drive: "poller",
        techniques: techniques(switches),
        delay_us: arguments.delay_us,
        delayed,
        messages_per_s: Spread::of(&[rate]),
        bytes_per_s: report.gigabytes_per_second() * 1e9,
        writes_per_message: Some(writes as f64 / sent as f64 / peers as f64),
        nulls: Some(report.total(|member| member.nulls)),
        probe: None,
        counts: Vec::new(),
        others_alone: alone.map(|alone| report.gigabytes_per_second() / alone),
        paper: if is_standard {
            paper::reported(nodes, arguments.senders, switches, arguments.delay_us)
        } else {
            None
        },
    })
}

/// What the simulated runs of one row share.
struct Run {
    nodes: u16,
    bytes: u32,
    switches: Switches,
    window: u32,
    seed: u64,
}

impl Run {
    /// Runs `senders` senders with as many messages as `messages` says by rank; the first `delayed` wait
    /// after each. A sender without messages is left out of the sender list.
    fn simulate(
        &self,
        senders: u16,
        messages: impl Fn(u16) -> u64,
        delayed: u16,
        delay_ns: u64,
    ) -> Result<Report, BenchError> {
        let mut group =
            OwnedGroup::single(self.nodes.into(), senders.into(), self.window, self.bytes);
        for subgroup in &mut group.subgroups {
            subgroup.senders.retain(|rank| messages(rank.0) > 0);
        }
        let mut setup = Setup::new(group, self.seed);
        setup.switches = self.switches;
        setup.until_ns = LIMIT_NS;
        setup.care = Care::Ends;
        setup.keep_history = false;
        setup.loads = (0..senders)
            .filter(|rank| messages(*rank) > 0)
            .map(|rank| Load {
                delay_ns: if rank < delayed { delay_ns } else { 0 },
                ..Load::continuous(rank.into(), 0, messages(rank), self.bytes as usize)
            })
            .collect();
        let outcome = cluster::run(&setup).map_err(|error| BenchError::Setup(error.to_string()))?;
        let report = outcome.report;
        if report.ending != Ending::Calm || !report.faults.is_empty() {
            return Err(BenchError::Setup(format!("the simulated run ended {:?}", report.ending)));
        }
        Ok(report)
    }
}

/// The techniques that are on, in short.
pub(super) fn techniques(switches: Switches) -> String {
    if switches == Switches::all() {
        return "all".into();
    }
    if switches.is_empty() {
        return "none".into();
    }
    let names = [
        (Switches::SEND_BATCHING, "send"),
        (Switches::RECEIVE_BATCHING, "receive"),
        (Switches::DELIVERY_BATCHING, "delivery"),
        (Switches::NULLS, "nulls"),
        (Switches::LATE_POSTING, "late"),
    ];
    let on = names.iter().filter(|(switch, _)| switches.contains(*switch));
    on.map(|(_, name)| *name).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::command::Senders;

    #[test]
    fn half_of_the_members_is_at_least_one() {
        assert_eq!(Senders::Half.of(1), 1);
        assert_eq!(Senders::Half.of(5), 3);
    }

    #[test]
    fn techniques_are_named() {
        assert_eq!(techniques(Switches::all()), "all");
        assert_eq!(techniques(Switches::empty()), "none");
        assert_eq!(techniques(Switches::NULLS | Switches::SEND_BATCHING), "send+nulls");
    }
}
