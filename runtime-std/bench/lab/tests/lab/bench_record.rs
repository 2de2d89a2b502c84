//! `tramontane-lab bench record`: rows are computed from runs, judged, and printed. A seed
//! determines a run, so nothing here depends on the machine.

use serde_json::Value;

use crate::bench;
use crate::support::TestFolder;

/// Returns the requested rows of one paper.
fn rows(arguments: &[&str]) -> Vec<Value> {
    let record = bench(&TestFolder::new(), &[&["record", "--seeds", "1"], arguments].concat());
    let part = &record["parts"][0];
    let all = ["goals", "claims"].map(|kind| part[kind].as_array().expect("rows").clone());
    all.concat()
}

fn verdicts(only: &str) -> Vec<String> {
    let verdict = |row: &Value| row["verdict"].as_str().expect("a verdict").to_owned();
    rows(&["--only", only]).iter().map(verdict).collect()
}

/// The tables and figures of RDMC, as its text describes them: the breakdown of a transfer's time,
/// a comparison of the algorithms, block sizes, a storage layer, overlapping groups, interrupts.
#[test]
fn simulated_rdmc_figures_match_the_paper() {
    let held = "rdmc-table-total,rdmc-table-blocks,rdmc-network-share,rdmc-preempted-relay,\
                rdmc-sequential-poor,rdmc-tree-poor,rdmc-chain-competitive,rdmc-chain-small,\
                rdmc-one-byte,rdmc-overlap-fractus,\
                rdmc-overlap-apt,rdmc-pure-polling,rdmc-load-hybrid,rdmc-interrupts-bandwidth,\
                rdmc-steps,rdmc-slack,rdmc-slow-link,rdmc-two-steps";
    assert_eq!(verdicts(held), ["held"; 18]);
}

#[test]
#[ignore = "takes ten seconds: .ci/full"]
fn simulated_rdmc_storage_matches_the_paper() {
    assert_eq!(verdicts("rdmc-storage-tree,rdmc-storage-rate"), ["held"; 2]);
}

#[test]
fn simulated_spindle_batching_matches_the_paper() {
    let held = "spindle-abstract-after,spindle-receive-batch-1,spindle-small-send-batches";
    assert_eq!(verdicts(held), ["held"; 3]);
    assert_spindle_verdicts(&[
        ("spindle-network", "input"),
        ("spindle-send-batch-1", "fitted"),
        ("spindle-quiesce", "not-modelled"),
    ]);
}

#[test]
#[ignore = "takes half a minute: .ci/full"]
fn large_simulated_spindle_groups_match_the_paper() {
    let held = "spindle-batching-16,spindle-writes-before,spindle-posting-before";
    assert_eq!(verdicts(held), ["held"; 3]);
    assert_spindle_verdicts(&[("spindle-abstract-latency", "failed")]);
}

/// Asserts the verdicts of rows by id.
#[track_caller]
fn assert_spindle_verdicts(expected: &[(&str, &str)]) {
    let only: Vec<&str> = expected.iter().map(|(id, _)| *id).collect();
    let rows = rows(&["--only", &only.join(",")]);
    for (id, verdict) in expected {
        let is_row = |row: &Value| row["id"] == *id && row["verdict"] == *verdict;
        assert!(rows.iter().any(is_row), "{id}: {rows:?}");
    }
}

#[test]
fn tram_claims_are_judged() {
    assert_eq!(verdicts("tram-writes,tram-goal-all-latency,tram-few-destinations"), ["held"; 3]);
}

#[test]
#[ignore = "takes a quarter of a minute: .ci/full"]
fn dds_claims_are_judged() {
    assert_eq!(verdicts("dds-core-atomic,dds-core-over-own-atomic"), ["held", "failed"]);
}

const OWN: &str = r#"
title = "Own"
about = "What a test asks.\n"
with_core = true

[lists]
sizes = [2, 3]

