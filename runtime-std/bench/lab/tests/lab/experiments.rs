//! `tramontane-lab bench`: what it prints, and what it refuses. Rates are not judged here.

use crate::bench;
use crate::support::Place;

#[test]
fn continuous_sending_over_shared_memory_in_turn_with_the_probe() {
    let place = Place::new();
    let report = bench(
        &place,
        &["multicast", "--probe", "--messages", "2000", "--rounds", "1", "--bytes", "64"],
    );
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
        assert_eq!(
            (row["fabric"].as_str(), probe["kind"].as_str()),
            (Some("tcp"), Some("mesh")),
            "{row}"
        );
        let median = |field: &str| probe[field]["median"].as_f64().expect("a figure");
        let (bare, delivered) = (median("received_bytes_per_s"), median("delivered_bytes_per_s"));
        assert!(
            bare > 0.0 && (median("ratio") / (delivered / bare) - 1.0).abs() < 1e-9,
            "one round: {probe}"
        );
        let all = row["bytes_per_s"].as_f64().expect("a rate");
        // Of three senders, two thirds of what is delivered is others'.
        assert!(
            row["nodes"] != 3 || (delivered / all * 1.5 - 1.0).abs() < 1e-9,
            "{delivered} of {all}"
        );
        assert!(delivered < all, "the own messages are not counted: {delivered} of {all}");
    }
    place.assert_empty();
}

#[test]
fn a_polling_thread_and_techniques_that_are_off() {
    let place = Place::new();
    let polled =
        ["multicast", "--drive", "polled", "--messages", "500", "--rounds", "1", "--bytes", "8"];
    assert_eq!(bench(&place, &polled)["rows"][0]["drive"], "polled");
    let without =
        ["multicast", "--nodes", "3", "--messages", "200", "--rounds", "1", "--bytes", "8"];
    let report = bench(&place, &[&without[..], &["--without", "nulls,late-posting"]].concat());
    assert_eq!(report["rows"][0]["techniques"], "send+receive+delivery");
    place.assert_empty();
}

#[test]
fn the_simulator_repeats_itself_and_draws_what_it_found() {
    let place = Place::new();
    let plot = place.path().join("plot.svg");
    let text = plot.to_str().expect("UTF-8");
    let arguments =
        ["multicast", "--fabric", "sim", "--nodes", "4", "--messages", "100", "--plot", text];
    let report = bench(&place, &arguments);
    assert_eq!(report, bench(&place, &arguments), "seeds decide everything");
    let inside = &report["rows"][0]["inside"];
    assert_eq!(inside["seeds"], serde_json::json!([1, 2, 3, 4, 5]));
    let rate = &inside["gigabytes_per_s"];
    let figure = |name: &str| rate[name].as_f64().expect("a figure");
    assert!(figure("min") < figure("median") && figure("median") < figure("max"), "{rate}");
    for share in ["posting_share", "blocked_share", "idle_share"] {
        let median = inside[share]["median"].as_f64().expect("a share");
        assert!((0.0..=1.0).contains(&median), "{share}: {inside}");
    }
    let drawn = std::fs::read_to_string(&plot).expect("a plot");
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"), "{drawn}");
}

#[test]
fn each_seed_is_a_run() {
    let place = Place::new();
    let rate = |seed: &str, seeds: &str| {
        let sim = ["multicast", "--fabric", "sim", "--nodes", "3", "--messages", "50"];
        let report = bench(&place, &[&sim[..], &["--seed", seed, "--seeds", seeds]].concat());
        report["rows"][0]["inside"]["gigabytes_per_s"]["median"].as_f64().expect("a rate")
    };
    let mut alone = [rate("7", "1"), rate("8", "1"), rate("9", "1")];
    alone.sort_by(f64::total_cmp);
    assert_eq!(rate("7", "3"), alone[1], "the median of {alone:?}");
}

