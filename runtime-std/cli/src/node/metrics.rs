//! Serves a node's metrics for Prometheus over HTTP.

use std::fmt;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use super::http::{self, HttpAnswer};
use super::meter::Meter;
use super::rdma_figures;
use tramontane_control::HostAddress;
use tramontane_local::exit::Failure;
use tramontane_runtime::group::{GroupStatus, SharedStatus};
use tramontane_runtime::metrics::MetricsPage;
use tramontane_runtime::rdma;

/// Content type of the answer: the text format that Prometheus and all its tools accept (`promtool
/// check metrics` reads no other).
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the metrics at an address, in a thread that ends with the process. Requests wait until
/// `board` is set.
pub(super) fn serve(
    address: &HostAddress,
    is_exposed: bool,
    board: Arc<OnceLock<SharedStatus>>,
    meter: Arc<Meter>,
) -> Result<(), Failure> {
    if !address.is_local() && !is_exposed {
        let what =
            format_args!("--metrics {address} is reachable from other hosts, and has no password");
        let advice = "use 127.0.0.1, or add --metrics-exposed on a network that you trust";
        return Err(Failure::usage(what, advice));
    }
    let taken = |error: &dyn fmt::Display| {
        let what = format_args!("cannot serve metrics at {address}: {error}");
        Failure::usage(
            what,
            "give --metrics a different address, or stop the program that is listening there",
        )
    };
    let found = address.resolve().map_err(|error| taken(&error))?;
    let listener = TcpListener::bind(found.as_slice()).map_err(|error| taken(&error))?;
    let served =
        http::serve(listener, move |method, path| answer(method, path, board.get(), &meter));
    served.map_err(|error| Failure::system("cannot start a thread", &error))
}

fn answer(
    method: &str,
    path: &str,
    board: Option<&SharedStatus>,
    meter: &Arc<Meter>,
) -> HttpAnswer {
    let plain =
        |status, text: &str| HttpAnswer { status, content_type: "text/plain", text: text.into() };
    match (method, path, board.and_then(SharedStatus::status)) {
        ("GET", "/metrics", Some(status)) => {
            let rdma = board.and_then(SharedStatus::rdma);
            let text = exposition(&status, meter, rdma.as_ref(), Path::new(rdma_figures::DEVICES));
            HttpAnswer { status: "200 OK", content_type: CONTENT_TYPE, text }
        }
        ("GET", "/metrics", None) => plain("503 Service Unavailable", "not a member yet\n"),
        _ => plain("404 Not Found", "GET /metrics\n"),
    }
}

/// The program's version, and its target machine.
const BUILD: [(&str, &str); 2] =
    [("version", env!("CARGO_PKG_VERSION")), ("processor", std::env::consts::ARCH)];

