//! The comparison of the members' deliveries, as a table or as JSON.

use serde::Serialize;

use super::ledger::{LatencyCounts, merge};
use super::messages::Deliveries;
use super::plan::DemoPlan;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::table::{Table, scaled};

/// The result of a run, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct DemoOutcome {
    agree: bool,
    nodes: Vec<Node>,
    messages_per_s: f64,
    bytes_per_s: f64,
    latency_us: LatencyReport,
    #[serde(skip)]
    reason: Option<String>,
    #[serde(skip)]
    messages: u64,
    #[serde(skip)]
    bytes: u64,
    #[serde(skip)]
    seconds: f64,
    #[serde(skip)]
    latencies: Vec<Option<LatencyReport>>,
}

/// One member.
#[derive(Debug, Serialize)]
struct Node {
    id: usize,
    sent: u64,
    delivered: u64,
    nulls: u64,
    digest: String,
}

/// Latencies from commit to local delivery, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct LatencyReport {
    p50: f64,
    p99: f64,
    max: f64,
}

impl LatencyReport {
    fn new(seen: &LatencyCounts, max_ns: u64) -> Self {
        let us = |ns: u64| ns as f64 / 1000.0;
        let all: u64 = seen.values().sum();
        let quantile = |share: f64| {
            let (mut left, wanted) = (all, (all as f64 * (1.0 - share)) as u64);
            let at = seen.iter().find(|(_, count)| {
                left = left.saturating_sub(**count);
                left <= wanted
            });
            us(at.map_or(0, |(latency_ns, _)| *latency_ns))
        };
        Self { p50: quantile(0.5), p99: quantile(0.99), max: us(max_ns) }
    }
}

/// Compares the members' reports. `bytes` is the size of the input, counted once.
pub(super) fn compare(plan: &DemoPlan, bytes: u64, reports: &[Deliveries]) -> DemoOutcome {
    let reason = disagreement(plan, bytes, reports);
    let start = reports.iter().map(|report| report.start_ns).min().unwrap_or(0);
    let end = reports.iter().map(|report| report.end_ns).max().unwrap_or(0);
    let seconds = end.saturating_sub(start).max(1) as f64 / 1e9;
    // Counts only messages that all members delivered. If the members disagree, the rates are
    // meaningless.
    let bytes = reports.iter().map(|report| report.bytes).min().unwrap_or(0);
    let messages = reports.iter().map(|report| report.delivered).min().unwrap_or(0);
    let nodes = reports.iter().enumerate().map(|(id, report)| Node {
        id,
        sent: report.sent,
        delivered: report.delivered,
        nulls: report.nulls,
        digest: report.digest.clone(),
    });
    let max = reports.iter().map(|report| report.latency_max_ns).max().unwrap_or(0);
    let latency = |report: &Deliveries| {
        let own = LatencyReport::new(&merge(std::iter::once(report)), report.latency_max_ns);
        (report.sent > 0).then_some(own)
    };
    DemoOutcome {
        agree: reason.is_none(),
        nodes: nodes.collect(),
        messages_per_s: (messages as f64 / seconds).round(),
        bytes_per_s: (bytes as f64 / seconds).round(),
        latency_us: LatencyReport::new(&merge(reports.iter()), max),
        reason,
        messages,
        bytes,
        seconds,
        latencies: reports.iter().map(latency).collect(),
    }
}

/// Number of characters of the digest that the table shows.
const DIGEST_CHARACTERS: usize = 16;

/// Returns the reason that the members disagree, or `None` if they agree.
fn disagreement(plan: &DemoPlan, bytes: u64, reports: &[Deliveries]) -> Option<String> {
    let (Some(first), total) = (reports.first(), plan.total) else {
        return Some("no member reported".to_owned());
    };
    for (id, report) in reports.iter().enumerate() {
        if let Some(wrong) = report.wrong {
            return Some(format!(
                "member {id} delivered at position {} a message that member {} did not send at \
                 that position",
                wrong.place, wrong.sender
            ));
        }
        if report.delivered != total {
            return Some(format!("member {id} delivered {} of {total} messages", report.delivered));
        }
        if report.digest != first.digest {
            return Some(format!("members 0 and {id} delivered different sequences"));
        }
    }
    let sent: u64 = reports.iter().map(|report| report.sent).sum();
    if sent != total {
        return Some(format!("{sent} of {total} messages were sent"));
    }
    if first.bytes != bytes.saturating_mul(plan.repeat) {
        return Some(format!(
            "{} of {} bytes were delivered",
            first.bytes,
            bytes.saturating_mul(plan.repeat)
        ));
    }
    None
}

