//! Large messages in the total order of a group: bytes per second delivered by each member. Senders
//! write each byte, and members read each byte.
//!
//! Alternating with that, the same number of bytes is sent as small messages in the same group,
//! which shows the cost without blocks.

use serde::Serialize;

use crate::command::Views;
use crate::error::BenchError;
use crate::experiment::group;
use crate::machine::machine;
use crate::member::Sending;
use crate::processes::{self, Placement, Start};
use crate::spread::{Spread, median};
use crate::text::{ReportTable, text};
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::group::Description;
use tramontane_runtime::rdma::DeviceOptions;

/// Number of bytes that each sender sends in a run.
const SENDER_BYTES: usize = 512 << 20;

/// A heartbeat interval so long that no heartbeat occurs during a run, in milliseconds.
const NO_HEARTBEAT_MS: u64 = 600_000;

/// Size of a small message in bytes: the paper's size, which fits into a slot.
const SMALL_BYTES: u32 = 10_240;

/// The number of senders, and the resulting rates.
#[derive(Clone, Debug, Serialize)]
struct RatesRow {
    senders: u16,
    /// Rate of large messages delivered at a member.
    large_bytes_per_s: Spread,
    /// Rate of messages of [`SMALL_BYTES`].
    small_bytes_per_s: Spread,
    /// The rate of large messages divided by that of small ones, round by round.
    ratio: Spread,
}

/// The output of `bench views --large`.
#[derive(Clone, Debug, Serialize)]
pub struct LargeReport {
    machine: String,
    fabric: &'static str,
    nodes: u16,
    bytes: usize,
    rows: Vec<RatesRow>,
}

/// Alternates both measurements, with one sender and with all.
pub(crate) fn run(
    arguments: &Views,
    bytes: usize,
    interrupts: &Interrupts,
) -> Result<LargeReport, BenchError> {
    if bytes <= SMALL_BYTES as usize || bytes as u64 > tramontane_runtime::group::LARGE_MAX {
        let (least, most) = (SMALL_BYTES + 1, tramontane_runtime::group::LARGE_MAX);
        return Err(BenchError::Arguments(format!("--large must be from {least} to {most} bytes")));
    }
    let measure = |senders| measure(arguments, senders, bytes, interrupts);
    let rows = [1, arguments.nodes].map(measure);
    Ok(LargeReport {
        machine: machine(),
        fabric: arguments.fabric.name(),
        nodes: arguments.nodes,
        bytes,
        rows: rows.into_iter().collect::<Result<_, _>>()?,
    })
}

fn measure(
    arguments: &Views,
    senders: u16,
    bytes: usize,
    interrupts: &Interrupts,
) -> Result<RatesRow, BenchError> {
    let bytes_per_s = |message_bytes: usize| -> Result<f64, BenchError> {
        let group = group(arguments.nodes, senders, 100, SMALL_BYTES);
        let mut group = group.heartbeat_ms(NO_HEARTBEAT_MS, 3 * NO_HEARTBEAT_MS).build()?;
        if message_bytes > SMALL_BYTES as usize {
            group.subgroups[0].large_max = message_bytes as u64;
            group.complete()?;
        }
        let messages = u64::try_from((SENDER_BYTES / message_bytes).max(4)).unwrap_or(u64::MAX);
        let sending = Sending::polled_plainly(message_bytes, messages);
        let rate = messages_per_s(arguments, &group, &sending, interrupts)?;
        Ok(rate * message_bytes as f64)
    };
    let (mut large, mut small, mut ratio) = (vec![], vec![], vec![]);
    for _ in 0..arguments.rounds {
        large.push(bytes_per_s(bytes)?);
        small.push(bytes_per_s(SMALL_BYTES as usize)?);
        ratio.extend(large.last().zip(small.last()).map(|(large, small)| large / small));
    }
    Ok(RatesRow {
        senders,
        large_bytes_per_s: Spread::of(&large),
        small_bytes_per_s: Spread::of(&small),
        ratio: Spread::of(&ratio),
    })
}

/// Returns the messages per second at the median member.
fn messages_per_s(
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

impl LargeReport {
    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let columns = "senders large_bytes_per_s small_bytes_per_s ratio";
        let rows = ReportTable { list: "rows", columns, left: &[] };
        text(self, "machine fabric nodes bytes", &[rows])
            + &format!(
                "delivered at a member, in total order; small messages: {SMALL_BYTES} bytes\n"
            )
    }
}
