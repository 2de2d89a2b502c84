//! Large messages in the one order of a group: how many bytes a second each member delivers. Senders write each byte, members
//! read each.
//!
//! Beside it, in turn: as many bytes in small messages of the same group, which is what they would cost without blocks.

use serde::Serialize;

use super::command::Views;
use super::in_views::{rate, task};
use super::processes::Spread;
use super::{BenchError, report};
use crate::configuration::GroupConfiguration;

/// Bytes that each sender sends in a run.
const SENDER_BYTES: usize = 512 << 20;

/// Bytes of a small message: the paper's, and what a slot takes.
const SMALL_BYTES: u32 = 10_240;

/// Who sends, and how fast it is.
#[derive(Clone, Debug, Serialize)]
struct Row {
    senders: u16,
    /// Gigabytes a second at a member, as large messages.
    large: Spread,
    /// As messages of [`SMALL_BYTES`].
    small: Spread,
    /// Large by small, round by round.
    ratio: Spread,
}

/// What `bench views --large` prints.
#[derive(Clone, Debug, Serialize)]
pub struct LargeReport {
    machine: String,
    fabric: &'static str,
    nodes: u16,
    bytes: usize,
    rows: Vec<Row>,
}

/// Runs both in turn, with one sender and with all.
pub(super) fn run(arguments: &Views, bytes: usize) -> Result<LargeReport, BenchError> {
    if bytes <= SMALL_BYTES as usize || bytes as u64 > crate::group::LARGE_MAX {
        let (least, most) = (SMALL_BYTES + 1, crate::group::LARGE_MAX);
        return Err(BenchError::Arguments(format!("--large is from {least} to {most} bytes")));
    }
    let rows = [1, arguments.nodes].map(|senders| measure(arguments, senders, bytes));
    Ok(LargeReport {
        machine: report::machine(),
        fabric: arguments.fabric.name(),
        nodes: arguments.nodes,
        bytes,
        rows: rows.into_iter().collect::<Result<_, _>>()?,
    })
}

fn measure(arguments: &Views, senders: u16, bytes: usize) -> Result<Row, BenchError> {
    let gigabytes = |bytes: usize| -> Result<f64, BenchError> {
        let group = GroupConfiguration::single(arguments.nodes, senders, 100, SMALL_BYTES);
        let messages = u64::try_from((SENDER_BYTES / bytes).max(4)).unwrap_or(u64::MAX);
        Ok(rate(arguments.fabric, &task(group, bytes, messages))? * bytes as f64 / 1e9)
    };
    let (mut large, mut small, mut ratio) = (vec![], vec![], vec![]);
    for _ in 0..arguments.rounds {
        large.push(gigabytes(bytes)?);
        small.push(gigabytes(SMALL_BYTES as usize)?);
        ratio.extend(large.last().zip(small.last()).map(|(large, small)| large / small));
    }
    let [large, small, ratio] = [large, small, ratio].map(|values| Spread::of(&values));
    Ok(Row { senders, large, small, ratio })
}

impl LargeReport {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}\n{} members over {}; GB/s delivered at a member, in one order: messages of {} bytes, and of {SMALL_BYTES}\n",
            self.machine, self.nodes, self.fabric, self.bytes,
        );
        for Row { senders, large, small, ratio } in &self.rows {
            let of = |spread: &Spread| {
                format!("{:6.2} ({:.2}..{:.2})", spread.median, spread.min, spread.max)
            };
            text += &format!(
                "{senders:3} send  large {}  small {}  large by small {}\n",
                of(large),
                of(small),
                of(ratio)
            );
        }
        text
    }
}
