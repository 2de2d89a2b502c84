//! `tramontane bench`: what it prints, and what it refuses. Rates are not judged here.

mod cli_support;

use cli_support::Place;
use serde_json::Value;

#[track_caller]
fn bench(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[&["bench"], arguments, &["--json"]].concat()).succeeded();
    serde_json::from_slice(&output).expect("JSON")
}

#[test]
fn continuous_sending_over_shared_memory_in_turn_with_the_probe() {
    let place = Place::new();
    let report =
        bench(&place, &["multicast", "--probe", "--messages", "2000", "--rounds", "1", "--bytes", "64"]);
    let row = &report["rows"][0];
    assert_eq!((row["fabric"].as_str(), row["nodes"].as_u64()), (Some("shm"), Some(2)));
    assert!(row["messages_per_s"]["median"].as_f64() > Some(0.0), "{row}");
    assert!(row["probe"]["ratio"]["median"].as_f64() > Some(0.0), "{row}");
    assert!(row["writes_per_message"].as_f64() > Some(0.0), "{row}");
    place.assert_empty();
}

#[test]
fn continuous_sending_over_tcp_in_turn_with_the_bare_mesh() {
    let place = Place::new();
    let tcp = ["multicast", "--fabric", "tcp", "--probe", "--rounds", "1", "--bytes", "1024"];
    for more in [&["--nodes", "3"][..], &["--nodes", "2", "--senders", "one", "--unpinned"]] {
        let report = bench(&place, &[&tcp[..], &["--messages", "500"], more].concat());
        let row = &report["rows"][0];
        let probe = &row["probe"];
        assert_eq!((row["fabric"].as_str(), probe["kind"].as_str()), (Some("tcp"), Some("mesh")), "{row}");
        let median = |field: &str| probe[field]["median"].as_f64().expect("a figure");
        let (bare, delivered) = (median("received_bytes_per_s"), median("delivered_bytes_per_s"));
        assert!(
            bare > 0.0 && (median("ratio") / (delivered / bare) - 1.0).abs() < 1e-9,
            "one round: {probe}"
        );
        let all = row["bytes_per_s"].as_f64().expect("a rate");
        // Of three who all send, two thirds of what is delivered is others'.
        assert!(row["nodes"] != 3 || (delivered / all * 1.5 - 1.0).abs() < 1e-9, "{delivered} of {all}");
        assert!(delivered < all, "the own messages are not counted: {delivered} of {all}");
        // Installed or not, there is one or the other.
        let iperf = &report["iperf3"];
        let is_rate = iperf["received_bytes_per_s"].as_f64() > Some(0.0);
        assert!(is_rate || iperf["none"].as_str().is_some_and(|note| note.contains("iperf3")), "{iperf}");
    }
    place.assert_empty();
}

#[test]
fn a_polling_thread_and_techniques_that_are_off() {
    let place = Place::new();
    let polled = ["multicast", "--drive", "polled", "--messages", "500", "--rounds", "1", "--bytes", "8"];
    assert_eq!(bench(&place, &polled)["rows"][0]["drive"], "polled");
    let without = ["multicast", "--nodes", "3", "--messages", "200", "--rounds", "1", "--bytes", "8"];
    let report = bench(&place, &[&without[..], &["--without", "nulls,late-posting"]].concat());
    assert_eq!(report["rows"][0]["techniques"], "send+receive+delivery");
    place.assert_empty();
}

#[test]
fn the_simulator_repeats_itself_and_draws_what_it_found() {
    let place = Place::new();
    let plot = place.path().join("plot.svg");
    let text = plot.to_str().expect("UTF-8");
    let arguments = ["multicast", "--fabric", "sim", "--nodes", "4", "--messages", "100", "--plot", text];
    let report = bench(&place, &arguments);
    assert_eq!(report, bench(&place, &arguments), "one seed decides everything");
    assert_eq!(report["rows"][0]["paper"]["gigabytes_per_s"], 9.7);
    let drawn = std::fs::read_to_string(&plot).expect("a plot");
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"), "{drawn}");
}

#[test]
fn block_multicasts_are_simulated_and_drawn() {
    let place = Place::new();
    let plot = place.path().join("blocks.svg");
    let text = plot.to_str().expect("UTF-8");
    let arguments = ["blocks", "--experiment", "algorithms", "--nodes", "8", "--mib", "16", "--plot", text];
    let report = bench(&place, &arguments);
    assert_eq!(report, bench(&place, &arguments), "one seed decides everything");
    let rows = report["rows"].as_array().expect("rows");
    let latency = |algorithm: &str| {
        let row = rows.iter().find(|row| row["algorithm"] == algorithm).expect("a row");
        row["latency_ms"].as_f64().expect("a time")
    };
    assert!(latency("pipeline") * 2.0 < latency("tree") && latency("tree") < latency("sequential"));
    let drawn = std::fs::read_to_string(&plot).expect("a plot");
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"), "{drawn}");
    let storage = bench(&place, &["blocks", "--experiment", "storage", "--writes", "30"]);
    assert_eq!(storage["rows"].as_array().map(Vec::len), Some(3), "{storage}");
}