/// Formats the metrics of a status. `devices` is the kernel's folder of RDMA devices.
fn exposition(
    status: &GroupStatus,
    meter: &Meter,
    rdma: Option<&rdma::Figures>,
    devices: &Path,
) -> String {
    let mut text =
        MetricsPage::new(&[("group", &status.group), ("node", &status.node.to_string())]);
    let (delivered, sent) = (&meter.delivered_bytes, &meter.sent_bytes);
    let build = "1, with the version of this program and its processor as labels";
    text.gauges("tramontane_build_info", build, &[(BUILD, 1)]);
    text.counter(
        "tramontane_delivered_bytes",
        "Bytes of messages delivered",
        delivered.load(Ordering::Relaxed),
    );
    let of_lines = "Bytes of input lines accepted for sending";
    text.counter("tramontane_sent_bytes", of_lines, sent.load(Ordering::Relaxed));
    let latency =
        "Time from reading a line of the input to its delivery here, sampled one line at a time";
    text.histogram("tramontane_delivery_latency_seconds", latency, &meter.latencies());
    status.add_metrics(&mut text);
    if let Some(rdma) = rdma {
        rdma_figures::write(&mut text, rdma, devices);
    }
    text.into_text()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tramontane_runtime::group::{MemberState, SubgroupStatus};

    use super::*;

    #[test]
    fn metrics_text_follows_the_prometheus_format() {
        let subgroup =
            |name: &str| SubgroupStatus { name: name.into(), delivered: 7, ..Default::default() };
        let status = GroupStatus {
            group: "a \"quoted\\ name\n".into(),
            delivered: u64::MAX,
            state: MemberState::Steady,
            subgroups: vec![subgroup("one"), subgroup("two")],
            ..Default::default()
        };
        let meter = Meter::new(None);
        meter.delivered(77, 0);
        meter.latencies().observe(0.002);
        let (rdma, devices) = rdma_figures::tests::sample();
        let text = exposition(&status, &meter, Some(&rdma), devices.path());
        let read = openmetrics_parser::prometheus::parse_prometheus(&text);
        let read = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
        for name in ["tramontane_delivered_messages_total", "tramontane_view", "tramontane_state"] {
            assert!(
                read.families.contains_key(name),
                "{name} is not in {:?}",
                read.families.keys()
            );
        }
        assert!(
            text.contains("subgroup=\"two\"} 7\n") && text.contains("delivered_bytes_total{"),
            "{text}"
        );
        assert!(text.contains(",le=\"0.003\"} 1\n"), "{text}");
        for line in [
            "rdma_link_up{group=\"a \\\"quoted\\\\ name\\n\",node=\"0\",device=\"rxe0\",port=\"1\"} 0\n",
            "counter=\"sent_pkts\"} 900\n",
            "status=\"retries-exceeded\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        for (name, value) in [("retries", 3), ("posted_writes", 77), ("link_losses", 2)] {
            let is_it = |line: &str| {
                line.starts_with(&format!("tramontane_rdma_{name}_total"))
                    && line.ends_with(&format!(" {value}"))
            };
            assert!(text.lines().any(is_it), "{name} {value} is not in {text}");
        }
        assert!(!text.contains("lifespan"), "{text}");
        assert_eq!(faults(&text), [""; 0]);
        promtool(&text);
    }

    /// Returns violations of the rules of Prometheus' `promlint`, which `promtool check metrics`
    /// applies.
    fn faults(text: &str) -> Vec<String> {
        const UNITS: [&str; 9] =
            ["ms", "us", "ns", "milliseconds", "minutes", "hours", "kb", "mb", "percent"];
        let headed = |what: &str| -> BTreeMap<String, String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(what)?.split_once(' '));
            lines.map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect()
        };
        let (helps, types) = (headed("# HELP "), headed("# TYPE "));
        let mut faults = Vec::new();
        let mut fault = |name: &str, what: &str| faults.push(format!("{name}: {what}"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let of_histogram =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let family =
                of_histogram.filter(|family| types.get(*family).is_some_and(|t| t == "histogram"));
            if !types.contains_key(family.unwrap_or(name)) {
                fault(name, "no type");
            }
        }
        for (name, kind) in &types {
            let words: Vec<&str> = name.split('_').collect();
            if helps.get(name).is_none_or(String::is_empty) {
                fault(name, "no help text");
            }
            if (kind == "counter") != name.ends_with("_total") {
                fault(name, "counters alone end with _total");
            }
            if kind != "histogram"
                && ["bucket", "sum", "count"].iter().any(|end| words.ends_with(&[end]))
            {
                fault(name, "looks like a histogram");
            }
            if words.iter().any(|word| UNITS.contains(word)) {
                fault(name, "not a base unit");
            }
            if words.contains(&kind.as_str()) {
                fault(name, "its type is in its name");
            }
            if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
                fault(name, "a colon, or capital letters");
            }
        }
        faults
    }

    #[test]
    fn metrics_linter_detects_faults() {
        let text = "# HELP a_ms Some.\n# TYPE a_ms gauge\na_ms 1\n# TYPE b counter\nb_total 1\n";
        let faults = faults(text);
        assert_eq!(
            faults,
            [
                "b_total: no type",
                "a_ms: not a base unit",
                "b: no help text",
                "b: counters alone end with _total"
            ]
        );
    }

    /// Checks with promtool itself, if it is installed.
    fn promtool(text: &str) {
        use std::io::Write as _;
        use std::process::{Command, Stdio};
        let mut command = Command::new("promtool");
        command
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let Ok(mut tool) = command.spawn() else {
            return eprintln!("there is no promtool here");
        };
        tool.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
        let checked = tool.wait_with_output().expect("it ends");
        assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}\n{text}");
    }
}
