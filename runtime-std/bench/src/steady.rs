//! The paper's continuous sending in a group whose membership may change: the cost of heartbeats,
//! and a comparison with fixed membership.

use serde::Serialize;

use crate::command::Views;
use crate::error::BenchError;
use crate::experiment::group;
use crate::machine::machine;
use crate::member::Sending;
use crate::processes::{self, Placement, Start};
use crate::spread::{Spread, median};
use crate::text::text;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::group::{Description, DescriptionBuilder};
use tramontane_runtime::rdma::DeviceOptions;

/// A heartbeat interval so long that no heartbeat occurs during a run.
pub(crate) const NO_HEARTBEAT_MS: u64 = 600_000;

/// Number of messages per sender in a round.
const MESSAGES: u64 = 400_000;

/// Size of a message in bytes.
const BYTES: u32 = 1_024;

/// The output of `bench views --steady`: messages per second at a member from all senders.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SteadyReport {
    machine: String,
    fabric: &'static str,
    nodes: u16,
    heartbeat_ms: u64,
    with_heartbeats_messages_per_s: Spread,
    without_heartbeats_messages_per_s: Spread,
    /// The rate in a group of fixed membership, driven in the same way.
    fixed_membership_messages_per_s: Spread,
    /// The rate with heartbeats divided by the rate without, round by round.
    ratio: Spread,
}

/// Measures the throughput with and without heartbeats, in turn.
pub(crate) fn run(arguments: &Views, interrupts: &Interrupts) -> Result<SteadyReport, BenchError> {
    let group = group(arguments.nodes, arguments.nodes, 100, BYTES);
    let sending = Sending::polled_plainly(BYTES as usize, MESSAGES);
    let rate = |group: DescriptionBuilder| {
        messages_per_s(arguments, &group.build()?, &sending, interrupts)
    };
    let (mut with, mut without, mut fixed, mut ratios) = (vec![], vec![], vec![], vec![]);
    for round in 0..arguments.rounds {
        // The first measurement of a round finds the machine slightly warmer or colder, so the
        // order alternates.
        let mut measured = [0.0, 0.0];
        let heartbeats_ms = [arguments.heartbeat_ms, NO_HEARTBEAT_MS];
        for index in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            measured[index] = rate(beating(group.clone(), heartbeats_ms[index]))?;
        }
        with.push(measured[0]);
        without.push(measured[1]);
        ratios.push(measured[0] / measured[1]);
        fixed.push(rate(group.clone().fixed())?);
    }
    Ok(SteadyReport {
        machine: machine(),
        fabric: arguments.fabric.name(),
        nodes: arguments.nodes,
        heartbeat_ms: arguments.heartbeat_ms,
        with_heartbeats_messages_per_s: Spread::of(&with),
        without_heartbeats_messages_per_s: Spread::of(&without),
        fixed_membership_messages_per_s: Spread::of(&fixed),
        ratio: Spread::of(&ratios),
    })
}

/// Describes the group with heartbeats at this interval. All its members stay while it is measured.
pub(crate) fn beating(group: DescriptionBuilder, heartbeat_ms: u64) -> DescriptionBuilder {
    group.heartbeat_ms(heartbeat_ms, heartbeat_ms.max(2_000) * 3)
}

/// Returns the messages per second at the median member.
pub(crate) fn messages_per_s(
    arguments: &Views,
    group: &Description,
    sending: &Sending,
    interrupts: &Interrupts,
) -> Result<f64, BenchError> {
    let device = DeviceOptions::default();
    let (carrier, placement) = (arguments.fabric, Placement::Spread);
    let start = Start { carrier, device: &device, placement, interrupts };
    let outcomes = processes::run(group, sending, &start)?;
    Ok(median(&outcomes.iter().map(|outcome| outcome.messages_per_s).collect::<Vec<_>>()))
}

impl SteadyReport {
    /// Returns the report as text.
    pub(crate) fn text(&self) -> String {
        let fields = "machine fabric nodes heartbeat_ms with_heartbeats_messages_per_s \
                      without_heartbeats_messages_per_s fixed_membership_messages_per_s ratio";
        text(self, fields, &[]) + "ratio: with heartbeats divided by without\n"
    }
}
