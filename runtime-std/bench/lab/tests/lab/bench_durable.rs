//! `tramontane-lab bench durable`: groups that log, and a restart of all their members.

use serde_json::Value;

use crate::bench;
use crate::support::TestFolder;

#[test]
fn durable_bench_restarts_with_the_same_messages() {
    let place = TestFolder::new();
    let arguments = ["durable", "--nodes", "1,3", "--mib", "2", "--rounds", "2", "--bytes", "1000"];
    let report = bench(&place, &arguments);
    let cases = report["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 2);
    for case in cases {
        let number = |name: &str| case[name].as_f64().unwrap_or_else(|| panic!("{name}: {case}"));
        // At least two MiB, in two parts of equal size, sent by all members.
        assert!(number("messages") >= f64::from(2 << 20) / 1000.0, "{case}");
        assert_eq!(number("messages") % (2.0 * number("nodes")), 0.0, "{case}");
        assert!(number("restart_s") > 0.0, "{case}");
        for name in ["logged_mb_per_s", "plain_mb_per_s", "of_plain", "syncs_per_s"] {
            let spread = &case[name];
            let of = |which: &str| spread[which].as_f64().expect("a number");
            assert!(0.0 < of("min") && of("min") <= of("median") && of("median") <= of("max"));
        }
    }
    // With only one member, all messages are its own.
    let digests: Vec<&Value> = cases.iter().map(|case| &case["digest"]).collect();
    assert_ne!(digests[0], digests[1]);
}

#[test]
fn error_names_unwritable_folder() {
    let arguments = ["bench", "durable", "--folder", "/proc/nowhere", "--mib", "1"];
    TestFolder::new().run(&arguments).failed(4, &["/proc/nowhere"]);
}
