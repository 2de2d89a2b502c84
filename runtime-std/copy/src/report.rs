//! Progress during a copy, and the result of the copy.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{
    HumanBytes, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish,
    ProgressState, ProgressStyle,
};
use serde::Serialize;

use super::messages::Sum;
use super::receiving::ReceiverResult;
use tramontane_local::exit::Failure;
use tramontane_local::output::print_result;
use tramontane_local::table::{Table, scaled};

/// Duration after which a copy shows a progress bar.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// One progress bar per receiver, on a terminal.
pub(super) struct ReceiverBars {
    since: Instant,
    receivers: Vec<u32>,
    total: u64,
    bars: Option<(MultiProgress, BTreeMap<u32, ProgressBar>)>,
}

impl ReceiverBars {
    pub(super) fn new(receivers: &[u32]) -> Self {
        Self { since: Instant::now(), receivers: receivers.to_vec(), total: 0, bars: None }
    }

    /// Sets the number of bytes to expect.
    pub(super) fn expect(&mut self, total: u64) {
        self.since = Instant::now();
        self.total = total;
    }

    /// Records the number of bytes that have reached a receiver.
    pub(super) fn of(&mut self, receiver: u32, bytes: u64) {
        if self.since.elapsed() < BAR_AFTER || !io::stderr().is_terminal() {
            return;
        }
        let Self { receivers, total, bars, since } = self;
        let (_, bars) = bars.get_or_insert_with(|| draw(receivers, *total, *since));
        if let Some(bar) = bars.get(&receiver) {
            bar.set_position(bytes.min(*total));
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some((_, bars)) = self.bars.take() {
            bars.values().for_each(ProgressBar::finish_and_clear);
        }
    }
}

fn draw(
    receivers: &[u32],
    total: u64,
    since: Instant,
) -> (MultiProgress, BTreeMap<u32, ProgressBar>) {
    let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    let template = "node {prefix:>4} {bar:24} {binary_bytes} of {binary_total_bytes}, {pace}";
    let bars = receivers.iter().map(|receiver| {
        let bar = ProgressBar::new(total).with_prefix(receiver.to_string());
        // A copy that fails or is interrupted must leave no bar on the terminal.
        let mut bar = bar.with_finish(ProgressFinish::AndClear);
        if let Ok(style) = ProgressStyle::with_template(template) {
            let write_pace = move |state: &ProgressState, text: &mut dyn fmt::Write| {
                let pace = pace(state.pos(), state.len().unwrap_or_default(), since.elapsed());
                // Writing to a string cannot fail.
                let _ = text.write_str(&pace);
            };
            bar = bar.with_style(style.with_key("pace", write_pace));
        }
        (*receiver, all.add(bar))
    });
    let bars = bars.collect();
    (all, bars)
}

/// Formats the speed of a copy and the time left. The speed is averaged over the whole elapsed
/// time, because much has already arrived when a bar is first drawn, and the bar would attribute
/// all of it to its first moment.
fn pace(bytes: u64, total: u64, elapsed: Duration) -> String {
    let rate = bytes as f64 / elapsed.as_secs_f64().max(1e-9);
    let left = Duration::try_from_secs_f64(total.saturating_sub(bytes) as f64 / rate.max(1.0));
    let left = left.map_or_else(|_| "long".to_owned(), |left| HumanDuration(left).to_string());
    format!("{}/s, {left} left", HumanBytes(rate as u64))
}

/// The result of one receiver.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CopyLine {
    pub(super) node: u32,
    pub(super) files: u64,
}

/// The result of a copy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CopyReport {
    /// Size of the archive in bytes: that of all files, plus a little for each file.
    pub(super) bytes: u64,
    /// XXH3 of the archive, 128 bits, the same on all members.
    pub(super) checksum: String,
    pub(super) seconds: f64,
    #[serde(rename = "receivers")]
    pub(super) lines: Vec<CopyLine>,
    /// The destination of each receiver, if the receivers are on this machine.
    pub(super) places: Vec<PathBuf>,
}

impl CopyReport {
    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        print_result(json, self, Self::text)
    }

    fn text(&self) -> String {
        let mut table = Table::new("node  files  place", &[2]);
        for (index, line) in self.lines.iter().enumerate() {
            let place =
                self.places.get(index).map(|place| place.display().to_string()).unwrap_or_default();
            table.row([line.node.to_string(), line.files.to_string(), place]);
        }
        let rate = if self.seconds > 0.0 { self.bytes as f64 / self.seconds } else { 0.0 };
        format!(
            "{table}{}B to each of {} in {:.2} s ({}B/s); checksum {}, the same everywhere",
            scaled(self.bytes as f64),
            self.lines.len(),
            self.seconds,
            scaled(rate),
            self.checksum
        )
    }
}

/// Prints a receiver's result.
pub(super) fn received(received: &ReceiverResult, to: &Path, json: bool) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct CopiedFiles<'c> {
        to: &'c Path,
        files: u64,
        bytes: u64,
        checksum: &'c str,
    }
    let ReceiverResult { sum: Sum { bytes, checksum }, files } = received;
    print_result(json, &CopiedFiles { to, files: *files, bytes: *bytes, checksum }, |copied| {
        let (to, bytes) = (copied.to.display(), scaled(copied.bytes as f64));
        format!("{files} files in {to}; {bytes}B, checksum {checksum}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_rate_covers_the_whole_copy() {
        assert_eq!(pace(2 << 30, 3 << 30, Duration::from_secs(2)), "1.00 GiB/s, 1 second left");
        assert_eq!(
            pace(0, 1 << 40, Duration::ZERO),
            format!("0 B/s, {} left", HumanDuration(Duration::from_secs(1 << 40)))
        );
        assert!(pace(u64::MAX, u64::MAX, Duration::from_nanos(1)).ends_with("0 seconds left"));
    }
}