#[test]
fn the_simulated_machine_is_a_profile_and_what_is_set() {
    let place = Place::new();
    let own = "about = 'own'\nbase = 'spindle'\n[parameters]\n\
               port_bytes_per_us = { value = 1000, source = 'a test' }\n";
    let own = place.file("own.toml", own.as_bytes());
    let own = own.to_str().expect("UTF-8");
    let sim = ["multicast", "--fabric", "sim", "--nodes", "3", "--messages", "100", "--seeds", "1"];
    let report = |more: &[&str]| bench(&place, &[&sim[..], more].concat());
    let rate = |report: &serde_json::Value| {
        report["rows"][0]["inside"]["gigabytes_per_s"]["median"].as_f64().expect("a rate")
    };
    assert_eq!(report(&[])["simulated"]["profile"], "usual");
    let slow = report(&["--profile", own]);
    assert_eq!(slow["simulated"]["about"], "own");
    // A port of 1 GB/s takes in what others send: two thirds of what is delivered.
    assert!(rate(&slow) < 1.5, "{slow}");
    let set = report(&["--profile", own, "--set", "port_bytes_per_us=12500"]);
    assert_eq!(set["simulated"]["set"][0]["name"], "port_bytes_per_us");
    assert!(rate(&set) > 2.0, "{set}");
    let text = place.run(&[&["bench"], &sim[..], &["--set", "post_ns=300"]].concat()).succeeded();
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("simulated: usual, with post_ns=300: "), "{text}");
}

#[test]
fn derecho_is_simulated_beside_our_own_core() {
    let place = Place::new();
    let sim = ["multicast", "--fabric", "sim", "--messages", "200", "--seeds", "2"];
    let report = |more: &[&str]| bench(&place, &[&sim[..], more].concat());
    let beside = ["--variant", "baseline,spindle,tramontane", "--nodes", "2,8"];
    let all = report(&beside);
    assert_eq!(all, report(&beside), "seeds decide everything");
    let rows = all["rows"].as_array().expect("rows");
    let of = |variant: &str, nodes: u64| {
        let meant = |row: &&serde_json::Value| row["variant"] == variant && row["nodes"] == nodes;
        rows.iter().find(meant).expect("a row")
    };
    assert_eq!(rows.len(), 6);
    let rate = |row: &serde_json::Value| row["bytes_per_s"].as_f64().expect("a rate");
    assert!(rate(of("spindle", 8)) > 2.0 * rate(of("baseline", 8)), "{all}");
    assert_eq!(of("baseline", 2)["techniques"], "delivery");
    assert_eq!(of("spindle", 2)["techniques"], "all");
    assert_eq!(of("spindle", 2)["inside"]["idle_share"], serde_json::Value::Null);
    assert!(of("tramontane", 2)["inside"]["idle_share"].is_object());
    for row in rows {
        let posting = row["inside"]["posting_share"]["median"].as_f64().expect("a share");
        assert!(0.0 < posting && posting < 1.0, "{row}");
    }
    let own = report(&["--nodes", "8"]);
    assert_eq!(&own["rows"][0], of("tramontane", 8), "our own core is what is run otherwise");
    let waiting = report(&["--variant", "nulls", "--nodes", "4", "--delay-us", "100"]);
    assert_eq!(waiting["rows"][0]["delayed"], 1);
    assert!(waiting["rows"][0]["others_alone"].as_f64() > Some(0.5), "{waiting}");
    let text = place.run(&[&["bench"], &sim[..], &["--variant", "receive"]].concat()).succeeded();
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("receive+delivery (derecho receive)"), "{text}");
    place.assert_empty();
}

#[test]
fn variants_that_cannot_be_run_are_refused() {
    let place = Place::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        place.run(&[&["bench", "multicast"], arguments].concat()).failed(2, words);
    };
    refused(&["--variant", "spindle"], &["--variant", "--fabric sim"]);
    let without = ["--fabric", "sim", "--without", "nulls", "--variant", "tramontane,spindle"];
    refused(&without, &["--without", "--variant spindle"]);
    refused(&["--fabric", "sim", "--variant", "derecho"], &["derecho", "baseline"]);
    for variant in ["spindle", "tramontane"] {
        refused(&["--fabric", "sim", "--window", "0", "--variant", variant], &["--window is 0"]);
    }
    place.assert_empty();
}