#[test]
fn block_groups_of_processes_are_measured_beside_the_machines_limit() {
    let place = Place::new();
    let few = ["blocks", "--nodes", "3", "--bytes", "100000", "--messages", "3", "--rounds", "1"];
    let shm = ["--fabric", "shm", "--probe"];
    let report = bench(&place, &[&few[..], &shm[..]].concat());
    let row = &report["rows"][0];
    assert_eq!((row["fabric"].as_str(), row["algorithm"].as_str()), (Some("shm"), Some("interleaved")));
    let figure = |value: &Value| value["median"].as_f64().filter(|figure| *figure > 0.0).is_some();
    for beside in ["memcpy", "lent"] {
        let beside = &row["probes"][beside];
        assert!(figure(&beside["ms"]) && figure(&beside["by_row"]), "{row}");
    }
    assert!(figure(&row["latency_ms"]) && figure(&row["total_bytes_per_s"]), "{row}");
    // Installed or not, there is one or the other.
    let is_told = report["note"].as_str().is_some_and(|note| note.contains("MPI"));
    assert!(is_told || figure(&row["probes"]["mpi"]["ms"]), "{report}");
    for algorithm in ["pipeline", "chain"] {
        let tcp = ["--fabric", "tcp", "--block", "4096", "--algorithm", algorithm];
        let report = bench(&place, &[&few[..], &tcp].concat());
        let row = &report["rows"][0];
        assert_eq!((row["fabric"].as_str(), row["algorithm"].as_str()), (Some("tcp"), Some(algorithm)));
        assert!(figure(&row["latency_ms"]) && row["probes"].is_null(), "{row}");
    }
    place.assert_empty();
}

#[test]
fn block_groups_of_the_same_processes_go_side_by_side() {
    let place = Place::new();
    let few = ["blocks", "--nodes", "4", "--bytes", "70000", "--messages", "4", "--rounds", "1"];
    for (senders, groups) in [("all", 4), ("half", 2)] {
        for fabric in ["shm", "tcp"] {
            let report = bench(&place, &[&few[..], &["--fabric", fabric, "--senders", senders]].concat());
            let row = &report["rows"][0];
            assert_eq!((row["fabric"].as_str(), row["groups"].as_u64()), (Some(fabric), Some(groups)));
            let fairness = row["fairness"]["median"].as_f64().expect("a share");
            assert!(fairness > 0.0 && fairness <= 1.0, "{row}");
        }
    }
    place.assert_empty();
}

#[test]
fn latency_and_idling_are_measured() {
    let place = Place::new();
    let report = bench(&place, &["latency", "--messages", "200", "--rounds", "1"]);
    assert!(report["last_ratio"]["median"].as_f64() > Some(0.0), "{report}");
    let report = bench(&place, &["idle", "--seconds", "1"]);
    assert_eq!(report["writes"], 0, "an idle group posts nothing");
    assert!(report["total_percent"].as_f64() < Some(50.0), "it sleeps: {report}");
    place.assert_empty();
}

#[test]
fn arguments_that_make_no_experiment_are_refused() {
    let place = Place::new();
    place.run(&["bench", "multicast", "--nodes", "0"]).failed(2, &["--nodes is 0"]);
    place.run(&["bench", "multicast", "--rounds", "0"]).failed(2, &["--rounds is 0"]);
    place.run(&["bench", "multicast", "--window", "0"]).failed(2, &["window"]);
    place.run(&["bench", "multicast", "--nodes", "3", "--probe"]).failed(2, &["--probe"]);
    let alone = ["bench", "multicast", "--fabric", "tcp", "--nodes", "1", "--probe"];
    place.run(&alone).failed(2, &["--probe", "--nodes 2"]);
    place.run(&["bench", "blocks", "--fabric", "verbs"]).failed(2, &["--fabric shm or tcp"]);
    place.run(&["bench", "blocks", "--bytes", "5"]).failed(2, &["--bytes", "real fabrics"]);
    let shm = ["bench", "blocks", "--fabric", "shm"];
    for (more, said) in [
        (&["--experiment", "scale"][..], "--experiment"),
        (&["--nodes", "1"], "--nodes is 1"),
        (&["--nodes", "13"], "--nodes is 13"),
        (&["--bytes", "0"], "--bytes is 0"),
        (&["--block", "0"], "--block is 0"),
        (&["--rounds", "0"], "--rounds is 0"),
        (&["--window", "0"], "--window"),
        (&["--window", "17"], "--window"),
        (&["--algorithm", "hybrid"], "racks"),
        (&["--senders", "all", "--probe"], "--probe"),
    ] {
        place.run(&[&shm[..], more].concat()).failed(2, &[said]);
    }
    let tcp = ["bench", "blocks", "--fabric", "tcp", "--probe"];
    place.run(&tcp).failed(2, &["--probe", "--fabric shm"]);
    place.run(&["bench", "blocks", "--nodes", "1"]).failed(2, &["--nodes is 1"]);
    place
        .run(&["bench", "blocks", "--experiment", "overlap", "--mib", "1", "--plot", "x.svg"])
        .failed(2, &["--plot"]);
    place.run(&["bench", "worker", "nonsense"]).failed(2, &["not a task"]);
    place.assert_empty();
}
