//! Results of a measurement.

use hdrhistogram::Histogram;
use serde::Serialize;
use tramontane_local::table::{Table, scaled};

use super::messages::PerfFigures;
use super::{ModeName, PerfOptions};

/// The result that `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Result {
    mode: &'static str,
    level: &'static str,
    fabric: &'static str,
    subscribers: u32,
    bytes: u32,
    window: u32,
    rounds: u32,
    /// Samples per second at the slowest subscriber, in each round.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_s: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_s: Option<f64>,
    /// Number of samples that did not arrive, over all subscribers and rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
    /// The time from a ping to the last of its answers, in each round.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_us: Option<RoundTrip>,
}

/// Quantiles over the rounds.
#[derive(Debug, Serialize)]
struct RoundTrip {
    p50: Spread,
    p90: Spread,
    p99: Spread,
    max: Spread,
    count: u64,
}

/// A median, with the smallest and the largest value.
#[derive(Clone, Copy, Debug, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(0.0);
        let (half, last) = (figures.len() / 2, figures.len().saturating_sub(1));
        let median = if figures.len().is_multiple_of(2) {
            (at(half.saturating_sub(1)) + at(half)) / 2.0
        } else {
            at(half)
        };
        Self { median, min: at(0), max: at(last) }
    }
}

impl Result {
    /// Computes the result of all rounds from each participant's observations, the publisher's
    /// first.
    pub(super) fn of(arguments: &PerfOptions, rounds: &[Vec<PerfFigures>]) -> Self {
        let mut result = Self {
            mode: match arguments.mode {
                ModeName::Throughput => "throughput",
                ModeName::Ping => "ping",
            },
            level: arguments.level().name(),
            fabric: arguments.fabric.name(),
            subscribers: arguments.subscribers,
            bytes: arguments.bytes,
            window: arguments.window.window,
            rounds: arguments.rounds,
            samples_per_s: None,
            bytes_per_s: None,
            lost: None,
            round_trip_us: None,
        };
        match arguments.mode {
            ModeName::Throughput => {
                let rates = Spread::of(rounds.iter().map(|seen| slowest(seen)).collect());
                result.samples_per_s = Some(rates);
                result.bytes_per_s = Some(rates.median * f64::from(arguments.bytes));
                result.lost = Some(rounds.iter().flatten().map(|seen| seen.lost).sum());
            }
            ModeName::Ping => result.round_trip_us = Some(round_trips(rounds)),
        }
        result
    }

    /// Returns the table for people.
    pub(super) fn table(&self) -> String {
        let mut table = match &self.round_trip_us {
            None => Table::new(
                "level  fabric  subscribers  bytes  samples/s  least  most  bytes/s  lost",
                &[0, 1],
            ),
            Some(_) => Table::new(
                "level  fabric  subscribers  bytes  p50 us  p90 us  p99 us  max us  pings",
                &[0, 1],
            ),
        };
        let mut row = vec![
            self.level.to_owned(),
            self.fabric.to_owned(),
            self.subscribers.to_string(),
            self.bytes.to_string(),
        ];
        if let Some(rates) = &self.samples_per_s {
            row.extend([rates.median, rates.min, rates.max].map(scaled));
            row.push(scaled(self.bytes_per_s.unwrap_or_default()));
            row.push(self.lost.unwrap_or_default().to_string());
        }
        if let Some(times) = &self.round_trip_us {
            let quantiles = [times.p50, times.p90, times.p99, times.max];
            row.extend(quantiles.map(|time| format!("{:.1}", time.median)));
            row.push(times.count.to_string());
        }
        table.row(row);
        table.to_string()
    }
}

/// Returns the number of samples per second at the slowest subscriber.
fn slowest(seen: &[PerfFigures]) -> f64 {
    let rate = |seen: &PerfFigures| seen.samples as f64 / seen.elapsed.as_secs_f64().max(1e-9);
    seen.iter().skip(1).map(rate).fold(f64::INFINITY, f64::min)
}

fn round_trips(rounds: &[Vec<PerfFigures>]) -> RoundTrip {
    let mut count = 0;
    let mut of_rounds: Vec<[f64; 4]> = Vec::new();
    for seen in rounds {
        let Ok(mut histogram) = Histogram::<u64>::new(3) else { continue };
        for time in seen.iter().flat_map(|seen| &seen.round_trips_ns) {
            let _ = histogram.record(u64::from(*time));
        }
        count += histogram.len();
        let us = |ns: u64| ns as f64 / 1000.0;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        of_rounds.push([at(0.5), at(0.9), at(0.99), us(histogram.max())]);
    }
    let spread = |place: usize| Spread::of(of_rounds.iter().map(|round| round[place]).collect());
    RoundTrip { p50: spread(0), p90: spread(1), p99: spread(2), max: spread(3), count }
}
