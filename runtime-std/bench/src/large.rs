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
use crate::spread::Spread;
use crate::steady::{NO_HEARTBEAT_MS, beating, messages_per_s};
use crate::text::{ReportTable, text};
use tramontane_local::interrupt::Interrupts;

/// Number of bytes that each sender sends in a run.
const SENDER_BYTES: usize = 512 << 20;

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
        let mut group = beating(group, NO_HEARTBEAT_MS).build()?;
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
