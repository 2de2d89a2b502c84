//! A multicast over datagrams that trusts the network fails if packets are lost, and only then.

use std::process::{Command, Stdio};
use std::time::Duration;

use tramontane_conformance::drive::{Interrupts, RunOptions, drive};
use tramontane_conformance::report::{Case, CaseStatus};

const ADAPTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driven/datagrams.py");

/// With this seed the first fault is the loss of a quarter of the packets of the node that orders
/// all messages.
const SEED: u64 = 2;

/// Plays a plan with these of its random faults.
fn played(options: &str, faults: &[usize]) -> Case {
    let folder = tempfile::tempdir().expect("a folder");
    let options = RunOptions {
        adapter: format!("python3 '{ADAPTER}' {options}"),
        hosts: Vec::new(),
        nodes: 3,
        scenarios: vec!["random-faults".to_owned()],
        program: "tramontane-conformance".to_owned(),
        seed: SEED,
        repeat: 1,
        soak: None,
        until_failed: false,
        rounds_max: usize::MAX,
        require: Vec::new(),
        faults: Some(faults.to_vec()),
        deadline: Duration::from_secs(4),
        messages: 40,
        output: folder.path().to_owned(),
    };
    let run = drive(&options, &Interrupts::default(), &|_| {}).expect("a run").run;
    run.cases.into_iter().next().expect("a case")
}

/// Returns whether the case passed, or is inconclusive because the machine was too slow.
fn is_well(case: &Case) -> bool {
    matches!(case.status, CaseStatus::Passed | CaseStatus::Inconclusive(_))
}

pub fn datagram_adapter_fails_only_if_packets_are_lost() {
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if python.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return println!("SKIPPED: this test needs python3, and there is none");
    }
    let right = played("", &[0]);
    if let CaseStatus::Unsupported(why) = &right.status {
        return println!("SKIPPED: this test needs {why}");
    }
    if right.notes.iter().any(|note| note.starts_with("nothing was lost")) {
        return println!("SKIPPED: {:?}", right.notes);
    }
    assert!(right.notes.iter().any(|note| note.contains("packets from n0 are lost")), "{right:?}");
    assert!(is_well(&right), "{right:?}");
    let without_loss = played("--trust", &[]);
    assert!(is_well(&without_loss), "{without_loss:?}");
    // On an overloaded machine a missing message may only be late, so it does not count as broken.
    let wrong = played("--trust", &[0]);
    assert!(!matches!(wrong.status, CaseStatus::Passed), "{wrong:?}");
}
