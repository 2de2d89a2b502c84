//! The paper's Table 1 and Fig. 5: where the time of one message goes, at the last receiver and by
//! step; and what it costs when a relay is not there for a moment.

use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;
use tramontane_fixtures::block_multicast::{Breakdown, Sending, Setup, Timeline, What};
use tramontane_fixtures::plan::{Fault, Plan};

use super::bed::Bed;
use super::command::Arguments;
use super::experiment::Experiment;
use super::report::Row;
use super::simulated::simulated;
use crate::error::BenchError;
use crate::plot::Drawing;
use crate::spread::{Spread, median};

/// The machine of Table 1 and Fig. 5.
pub(super) const MACHINE: &str = "stampede";

/// The sender and three receivers.
const NODES: usize = 4;
/// The first member that passes blocks on, and the last that gets one by it.
const RELAY: usize = 1;
const FARTHEST: usize = 3;

/// "A roughly 100 us delay on the relay" (5.2.1).
const PAUSE_NS: u64 = 100_000;

/// The paper's Table 1, in us.
const TABLE: [(&str, f64); 7] = [
    ("remote setup", 11.0),
    ("remote block transfers", 461.0),
    ("local setup", 4.0),
    ("block transfers", 60_944.0),
    ("waiting", 449.0),
    ("copy time", 215.0),
    ("total", 62_084.0),
];

/// Receives and sends that a card has where it carries out the schedule: all that fit its queues.
pub(super) const OFFLOADED: Window = Window { receives: 16, sends: 16 };

/// What each step takes at two members (Fig. 5).
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    /// Of the root.
    pub(crate) root: Vec<Sending>,
    /// Of the first relay.
    pub(crate) relay: Vec<Sending>,
}

/// How long the root waits before a send, in us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    /// In most steps.
    pub(crate) usual_us: f64,
    /// In the worst step.
    pub(crate) worst_us: f64,
}

fn setup(bed: &Bed, arguments: (usize, usize)) -> Setup {
    let (bytes, block_bytes) = arguments;
    let setup = bed.single(NODES, Algorithm::Pipeline, bytes, block_bytes);
    Setup { keeps_timeline: true, ..setup }
}

/// Table 1, in us by line, in the paper's order: 256 MB in blocks of 1 MB to three receivers. The
/// relay is away for 100 us, as in the paper's transfer: Fig. 5 is of the same one.
pub(crate) fn table_1(bed: &Bed, sizes: (usize, usize)) -> Result<[f64; 7], BenchError> {
    let breakdown = delayed(setup(bed, sizes))?.breakdown(0, FARTHEST).ok_or_else(no_relay)?;
    let Breakdown { remote_setup_ns, remote_blocks_ns, local_setup_ns, .. } = breakdown;
    let lines = [
        remote_setup_ns,
        remote_blocks_ns,
        local_setup_ns,
        breakdown.blocks_ns,
        breakdown.waiting_ns,
        breakdown.copy_ns,
        breakdown.total_ns,
    ];
    Ok(lines.map(|line| line as f64 / 1000.0))
}

/// Fig. 5: each step at the root and at the relay, which is away for 100 us near the end.
pub(crate) fn figure_5(bed: &Bed, sizes: (usize, usize)) -> Result<Steps, BenchError> {
    let timeline = delayed(setup(bed, sizes))?;
    Ok(Steps { root: timeline.sends(0, 0), relay: timeline.sends(0, RELAY) })
}

/// What Fig. 5 shows near its end: how long the root waits because of the relay. Beside, whether
/// the cards carry out the schedule.
pub(crate) fn stall(bed: &Bed, sizes: (usize, usize), offloads: bool) -> Result<Stall, BenchError> {
    let mut setup = setup(bed, sizes);
    setup.offloads = offloads;
    if offloads {
        setup.window = OFFLOADED;
    }
    let waits: Vec<f64> = delayed(setup)?.sends(0, 0).iter().skip(1).map(waited_us).collect();
    let worst_us = waits.iter().copied().fold(0.0, f64::max);
    Ok(Stall { usual_us: median(&waits), worst_us })
}

