//! `tramontane bench blocks` in the simulator: what RDMC's text says of its figures holds of what
//! is printed. One seed decides every time, so nothing here depends on the machine. Figure 8 is in
//! `fixtures/tests/block_multicast/paper.rs`.

use crate::support::{Place, bench};
use serde_json::Value;
use tramontane_fixtures::profile::Profile;

fn rows(arguments: &[&str]) -> Vec<Value> {
    let report = bench(&Place::new(), &[&["blocks", "--experiment"], arguments].concat());
    report["rows"].as_array().expect("rows").clone()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row}"))
}

/// The milliseconds of an algorithm.
fn latency_ms(rows: &[&Value], algorithm: &str) -> f64 {
    number(rows.iter().find(|row| row["algorithm"] == algorithm).expect("a row"), "latency_ms")
}

/// Sequential send and the tree do poorly as nodes grow; the chain is competitive, but for small
/// transfers to many.
#[test]
fn figure_4_the_algorithms_beside_each_other() {
    let rows = rows(&["algorithms"]);
    let of = |nodes: u64, mib: u64| -> Vec<&Value> {
        rows.iter().filter(|row| row["nodes"] == nodes && row["bytes"] == mib << 20).collect()
    };
    let mut before = (0.0, 0.0);
    for nodes in [3, 4, 8, 12, 16] {
        let large = of(nodes, 256);
        let by_pipeline =
            |algorithm| latency_ms(&large, algorithm) / latency_ms(&large, "pipeline");
        assert!((0.97..=1.03).contains(&by_pipeline("chain")), "{nodes}: {}", by_pipeline("chain"));
        let (tree, sequential) = (by_pipeline("tree"), by_pipeline("sequential"));
        // The tree grows with the logarithm.
        assert!(
            tree >= 0.97 * before.0 && sequential > 0.97 * before.1,
            "{nodes}: {tree}, {sequential}"
        );
        before = (tree, sequential);
    }
    assert!(before.0 >= 3.0 && before.1 >= 12.0, "{before:?}");
    let small = of(16, 8);
    assert!(latency_ms(&small, "chain") >= 1.5 * latency_ms(&small, "pipeline"));
}

/// Larger blocks are better up to a peak, and then worse.
#[test]
fn figure_6_bandwidth_has_a_peak_over_block_sizes() {
    let rows = rows(&["block-sizes"]);
    let mut peaks = Vec::new();
    for of_one in rows.chunk_by(|one, other| one["bytes"] == other["bytes"]) {
        let speeds: Vec<f64> = of_one.iter().map(|row| number(row, "bytes_per_s")).collect();
        let peak = (0..speeds.len())
            .max_by(|one, other| speeds[*one].total_cmp(&speeds[*other]))
            .expect("some");
        assert!(
            speeds[..=peak].is_sorted() && speeds[peak..].is_sorted_by(|one, other| one >= other),
            "{speeds:?}"
        );
        assert!(speeds.len() == 1 || (0 < peak && peak < speeds.len() - 1), "{speeds:?}");
        peaks.push(number(&of_one[peak], "block_bytes"));
    }
    assert!(
        peaks.is_sorted() && peaks.len() == 4,
        "the larger the message, the larger its best block: {peaks:?}"
    );
}

/// The pipeline is almost twice as fast as the tree and around three times as fast as sequential
/// send, and nearly all of what the writer's port can is data replicated.
#[test]
fn figure_9_a_storage_layers_writes() {
    let rows = rows(&["storage", "--writes", "100"]);
    let rows: Vec<&Value> = rows.iter().collect();
    let by_pipeline = |algorithm| latency_ms(&rows, algorithm) / latency_ms(&rows, "pipeline");
    let (tree, sequential) = (by_pipeline("tree"), by_pipeline("sequential"));
    assert!(
        (1.7..=2.0).contains(&tree) && (2.6..=3.1).contains(&sequential),
        "{tree}, {sequential}"
    );
    assert!(number(rows[0], "bytes_per_s") >= 0.9 * port(), "{}", rows[0]);
}

/// With concurrent senders the rate is close to the limit, and overlapping groups take nothing from
/// each other.
#[test]
fn figure_10_overlapping_groups() {
    for of_one in rows(&["overlap", "--nodes", "4,8,16"])
        .chunk_by(|one, other| one["nodes"] == other["nodes"])
    {
        let shares: Vec<f64> =
            of_one.iter().map(|row| number(row, "bytes_per_s") / port()).collect();
        let [one, half, all] = shares[..] else { panic!("{shares:?}") };
        assert!(one >= 0.9 && half >= 0.97 && all >= 1.0 && one < half && half < all, "{shares:?}");
        // Each member sends one message and receives all others: the limit is what ports
        // can take in.
        let nodes = number(&of_one[0], "nodes");
        assert!(all <= nodes / (nodes - 1.0), "{all} among {nodes}");
    }
}

fn port() -> f64 {
    Profile::default().port_bytes_per_us as f64 * 1e6
}

/// The paper's example is printed beside what it is of; the bound of its analysis beside all.
#[test]
fn what_the_paper_says_of_64_nodes_is_said_of_64_alone() {
    let place = Place::new();
    let text = |nodes| {
        let of = [
            "--block-kib",
            "16",
            "--slow-link",
            "0-1",
            "--delayed",
            "1",
            "--pause-blocks",
            "1",
            "--nodes",
            nodes,
        ];
        let arguments = [&["bench", "blocks", "--experiment", "delays"], &of[..]].concat();
        let text = String::from_utf8(place.run(&arguments).succeeded()).expect("text");
        // Lines are wrapped.
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (small, large) = (text("3"), text("64"));
    assert!(
        !small.contains("64 nodes") && large.contains("one link of 64 nodes"),
        "{small}{large}"
    );
    assert!(small.contains("by 4.5 at least 66."), "two dimensions: {small}");
    assert!(large.contains("by 4.5 at least 85.7 %"), "{large}");
    assert_eq!(large.matches("the paper: ").count(), 2, "each once: {large}");
}

#[test]
fn no_writes_are_no_experiment() {
    let arguments = ["bench", "blocks", "--experiment", "storage", "--writes", "0"];
    Place::new().run(&arguments).failed(2, &["--writes", "at least 1"]);
}
