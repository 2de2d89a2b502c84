//! Continuous sending in the simulator, on the paper's hardware.

use tramontane_core::ids::NodeId;
use tramontane_core::multicast::Switches;
use tramontane_fixtures::payload::Checked;
use tramontane_fixtures::world::{self, Ending, Load, Outcome, Plan};

use crate::command::Multicast;
use crate::error::BenchError;
use crate::options::{switches_without, techniques};
use crate::paper;
use crate::report::Row;
use crate::spread::Spread;

/// Messages of each sender where nothing else is said: enough for the start and the end not to
/// matter.
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

    // What the senders that never wait could do alone comes first: it says how long a run with the
    // others takes, and so how many messages waiting members can send meanwhile.
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
    let sent = report.total(|process| process.sent).max(1);
    let writes = report.total(|process| process.counts.writes);
    let peers = u64::from(nodes.saturating_sub(1)).max(1);
    let is_standard = bytes == 10_240 && arguments.window == 100;
    Ok(Row {
        fabric: "sim",
        nodes,
        senders,
        bytes,
        window: arguments.window,
        drive: "poller".into(),
        techniques: techniques(switches),
        delay_us: arguments.delay_us,
        delayed,
        messages_per_s: Spread::of(&[rate]),
        bytes_per_s: report.gigabytes_per_second() * 1e9,
        writes_per_message: Some(writes as f64 / sent as f64 / peers as f64),
        nulls: Some(report.total(|process| process.nulls)),
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
    /// Runs `senders` senders with as many messages as `messages` says by rank; the first `delayed`
    /// wait after each. A sender without messages is left out of the sender list.
    fn simulate(
        &self,
        senders: u16,
        messages: impl Fn(u16) -> u64,
        delayed: u16,
        delay_ns: u64,
    ) -> Result<Outcome, BenchError> {
        let mut plan =
            Plan::fixed(self.nodes.into(), senders.into(), self.window, self.bytes, self.seed);
        plan.subgroups[0].senders.retain(|node| messages(node.0 as u16) > 0);
        plan.switches = self.switches;
        plan.until_ns = LIMIT_NS;
        plan.checked = Checked::Ends;
        plan.keep_history = false;
        plan.loads = (0..senders)
            .filter(|rank| messages(*rank) > 0)
            .map(|rank| {
                let bytes = self.bytes as usize;
                Load {
                    delay_ns: if rank < delayed { delay_ns } else { 0 },
                    ..Load::continuous(NodeId(rank.into()), 0, messages(rank), bytes)
                }
            })
            .collect();
        let outcome = world::run(&plan).map_err(|error| BenchError::Setup(error.to_string()))?;
        if outcome.ending != Ending::Calm || !outcome.complaints.is_empty() {
            let ending = outcome.ending;
            return Err(BenchError::Setup(format!("the simulated run ended {ending:?}")));
        }
        Ok(outcome)
    }
}
