//! The driver against adapters that misbehave, and against a correct one. Whatever a member does, a
//! run ends with a case that names the problem, and no process of it keeps running.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane_conformance::check::CheckId;
use tramontane_conformance::drive::{Interrupts, RunOptions, drive};
use tramontane_conformance::history::{Event, Reader};
use tramontane_conformance::report::{Case, CaseStatus, Run};

const REFERENCE: &str = env!("CARGO_BIN_EXE_tramontane-reference");

/// Returns the command of an adapter that misbehaves in this way.
fn bad(way: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driven/bad_adapters/adapter.sh");
    format!("sh {} {way}", shell_words::quote(&script.to_string_lossy()))
}

struct Driven {
    run: Run,
    folder: TempDir,
}

/// Runs scenarios with this number of nodes.
fn driven(adapter: &str, nodes: usize, scenarios: &[&str], deadline: Duration) -> Driven {
    driven_at(adapter, &[], nodes, scenarios, deadline)
}

/// Runs scenarios on named hosts.
fn driven_at(
    adapter: &str,
    hosts: &[&str],
    nodes: usize,
    scenarios: &[&str],
    deadline: Duration,
) -> Driven {
    let folder = tempfile::tempdir().expect("a folder");
    let options = RunOptions {
        adapter: adapter.to_owned(),
        hosts: hosts.iter().map(ToString::to_string).collect(),
        nodes,
        scenarios: scenarios.iter().map(ToString::to_string).collect(),
        program: "tramontane-conformance".to_owned(),
        seed: 7,
        repeat: 1,
        soak: None,
        until_failed: false,
        rounds_max: usize::MAX,
        require: Vec::new(),
        faults: None,
        deadline,
        messages: 40,
        output: folder.path().to_owned(),
    };
    let run = drive(&options, &Interrupts::default(), &|_| {}).expect("a run").run;
    Driven { run, folder }
}

/// Runs the calmest scenario with one misbehaving member. If the driver reports that the machine
/// was too slow for a deadline, the scenario is repeated with twice the deadline.
fn bad_case(way: &str) -> Case {
    for doubled in 0..7 {
        let driven = driven(&bad(way), 1, &["one-sender"], Duration::from_secs(2 << doubled));
        assert_gone(driven.folder.path(), "one-sender");
        let case = driven.run.cases.into_iter().next().expect("one scenario is one case");
        if !matches!(case.status, CaseStatus::Inconclusive(_)) {
            return case;
        }
    }
    panic!("{way}: this machine is too busy for a deadline of two minutes");
}

