//! A run on an overloaded machine: a late message does not count as lost.
//!
//! The driver and all its members are repeatedly stopped and continued, so that they run for a
//! small part of the time.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const REFERENCE: &str = env!("CARGO_BIN_EXE_tramontane-reference");

/// The exit status if nothing is broken, but not every promise could be proved to hold.
const INCONCLUSIVE: i32 = 2;

/// The period of stopping and continuing.
const ROUND: Duration = Duration::from_millis(300);

/// The time in each period during which the processes run.
const AWAKE: Duration = Duration::from_millis(3);

/// A deadline that the correct program meets easily on an idle machine.
const DEADLINE: &str = "--deadline=0.5";

fn start(folder: &Path, adapter: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tramontane-conformance"));
    command.args([
        "run",
        "--nodes=3",
        "--seed=1",
        DEADLINE,
        "--scenario=all-senders",
        "--adapter",
        adapter,
    ]);
    command.arg("--output").arg(folder).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the program is built")
}

/// Returns a process and its descendants, as far as they are currently known.
fn family(of: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut family = vec![of];
    let mut next = 0;
    while next < family.len() {
        let parent = family[next];
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    family
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn send(to: &[u32], signal: Signal) {
    for pid in to.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        // The process may have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Grants the run a hundredth of the time until it ends, and returns its exit status and results.
fn starve(mut child: Child, folder: &Path) -> (Option<i32>, Value) {
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        let all = family(child.id());
        // The parent is stopped first, so that it does not start a process meanwhile.
        send(&all, Signal::STOP);
        std::thread::sleep(ROUND - AWAKE);
        send(&all, Signal::CONT);
        std::thread::sleep(AWAKE);
    };
    let results = std::fs::read_to_string(folder.join("results.json")).unwrap_or_default();
    (status.code(), serde_json::from_str(&results).unwrap_or_default())
}

fn broken(results: &Value) -> Vec<&Value> {
    let cases = results["cases"].as_array().expect("there are cases").iter();
    let checks = cases.flat_map(|case| case["checks"].as_array().into_iter().flatten());
    checks.filter(|check| check["outcome"] == "broken").collect()
}

pub fn correct_adapter_never_fails_on_overloaded_machine() {
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("right");
    let (status, results) = starve(start(&out, &format!("'{REFERENCE}'")), &out);
    assert!(matches!(status, Some(0 | INCONCLUSIVE)), "{status:?}: {results}");
    assert!(broken(&results).is_empty(), "{results}");
}

pub fn message_loss_on_overloaded_machine_is_inconclusive() {
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("wrong");
    let (status, results) = starve(start(&out, &format!("'{REFERENCE}' --mutant drop")), &out);
    assert_eq!(status, Some(INCONCLUSIVE), "{results}");
    assert!(broken(&results).is_empty(), "{results}");
    let why = results["cases"][0].to_string();
    assert!(why.contains("--deadline") && why.contains("machine"), "{why}");
}
