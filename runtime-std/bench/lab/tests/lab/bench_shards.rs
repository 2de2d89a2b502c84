//! `tramontane-lab bench shards`: short runs of it. In the simulator one seed decides every time, so
//! nothing there depends on the machine. Of real processes no figure is compared with a number.

use crate::bench;
use crate::support::Place;
use serde_json::Value;

fn median(row: &Value, figure: &str) -> f64 {
    row[figure]["median"].as_f64().unwrap_or_else(|| panic!("{figure}: {row}"))
}

#[test]
fn a_quick_run_measures_judges_and_draws() {
    let place = Place::new();
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("shards.md");
    let [folder_text, page_text] =
        [folder.path(), &page].map(|path| path.to_str().expect("UTF-8").to_owned());
    let report = bench(
        &place,
        &[
            "shards",
            "--quick",
            "--seeds",
            "1",
            "--experiment",
            "writes,random,leader-change",
            "--plots",
            &folder_text,
            "--output",
            &page_text,
        ],
    );
    let rows = report["rows"].as_array().expect("rows");
    let of = |system: &str, over: u64, demand: &str| {
        let is_it = |row: &&Value| {
            row["system"] == system && row["over"] == over && row["demand"] == demand
        };
        rows.iter().find(is_it).unwrap_or_else(|| panic!("{system}, {over}, {demand}"))
    };
    for system in ["TRAM breadth, paper", "TRAM breadth, all", "RamCast", "RamCast, batching"] {
        let [one, all] = [1, 8].map(|over| median(of(system, over, "low"), "latency_us"));
        assert!(one > 0.0 && all > one, "{system}: {one} us to one group, {all} us to all");
        assert!(median(of(system, 8, "saturating"), "messages_per_s") > 0.0, "{system}");
    }
    let writes = |over| median(of("writes, one after the other", over, "low"), "latency_us");
    assert!(writes(4) > 3.9 * writes(1));

    let change = &report["leader_changes"][0];
    assert!(change["min_us"].as_f64() >= change["usual_max_us"].as_f64(), "{change}");
    assert!(change["max_us"].as_f64() > change["suspect_us"].as_f64(), "{change}");
    let goals = report["goals"].as_array().expect("goals");
    assert!(goals.iter().any(|goal| goal["verdict"] == "not-run"), "payloads were not run");
    assert!(goals.iter().any(|goal| goal["verdict"] != "not-run"));

    let page = std::fs::read_to_string(page).expect("a page");
    for words in ["## The goals", "## Random groups (figure 5)", "| TRAM breadth, all |"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let drawing = folder.path().join("shards-random-rate.svg");
    let drawing = std::fs::read_to_string(drawing).expect("a drawing");
    assert!(drawing.contains("TRAM breadth, paper"));
    place.assert_empty();
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let run = || {
        let arguments = ["shards", "--quick", "--seeds", "1", "--experiment", "messages"];
        bench(&Place::new(), &arguments)
    };
    let report = run();
    assert_eq!(report, run());
    let systems: Vec<&Value> =
        report["rows"].as_array().expect("rows").iter().map(|row| &row["system"]).collect();
    for system in ["TRAM base, paper", "RamCast", "Skeen", "ByzCast"] {
        assert!(systems.contains(&&Value::from(system)), "{system}");
    }
}

#[test]
fn real_processes_are_measured_beside_the_baselines() {
    let place = Place::new();
    let report = bench(
        &place,
        &["shards", "--real", "--rounds", "1", "--messages", "300", "--window", "16"],
    );
    let rows = report["rows"].as_array().expect("rows");
    for fabric in ["shm", "tcp"] {
        for system in ["TRAM", "TRAM, references", "RamCast", "Skeen", "ByzCast"] {
            for destinations in [1, 2] {
                for under_way in [1, 16] {
                    let is_it = |row: &&Value| {
                        row["fabric"] == fabric
                            && row["system"] == system
                            && row["destinations"] == destinations
                            && row["under_way"] == under_way
                    };
                    let row = rows.iter().find(is_it).expect("a row");
                    let [middle, late, last] =
                        ["median_us", "p99_us", "max_us"].map(|figure| median(row, figure));
                    assert!(0.0 < middle && middle <= late && late <= last, "{row}");
                    assert!(median(row, "messages_per_s") > 0.0, "{row}");
                }
            }
        }
    }
    assert_eq!(rows.len(), 40);
    place.assert_empty();
}

#[test]
fn a_leader_that_is_killed_is_replaced_and_measured() {
    let place = Place::new();
    let report = bench(&place, &["shards", "--real", "--fabric", "shm", "--kills", "2"]);
    let takeovers = &report["takeovers"][0];
    assert_eq!(takeovers["kills"], 2);
    let time = |what: &str, of: &str| takeovers[what][of].as_f64().expect("a time");
    assert!(0.0 < time("leads_ms", "median"), "{takeovers}");
    assert!(time("leads_ms", "median") <= time("delivers_ms", "max"), "{takeovers}");
    place.assert_empty();
}

#[test]
fn what_real_processes_cannot_run_is_refused() {
    let place = Place::new();
    for fabric in ["sim", "verbs"] {
        let arguments = ["bench", "shards", "--real", "--fabric", fabric];
        place.run(&arguments).failed(2, &["--real", "shm and tcp"]);
    }
}