/// What happens when where nothing else is in the way, but the relay's processor is away for 100 us
/// when a block of the root is there, after four fifths of them.
fn delayed(mut setup: Setup) -> Result<Timeline, BenchError> {
    setup.profile.preempt_every_ns = 0;
    let calm = simulated(&setup)?.timeline;
    let received = calm.at(0, RELAY).filter(|moment| moment.what == What::Received { from: 0 });
    let received: Vec<u64> = received.map(|moment| moment.at_ns).collect();
    let at = received.get(received.len() * 4 / 5).ok_or_else(no_relay)?.saturating_sub(500);
    let plan = Plan { faults: vec![Fault::Pause { member: RELAY, at, lasting: PAUSE_NS }] };
    Ok(simulated(&Setup { plan, ..setup })?.timeline)
}

fn no_relay() -> BenchError {
    BenchError::Setup("no block came by one relay".into())
}

fn waited_us(send: &Sending) -> f64 {
    send.waited_ns as f64 / 1000.0
}

fn sizes(arguments: &Arguments) -> (usize, usize) {
    (arguments.bytes(), arguments.block_bytes())
}

/// All of it, as rows: a line of the table each, and the steps.
pub(super) fn breakdown(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let setup = setup(&bed, sizes(arguments));
    let row = |us: f64, beside: String, paper: &'static str| {
        Row::of_time(Experiment::Breakdown, &setup, us / 1000.0).beside(beside, paper)
    };
    let beds = bed.of_seeds(arguments);
    let tables: Vec<[f64; 7]> =
        beds.iter().map(|bed| table_1(bed, sizes(arguments))).collect::<Result<_, _>>()?;
    let mut rows: Vec<Row> = (0..TABLE.len())
        .map(|line| {
            let (name, paper) = TABLE[line];
            let Spread { median, min, max } =
                Spread::of(&tables.iter().map(|table| table[line]).collect::<Vec<_>>());
            let beside = format!(
                "{name}: {median:.0} us, {:.2} of the paper's {paper:.0} ({min:.0}..{max:.0} \
                 with {} seeds)",
                median / paper,
                tables.len()
            );
            row(median, beside, "Table 1 is of 256 MB in blocks of 1 MB on Stampede (5.2.1)")
        })
        .collect();
    let Steps { root, relay } = figure_5(&bed, sizes(arguments))?;
    for (who, sends) in [("root", root), ("relay", relay)] {
        let transfers: Vec<f64> = sends.iter().map(|send| send.transfer_ns as f64 / 1e3).collect();
        let waits: Vec<f64> = sends.iter().skip(1).map(waited_us).collect();
        let beside = format!(
            "each of {} sends of the {who}: {:.0} us, {:.1} us after the one before",
            sends.len(),
            median(&transfers),
            median(&waits)
        );
        rows.push(row(median(&transfers), beside, "most of the time is the hardware's (Fig. 5)"));
    }
    for (how, offloads) in [("by software", false), ("by the cards", true)] {
        let Stall { usual_us, worst_us } = stall(&bed, sizes(arguments), offloads)?;
        let beside = format!(
            "{how}: the relay is away for 100 us, and the root waits {worst_us:.0} us before a \
             send, else {usual_us:.1}"
        );
        rows.push(row(
            worst_us,
            beside,
            "a delay of roughly 100 us on the relay forced the sender to delay on the following \
             step; CORE-Direct would mitigate this (5.2.1)",
        ));
    }
    Ok(rows)
}

/// Fig. 5: how long each step's block takes, and how long the member waits before.
pub(super) fn drawing(arguments: &Arguments) -> Result<Drawing, BenchError> {
    let Steps { root, relay } = figure_5(&Bed::asked(arguments, MACHINE)?, sizes(arguments))?;
    let title = "Time of each send at the root and at the first relay".to_owned();
    let mut drawing = Drawing::new(title, "step of the schedule", "us");
    for (who, sends) in [("root", root), ("relay", relay)] {
        for send in &sends {
            let mut add = |what, ns: u64| {
                let figure = Spread::of(&[ns as f64 / 1000.0]);
                drawing.add(format!("{who}: {what}"), send.step as f64, figure);
            };
            add("transfer", send.transfer_ns);
            add("wait before it", send.waited_ns);
        }
    }
    Ok(drawing)
}