impl DemoOutcome {
    /// For people.
    pub(super) fn table(&self) -> String {
        let headings = "member  sent  delivered  nulls  p50 us  p99 us  max us  digest";
        let mut table = Table::new(headings, &[7]);
        let number = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
        };
        for (node, latency) in self.nodes.iter().zip(&self.latencies) {
            table.row([
                node.id.to_string(),
                node.sent.to_string(),
                node.delivered.to_string(),
                node.nulls.to_string(),
                number(latency.map(|latency| latency.p50)),
                number(latency.map(|latency| latency.p99)),
                number(latency.map(|latency| latency.max)),
                // The JSON output has the whole digest.
                node.digest.chars().take(DIGEST_CHARACTERS).collect(),
            ]);
        }
        let LatencyReport { p50, p99, max } = self.latency_us;
        let verdict = match &self.reason {
            None => format!(
                "agreed: all {} delivered the same messages in the same order",
                self.nodes.len()
            ),
            Some(reason) => format!("NOT agreed: {reason}"),
        };
        format!(
            "{table}\n{} messages, {} bytes in {:.3} s: {} messages/s and {}B/s delivered at each \
             member\nlatency from commit to local delivery: p50 {p50:.1} us, p99 {p99:.1} us, max \
             {max:.1} us\n{verdict}",
            self.messages,
            self.bytes,
            self.seconds,
            scaled(self.messages_per_s).trim_end(),
            scaled(self.bytes_per_s),
        )
    }

    /// Fails unless all members agree and nothing is missing.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        match &self.reason {
            None => Ok(()),
            Some(reason) => {
                let what = format_args!("the members do not agree: {reason}");
                Err(Failure::new(
                    Status::Disagreement,
                    what,
                    "please report this, with the command",
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::messages::{LatencyCount, Wrong};
    use std::time::Duration;
    use tramontane_local::options::JoinOption;
    use tramontane_runtime::group::Description;

    fn plan() -> DemoPlan {
        let join = JoinOption { join_timeout: Duration::ZERO };
        DemoPlan {
            group: Description::local("demo", 2, 4, 8),
            total: 6,
            repeat: 2,
            join,
            fabric: tramontane_runtime::carrier::Carrier::default(),
            device: tramontane_runtime::rdma::DeviceOptions::default(),
        }
    }

    fn report(sent: u64) -> Deliveries {
        Deliveries {
            sent,
            delivered: 6,
            bytes: 20,
            digest: "aa".into(),
            start_ns: 1_000,
            end_ns: 3_000,
            latencies: vec![
                LatencyCount { latency_ns: 1_000, count: 2 },
                LatencyCount { latency_ns: 2_000, count: 1 },
            ],
            latency_max_ns: 2_000,
            ..Deliveries::default()
        }
    }

    #[test]
    fn identical_deliveries_pass_the_comparison() {
        let outcome = compare(&plan(), 10, &[report(3), report(3)]);
        assert!(outcome.verdict().is_ok());
        let json = serde_json::to_string(&outcome).expect("JSON");
        let expected = r#"{"agree":true,"nodes":[{"id":0,"sent":3,"delivered":6,"nulls":0,"digest":"aa"},{"id":1,"sent":3,"delivered":6,"nulls":0,"digest":"aa"}],"messages_per_s":3000000.0,"bytes_per_s":10000000.0,"latency_us":{"p50":1.0,"p99":2.0,"max":2.0}}"#;
        assert_eq!(json, expected);
        assert!(outcome.table().contains("agreed: all 2"));
    }

    #[test]
    fn every_delivery_difference_is_an_error() {
        type Spoil = fn(&mut Deliveries);
        let cases: [(&str, Spoil); 5] = [
            ("different sequences", |report| report.digest = "ab".into()),
            ("delivered 5 of 6", |report| report.delivered = 5),
            ("delivered 7 of 6", |report| report.delivered = 7),
            ("at position 4 a message that member 1", |report| {
                report.wrong = Some(Wrong { place: 4, sender: 1 })
            }),
            ("5 of 6 messages were sent", |report| report.sent = 2),
        ];
        for (words, spoil) in cases {
            let mut reports = [report(3), report(3)];
            spoil(&mut reports[1]);
            let outcome = compare(&plan(), 10, &reports);
            let failure = outcome.verdict().expect_err(words);
            assert_eq!(failure.status, Status::Disagreement);
            assert!(failure.text().contains(words), "{}", failure.text());
            assert!(
                serde_json::to_string(&outcome).expect("JSON").starts_with(r#"{"agree":false"#)
            );
        }
        let outcome = compare(&plan(), 11, &[report(3), report(3)]);
        assert!(
            outcome.verdict().expect_err("bytes").text().contains("20 of 22 bytes were delivered")
        );
    }
}