[cases]
derecho = { run = "sending", messages = 50 }
core = { run = "sending", messages = 50, is_core = true }

[[claim]]
id = "own-number"
section = "1"
words = "a number of which nothing is said"
measure = "gb_per_s(core, nodes=2)"

[[claim]]
id = "own-range"
section = "1"
words = "any rate"
stated = { at_least = 0.001 }
measure = "mean(gb_per_s(derecho, nodes=sizes))"
unit = "GB/s"
direction = "< 0"

[[table]]
title = "A figure"
what = "Rates"
over = "members"
unit = "GB/s"
digits = 2
drawing = "own.svg"
lines = [["all send", "gb_per_s(core, nodes=sizes)"]]
model = [["all send", "gb_per_s(derecho, nodes=sizes)"]]
stated = [["all send", [[3, 0.5], [4, 0.25]]]]

[[table]]
what = "Batches"
over = "messages"
unit = "%"
digits = 0
lines = [["sends", "send_batches(core, nodes=2, up_to=[1, 100])"]]
"#;

#[test]
fn rows_of_file_become_page_with_drawings() {
    let place = TestFolder::new();
    let file = place.file("own.toml", OWN.as_bytes());
    let page = place.path().join("page.md");
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (file, page_text, folder) = (text(&file), text(&page), text(place.path()));
    let own = ["record", "--rows", &file, "--seeds", "2"];
    let files = ["--output", &page_text, "--plots", &folder];
    let record = bench(&place, &[&own[..], &files].concat());
    assert_eq!(record, bench(&place, &own), "seeds decide everything");
    let claims = &record["parts"][0]["claims"];
    assert_eq!(
        (&claims[0]["verdict"], &claims[1]["verdict"]),
        (&"measured".into(), &"held".into())
    );
    assert_eq!(record["runs"], 8, "two systems, two sizes, two seeds");
    let page = std::fs::read_to_string(page).expect("a page");
    for words in [
        "# Own\n",
        "What a test asks.",
        "| own-range |",
        "### A figure",
        "| | 2 | 3 | 4 |",
        "| paper: all send |  | 0.50 | 0.25 |",
        "| | 1 | 100 |",
        " | 100 |\n",
        "Our core shows the same direction in 0 of 1.",
        ": DIFFERS |",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let drawn = std::fs::read_to_string(place.path().join("own.svg")).expect("a drawing");
    assert!(drawn.starts_with("<svg"), "{drawn}");
    for label in ["our core: all send", "model: all send", "paper: all send"] {
        assert!(drawn.contains(label), "{label}: {drawn}");
    }
    let set = bench(&place, &[&own[..], &["--set", "post_ns=9000"]].concat());
    assert_ne!(record["parts"], set["parts"], "posts cost more");
}

#[test]
fn record_rows_with_invalid_queries_are_refused() {
    let place = TestFolder::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        place.run(&[&["bench", "record"], arguments].concat()).failed(2, words);
    };
    refused(&["--only", "spindle-nothing"], &["'spindle-nothing'"]);
    refused(&["--paper", "derecho"], &["derecho", "spindle"]);
    refused(&["--set", "pst_ns=1"], &["pst_ns", "no parameter"]);
    refused(&["--rows", "no/such.toml"], &["cannot read no/such.toml"]);
    refused(&["--plots", "absent"], &["there is no folder absent; create it first"]);
    for (right, wrong, words) in [
        ("mean(", "middle(", &["own-range", "function or case"][..]),
        ("nodes=sizes))", "nods=sizes))", &["own-range", "nods"]),
        ("gb_per_s(core, nodes=2)", "gb_per_s(core, nodes=2", &["own-number", "no )"]),
        ("section = \"1\"", "chapter = \"1\"", &["chapter"]),
    ] {
        let file = place.file("own.toml", OWN.replace(right, wrong).as_bytes());
        refused(&["--rows", file.to_str().expect("UTF-8")], words);
    }
}