/// Returns the process ids that members wrote into their logs.
fn pids(folder: &Path, scenario: &str) -> Vec<u32> {
    let logs = fs::read_dir(folder.join(scenario)).into_iter().flatten().flatten();
    let logs = logs
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"));
    logs.filter_map(|path| fs::read(path).ok())
        .flat_map(|log| {
            String::from_utf8_lossy(&log)
                .lines()
                .filter_map(|line| line.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

fn assert_gone(folder: &Path, scenario: &str) {
    let pids = pids(folder, scenario);
    assert!(!pids.is_empty(), "the members gave their process ids");
    let until = Instant::now() + Duration::from_secs(20);
    while pids.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
        assert!(Instant::now() < until, "a member is left: {pids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn assert_broken(way: &str, parts: &[&str]) {
    let case = bad_case(way);
    let CaseStatus::Broken(what) = &case.status else { panic!("{way}: {:?}", case.status) };
    assert!(what.starts_with("n0"), "{way}: which member: {what}");
    for part in parts {
        assert!(what.contains(part), "{way}: {part} in {what}");
    }
    assert!(case.verdict.is_none(), "{way}: no verdict on the system");
}

/// Checks that the case is a broken promise of the system, and not a broken adapter.
fn assert_failed(way: &str, check: CheckId) {
    let case = bad_case(way);
    assert_eq!(case.status, CaseStatus::Failed, "{way}: {:?}", case.notes);
    let verdict = case.verdict.expect("it was judged");
    let outcome = &verdict.of(check).outcome;
    assert!(
        matches!(outcome, tramontane_conformance::check::Outcome::Broken { .. }),
        "{way}: {check} {outcome:?}"
    );
}

pub fn correct_script_adapter_passes() {
    let case = bad_case("good");
    assert_eq!(case.status, CaseStatus::Passed, "{:?}", case.notes);
    assert!(case.reached.iter().all(|(_, reached)| *reached));
}

pub fn request_to_stop_is_recorded_before_the_end() {
    let driven = driven(&bad("good"), 1, &["one-sender"], Duration::from_secs(2));
    let history = fs::read(driven.folder.path().join("one-sender/history.jsonl"));
    let history = history.expect("there is a history");
    let mut reader = Reader::new(&*history);
    let mut stopped = false;
    while let Some((_, event)) = reader.next_event().expect("it is a history") {
        stopped |= matches!(event, Event::Stop { .. });
        assert!(stopped || !matches!(event, Event::End { .. }), "it ended as it was asked to");
    }
    assert!(stopped);
}

pub fn helper_processes_end_with_their_case() {
    assert_eq!(bad_case("helper").status, CaseStatus::Passed);
}

pub fn failed_case_prints_the_command_that_repeats_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_tramontane-conformance");
    let run = |arguments: &[String]| {
        let output = Command::new(program).args(arguments).current_dir(folder.path()).output();
        let output = output.expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let words = ["run", "--nodes", "1", "--scenario", "bursts", "--scenario", "one-sender"];
    let words = words.iter().chain(&["--seed", "3", "--output", "first", "--adapter"]);
    let arguments = words.map(ToString::to_string).chain([bad("gives-up")]);
    let (code, told) = run(&arguments.collect::<Vec<String>>());
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("  seed 3, history first/one-sender/history.jsonl\n"), "{told}");
    let mut again = told.lines().filter_map(|line| line.trim_start().strip_prefix("again: "));
    let again = again.next_back();
    let again = shell_words::split(again.expect("there is a command")).expect("it has words");
    assert_eq!(again[0], program);
    let (code, told) = run(&again[1..]);
    assert_eq!(code, Some(1), "{told}");
    let page = fs::read_to_string(folder.path().join("first/report.html")).expect("a page");
    let here = folder.path().to_string_lossy().into_owned();
    for path in [&here, env!("CARGO_MANIFEST_DIR")] {
        assert!(!page.contains(path), "{path} is in the page");
    }
    assert!(page.contains("one-sender/history.jsonl") && page.contains("again: "));
}

pub fn invalid_protocol_line_is_quoted_with_its_number() {
    assert_broken("garbage", &["line 1", "not a JSON object", "hello, world"]);
    assert_broken("wrong-type", &["line 2", "integer `7`"]);
    assert_broken("unknown-type", &["line 2", "applause"]);
    assert_broken("not-utf8", &["line 2", "not valid UTF-8 at byte 9"]);
    assert_broken("unasked", &["line 2", "without an open request"]);
    assert_broken("unknown-group", &["line 2", "no such group", "g7"]);
}

pub fn prematurely_ended_adapter_output_is_reported() {
    assert_broken("half-a-line", &["line 1", "cut off", "init_ok"]);
    assert_broken("exit-later", &["exit status: 0", "without a `halt` line"]);
    assert_broken("closed", &["its output ended, but its process did not"]);
    let case = bad_case("exit-at-once");
    let CaseStatus::Broken(what) = &case.status else { panic!("{:?}", case.status) };
    assert!(what.starts_with("n0: its process ended with exit status: 3"), "{what}");
    assert!(case.notes.iter().any(|note| note.contains("no licence found")), "{:?}", case.notes);
}

pub fn silent_adapter_is_awaited_only_until_deadline() {
    let began = Instant::now();
    assert_broken("nothing", &["did not answer `init` within"]);
    // The run must end, and the deadline must be what ends it.
    assert!(began.elapsed() >= Duration::from_secs(2));
}

/// No message or view can arrive from members that have all ended, however long the deadline.
pub fn run_ends_when_all_members_have_ended() {
    let day = Duration::from_secs(86_400);
    let driven = driven(&bad("gives-up-in-view"), 1, &["one-sender"], day);
    let notes = &driven.run.cases[0].notes;
    assert!(notes.iter().any(|note| note.contains("when all members had ended")), "{notes:?}");
}

pub fn excessive_adapter_output_ends_the_case() {
    assert_broken("endless-line", &["line 1", "longer than 1 MiB", "xxx"]);
    // The flood proves that the adapter is broken, but the deliveries claimed before it already
    // break a promise.
    let case = bad_case("endless-lines");
    assert_eq!(case.status, CaseStatus::Failed);
    assert!(
        case.notes.iter().any(|note| note.contains("writes output without end")),
        "{:?}",
        case.notes
    );
}

pub fn endless_adapter_log_is_truncated_without_failing_case() {
    let driven = driven(&bad("endless-log"), 1, &["one-sender"], Duration::from_secs(20));
    let case = &driven.run.cases[0];
    assert_eq!(case.status, CaseStatus::Passed, "{:?}", case.notes);
    let log = driven.folder.path().join("one-sender/n0.log");
    assert!(fs::metadata(log).expect("a log").len() < 17 << 20);
}

pub fn log_of_exited_member_is_complete() {
    for _ in 0..20 {
        let driven = driven(&bad("last-words"), 1, &["one-sender"], Duration::from_secs(2));
        let log = fs::read(driven.folder.path().join("one-sender/n0.log")).expect("a log");
        assert_eq!(log.iter().filter(|byte| **byte == b'x').count(), 60_000);
    }
}

pub fn system_violations_are_reported_by_the_checker() {
    assert_failed("unknown-message", CheckId::IntegritySent);
    assert_failed("null", CheckId::NullsInvisible);
    assert_failed("gives-up", CheckId::Liveness);
    assert_failed("hang-at-stop", CheckId::Liveness);
    assert_failed("deaf", CheckId::Liveness);
}

pub fn harmless_adapter_oddities_are_only_noted() {
    let case = bad_case("lingering");
    assert_eq!(case.status, CaseStatus::Passed);
    assert!(case.notes.iter().any(|note| note.contains("did not end")), "{:?}", case.notes);
    assert_eq!(bad_case("child-holds-on").status, CaseStatus::Passed);
}

pub fn scenario_with_missing_feature_is_unsupported() {
    let case = bad_case("cannot-start");
    assert!(matches!(&case.status, CaseStatus::Unsupported(why) if why.contains("not today")));
    // This adapter claims no feature.
    let run =
        driven(&bad("good"), 3, &["kill-sender", "partition", "quiet"], Duration::from_secs(2)).run;
    let lacking: Vec<_> = run.cases.iter().map(|case| case.status.reason().unwrap_or("")).collect();
    assert_eq!(lacking, ["crash", "network", "stats"]);
    // There are too few nodes.
    let run = driven(REFERENCE, 2, &["kill-sender"], Duration::from_secs(2)).run;
    assert!(
        matches!(&run.cases[0].status, CaseStatus::Unsupported(why) if why.contains("3 nodes"))
    );
}

/// The adapter claims the feature `pause`, but answers the command as unsupported.
pub fn claimed_feature_reported_as_unsupported_is_broken() {
    let slow = |way| driven(&bad(way), 2, &["slow-consumer"], Duration::from_secs(2)).run.cases;
    let case = slow("no-pause-undelivered").remove(0);
    let CaseStatus::Broken(what) = &case.status else { panic!("{:?}", case.status) };
    assert!(what.contains("no hurry") && what.contains("claims pause"), "{what}");
    // The deliveries before that are judged.
    let case = slow("no-pause-null").remove(0);
    assert_eq!(case.status, CaseStatus::Failed, "{:?}", case.notes);
    assert!(case.notes.iter().any(|note| note.contains("claims pause")), "{:?}", case.notes);
}

/// Returns the requests to each node and the faults at each node, in order.
fn commands(folder: &Path, scenario: &str, nodes: usize) -> (Vec<Vec<String>>, Vec<String>) {
    let history = fs::File::open(folder.join(scenario).join("history.jsonl")).expect("a history");
    let mut reader = Reader::new(std::io::BufReader::new(history));
    let (mut sent, mut faults) = (vec![Vec::new(); nodes], Vec::new());
    while let Some((_, event)) = reader.next_event().expect("a whole history") {
        match event {
            Event::Multicast { node, msg, groups, bytes, .. } => {
                let node: usize = node[1..].parse().expect("a number");
                sent[node].push(format!("{msg} to {groups:?} with {bytes:?}"));
            }
            Event::Fault { kind, nodes, .. } => faults.push(format!("{kind:?} {nodes:?}")),
            _ => {}
        }
    }
    (sent, faults)
}

pub fn seed_determines_the_driver_commands() {
    let scenarios =
        ["kill-sender", "kill-during-leave", "restart-all", "across-groups", "stop-continue"];
    let first = driven(REFERENCE, 4, &scenarios, Duration::from_secs(30));
    let second = driven(REFERENCE, 4, &scenarios, Duration::from_secs(30));
    for scenario in scenarios {
        let commands = |driven: &Driven| commands(driven.folder.path(), scenario, 4);
        assert_eq!(commands(&first), commands(&second), "{scenario}");
        assert!(commands(&first).0.iter().any(|sent| !sent.is_empty()), "{scenario}");
    }
}

pub fn each_node_gets_its_own_command_and_address() {
    let reference = shell_words::quote(REFERENCE).into_owned();
    // The wrapper stores its input, and then runs the correct program.
    let script =
        format!("echo node {{node}} host {{host}} >&2; exec tee /dev/stderr | {reference}");
    let adapter = format!("sh -c {}", shell_words::quote(&script));
    let hosts = ["127.0.0.2", "127.0.0.3"];
    let driven = driven_at(&adapter, &hosts, 3, &["one-sender"], Duration::from_secs(30));
    // A busy machine may have been too slow for this, but the members were started.
    let status = &driven.run.cases[0].status;
    assert!(matches!(status, CaseStatus::Passed | CaseStatus::Inconclusive(_)), "{status:?}");
    for (node, host) in ["127.0.0.2", "127.0.0.3", "127.0.0.2"].into_iter().enumerate() {
        let log = driven.folder.path().join(format!("one-sender/n{node}.log"));
        let log = fs::read_to_string(log).expect("there is a log");
        assert!(log.contains(&format!("node n{node} host {host}\n")), "{log}");
        assert!(log.contains(&format!(r#"{{"node":"n{node}","address":"{host}"}}"#)), "{log}");
    }
}

/// Starts the program itself, with a member that never exits on its own.
fn start_program(folder: &Path, way: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tramontane-conformance"));
    command.args([
        "run",
        "--nodes",
        "2",
        "--scenario",
        "all-senders",
        "--deadline",
        "600",
        "--adapter",
    ]);
    command.arg(bad(way)).arg("--output").arg(folder);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
}

fn await_members(folder: &Path, count: usize) {
    let until = Instant::now() + Duration::from_secs(60);
    while pids(folder, "all-senders").len() < count {
        assert!(Instant::now() < until, "no members came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    let killed = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

pub fn driver_leaves_no_member_process_when_it_ends() {
    for (name, code) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = start_program(folder.path(), "nothing");
        await_members(folder.path(), 2);
        signal(&program, name);
        let status: ExitStatus = program.wait().expect("it was started");
        assert_eq!(status.code(), code, "{name}");
        assert_gone(folder.path(), "all-senders");
    }
}

pub fn interrupted_run_reports_scenarios_judged_so_far() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tramontane-conformance"));
    command.args(["run", "--nodes", "2", "--scenario", "one-sender", "--scenario", "all-senders"]);
    command
        .args(["--messages", "20000", "--deadline", "600", "--adapter", REFERENCE, "--output"])
        .arg(folder.path());
    let mut program =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
    while !folder.path().join("all-senders").exists() {
        let ended = program.try_wait().expect("it was started");
        assert_eq!(ended, None, "the second scenario did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&program, "INT");
    let output = program.wait_with_output().expect("it was started");
    assert_eq!(output.status.code(), Some(130));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("interrupted by signal 2") && !told.contains("PASSED"), "{told}");
    let results = fs::read(folder.path().join("results.json")).expect("a report");
    let results: serde_json::Value = serde_json::from_slice(&results).expect("JSON");
    let names: Vec<_> =
        results["cases"].as_array().expect("cases").iter().map(|case| &case["name"]).collect();
    assert_eq!(names, ["one-sender"]);
    // Scenarios that were not run were not shown to hold.
    assert_eq!(results["status"], "inconclusive");
    assert_eq!(results["cut_short"]["not_run"], serde_json::json!(["all-senders"]));
}

pub fn run_exits_with_3_if_adapter_is_broken() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tramontane-conformance"));
    command.args(["run", "--nodes", "1", "--scenario", "one-sender", "--adapter"]);
    command.arg(bad("garbage")).arg("--output").arg(folder.path());
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("one-sender") && told.contains("not a JSON object"), "{told}");
}

pub fn claimed_feature_without_evidence_marks_adapter_broken() {
    for (way, feature) in [("claims-views", "view"), ("claims-durable", "durable")] {
        let case = bad_case(way);
        let line = format!("no member wrote a `{feature}` line");
        assert!(
            matches!(&case.status, CaseStatus::Broken(what) if what.contains(&line)),
            "{way}: {:?}",
            case.status
        );
    }
    assert_broken("claims-nonsense", &["line 1", "durabel", "unknown feature"]);
}

/// The second member has another name and claims less.
pub fn members_of_different_systems_are_broken() {
    let script = format!(
        "if [ {{node}} = n1 ]; then exec {}; fi; exec {}",
        bad("no-pause-null"),
        bad("good")
    );
    let adapter = format!("sh -c {}", shell_words::quote(&script));
    let run = driven(&adapter, 2, &["one-sender"], Duration::from_secs(5)).run;
    let case = &run.cases[0];
    let told = || case.status.reason().into_iter().chain(case.notes.iter().map(String::as_str));
    assert!(
        told().any(|why| why.contains("other features than the first member")),
        "{:?}",
        case.status
    );
}

pub fn first_broken_adapter_ends_a_run_until_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tramontane-conformance"));
    command.args(["run", "--nodes", "1", "--repeat", "3", "--until-failed", "--adapter"]);
    command.arg(bad("garbage")).args(["--scenario", "one-sender", "--output"]).arg(folder.path());
    assert_eq!(command.output().expect("the program starts").status.code(), Some(3));
    let results = fs::read(folder.path().join("results.json")).expect("a report");
    let results: serde_json::Value = serde_json::from_slice(&results).expect("JSON");
    assert_eq!(results["cases"].as_array().expect("cases").len(), 1);
}

/// One member delivers, but never reports that its deliveries are durable.
pub fn each_member_must_report_claimed_durability() {
    let reference = shell_words::quote(REFERENCE).into_owned();
    let silent = r#"grep --line-buffered -v '"type":"durable"'"#;
    let script =
        format!("if [ {{node}} = n1 ]; then {reference} | {silent}; else exec {reference}; fi");
    let adapter = format!("sh -c {}", shell_words::quote(&script));
    let run = driven(&adapter, 3, &["one-sender", "restart"], Duration::from_secs(5)).run;
    for case in &run.cases {
        // A busy machine may have been too slow for the deadline.
        let CaseStatus::Broken(what) = &case.status else {
            assert!(matches!(case.status, CaseStatus::Inconclusive(_)), "{:?}", case.status);
            continue;
        };
        assert!(what.contains("claims durable, but n1 delivered messages"), "{what}");
    }
}

pub fn note_names_the_unanswered_multicast() {
    let case = bad_case("no-answer");
    assert_eq!(case.status, CaseStatus::Failed, "{:?}", case.notes);
    let named = |note: &String| note.contains("n0 had not answered the multicast of n0/1/");
    assert!(case.notes.iter().any(named), "{:?}", case.notes);
}

pub fn driver_refuses_and_preserves_a_foreign_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let file: PathBuf = folder.path().join("thesis.txt");
    fs::write(&file, "years of work").expect("written");
    let mut program = start_program(folder.path(), "good");
    assert_eq!(program.wait().expect("it was started").code(), Some(64));
    assert_eq!(fs::read_to_string(&file).expect("still there"), "years of work");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}
