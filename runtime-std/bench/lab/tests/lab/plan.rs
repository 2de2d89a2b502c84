//! `tramontane-lab plan`: it prints the schedule, and reports an impossible plan in one line.

use std::collections::BTreeMap;

use crate::support::TestFolder;
use serde_json::{Value, json};

#[track_caller]
fn plan(place: &TestFolder, arguments: &[&str]) -> Value {
    let output = place.run(&[&["plan", "--json"], arguments].concat()).succeeded();
    serde_json::from_slice(&output).expect("JSON")
}

#[test]
fn small_pipeline_plan_matches_the_paper() {
    let plan = plan(&TestFolder::new(), &["--members", "4", "--blocks", "2"]);
    assert_eq!(
        (&plan["members"], &plan["blocks"], &plan["steps"]),
        (&json!(4), &json!(2), &json!(3))
    );
    let send = |step: u64, from: u64, to: u64, block: u64| json!({"step": step, "from": from, "to": to, "block": block});
    // Worked out by hand from the hypercube rule (RDMC 4.4).
    let by_hand = [
        send(0, 0, 1, 0),
        send(1, 0, 2, 1),
        send(1, 1, 3, 0),
        send(2, 0, 1, 1),
        send(2, 2, 3, 1),
        send(2, 3, 2, 0),
    ];
    assert_eq!(plan["sends"], json!(by_hand));
}

#[test]
fn plan_shows_the_steps_of_each_algorithm() {
    let place = TestFolder::new();
    for (algorithm, steps) in
        [("sequential", 35), ("interleaved", 35), ("chain", 11), ("tree", 15), ("pipeline", 7)]
    {
        let plan = plan(&place, &["--algorithm", algorithm, "--members", "8", "--blocks", "5"]);
        assert_eq!((&plan["steps"], &plan["algorithm"]), (&json!(steps), &json!(algorithm)));
        assert_eq!(
            plan["sends"].as_array().map(Vec::len),
            Some(35),
            "each receiver gets each block once"
        );
    }
    let hybrid =
        plan(&place, &["--algorithm", "hybrid", "--racks", "2", "--members", "8", "--blocks", "5"]);
    assert_eq!(
        (&hybrid["steps"], &hybrid["sends"].as_array().map(Vec::len)),
        (&json!(7), &Some(35))
    );
}

#[test]
fn summary_shows_the_limits_of_each_algorithm() {
    let place = TestFolder::new();
    let summary = |algorithm| {
        plan(&place, &["--algorithm", algorithm, "--members", "8", "--blocks", "20"])["summary"]
            .clone()
    };
    assert_eq!(summary("sequential")["blocks_sent_max"], 7 * 20);
    assert_eq!(summary("chain")["blocks_per_link_max"], 20);
    assert_eq!(summary("chain")["slack_min"], 1);
    // A link of the pipeline is used only in every third step.
    assert!(summary("pipeline")["blocks_per_link_max"].as_u64() < Some(10));
    assert!(summary("pipeline")["slack_mean"].as_f64() > summary("chain")["slack_mean"].as_f64());
    assert_eq!(summary("sequential")["slack_mean"], Value::Null);
}

#[test]
fn plan_prints_a_line_per_step() {
    let place = TestFolder::new();
    let text = place.run(&["plan", "--members", "3", "--blocks", "2"]).succeeded();
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("step  from>to:block\n   0  0>2:0\n"), "{text}");
    assert!(text.contains("\nsteps                          3\n"), "{text}");
}

#[test]
fn plan_summary_counts_blocks_per_link() {
    let place = TestFolder::new();
    let arguments = ["--members", "11", "--blocks", "6"];
    let plan = plan(&place, &arguments);
    let mut expected: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let link =
        |of: &Value| (of["from"].as_u64().expect("a rank"), of["to"].as_u64().expect("a rank"));
    for send in plan["sends"].as_array().expect("sends") {
        *expected.entry(link(send)).or_default() += 1;
    }
    let load = plan["summary"]["load"].as_array().expect("a list");
    let told: Vec<_> =
        load.iter().map(|load| (link(load), load["blocks"].as_u64().expect("a count"))).collect();
    assert_eq!(told, expected.clone().into_iter().collect::<Vec<_>>());
    let text = place.run(&[&["plan"], &arguments[..]].concat()).succeeded();
    let text = String::from_utf8(text).expect("text");
    let (_, load) = text.split_once("\nlink  from>to:blocks\n").expect("a list");
    let words: Vec<&str> = load.split_whitespace().filter(|word| word.contains('>')).collect();
    let expected: Vec<String> =
        expected.into_iter().map(|((from, to), blocks)| format!("{from}>{to}:{blocks}")).collect();
    assert_eq!(words, expected);
}

#[test]
fn invalid_plan_fails_with_one_line() {
    let place = TestFolder::new();
    for (arguments, told) in [
        (&["--members", "0", "--blocks", "1"][..], "0"),
        (&["--members", "3", "--blocks", "0"], "0"),
        (&["--algorithm", "hybrid", "--members", "3", "--blocks", "1"], "--racks"),
        (
            &["--racks", "2", "--members", "3", "--blocks", "1"],
            "only the hybrid algorithm has racks",
        ),
        (
            &["--algorithm", "hybrid", "--racks", "4", "--members", "3", "--blocks", "1"],
            "more racks than members",
        ),
        (&["--members", "60000", "--blocks", "4000000000"], "too many to print"),
    ] {
        place.run(&[&["plan"], arguments].concat()).failed(2, &[told]);
    }
}