#[test]
fn parameters_say_where_they_come_from() {
    let place = Place::new();
    let report = bench(&place, &["parameters", "--profile", "spindle", "--set", "look_ns=7"]);
    assert_eq!(report["profile"], "spindle");
    let row = |name: &str| {
        let rows = report["parameters"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).expect("a row").clone()
    };
    assert!(row("post_ns")["source"].as_str().expect("text").contains("Spindle"));
    assert_eq!(
        (&row("post_ns")["unit"], &row("post_ns")["set_by"]),
        (&"ns".into(), &"spindle".into())
    );
    assert_eq!((&row("look_ns")["value"], &row("look_ns")["set_by"]), (&7.into(), &"--set".into()));
    assert_eq!(row("disk_queue")["set_by"], "default");
    let text = place.run(&["bench", "parameters"]).succeeded();
    assert!(String::from_utf8(text).expect("text").starts_with("usual: "));
}

#[test]
fn machines_that_cannot_be_simulated_are_refused() {
    let place = Place::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        place.run(&[&["bench"], arguments].concat()).failed(2, words);
    };
    refused(&["parameters", "--profile", "spindel"], &["'spindel'", "the nearest is spindle"]);
    refused(&["parameters", "--set", "pst_ns=1"], &["the nearest is post_ns"]);
    refused(&["parameters", "--profile", "no/such.toml"], &["cannot read", "no/such.toml"]);
    let wrong = place.file("wrong.toml", b"about = 'a'\n\nbasis = 'usual'\n");
    refused(&["parameters", "--profile", wrong.to_str().expect("UTF-8")], &["line 3", "basis"]);
    refused(&["multicast", "--profile", "spindle"], &["--profile", "--fabric sim"]);
    refused(&["multicast", "--set", "post_ns=1"], &["--set", "--fabric sim"]);
    refused(&["multicast", "--seeds", "2"], &["--seeds", "--fabric sim"]);
    refused(&["multicast", "--fabric", "sim", "--seeds", "0"], &["--seeds"]);
    let blocks = ["blocks", "--fabric", "shm", "--profile", "spindle"];
    refused(&blocks, &["--profile", "--fabric sim"]);
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
    place.run(&["bench", "worker", "idling", "nonsense"]).failed(2, &["not a task"]);
    place.run(&["bench", "worker", "nonsense", "{}"]).failed(2, &["nonsense"]);
    place.assert_empty();
}

#[test]
fn large_messages_in_the_one_order_in_turn_with_small_ones() {
    let place = Place::new();
    for fabric in ["shm", "tcp"] {
        let run =
            ["views", "--large", "33554432", "--nodes", "2", "--rounds", "1", "--fabric", fabric];
        let report = bench(&place, &run);
        for (row, senders) in report["rows"].as_array().expect("rows").iter().zip([1, 2]) {
            assert_eq!(row["senders"], senders);
            let median = |field: &str| row[field]["median"].as_f64().expect("a figure");
            let (large, small) = (median("large_bytes_per_s"), median("small_bytes_per_s"));
            assert!(small > 0.0, "{report}");
            assert!((median("ratio") / (large / small) - 1.0).abs() < 1e-9, "one round: {report}");
        }
    }
    for wrong in ["10240", "268435457"] {
        place.run(&["bench", "views", "--large", wrong]).failed(2, &["--large", "268435456"]);
    }
    place.assert_empty();
}

#[test]
fn the_help_names_every_experiment_and_what_it_runs_on() {
    let help = Place::new().run(&["--help"]).succeeded();
    let help = String::from_utf8(help).expect("text");
    let (_, bench) = help.split_once("  bench ").expect("a line");
    // Up to the next command: the line may be broken.
    let (bench, _) = bench.split_once("  adapter ").expect("the next");
    for word in [
        "multicast",
        "blocks",
        "latency",
        "idle",
        "views",
        "shared memory",
        "TCP",
        "RDMA",
        "simulated",
    ] {
        assert!(bench.contains(word), "{word}: {bench}");
    }
}

#[test]
fn experiments_refuse_options_of_another_fabric() {
    let place = Place::new();
    place.run(&["bench", "latency", "--gid", "1"]).failed(2, &["--gid", "--fabric verbs"]);
    place.run(&["bench", "multicast", "--fabric", "sim", "--port", "1"]).failed(2, &["--port"]);
    place.run(&["bench", "multicast", "--fabric", "verbs", "--probe"]).failed(2, &["--probe"]);
    place.assert_empty();
}
