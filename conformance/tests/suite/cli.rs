//! The command line as users see it: real processes, their exit statuses, and their output.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A history that breaks total order on line 9.
const BAD: &str = "bad/total-order-two-orders";
/// A history that breaks no promise.
const GOOD: &str = "good/suspended";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../fixtures/histories/{name}.jsonl"))
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tramontane-conformance"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").stdin(Stdio::null());
    command
}

/// The result of a command.
struct CommandResult {
    status: Option<i32>,
    out: String,
    error: String,
}

impl From<Output> for CommandResult {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("what is said is UTF-8");
        Self { status: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
    }
}

fn tell<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> CommandResult {
    command().args(arguments).output().expect("the program starts").into()
}

/// Judges these histories, with options before them.
fn check(options: &[&str], histories: &[&Path]) -> CommandResult {
    let mut command = command();
    command.arg("check").args(options).args(histories);
    command.output().expect("the program starts").into()
}

/// Writes a history of these bytes, in a folder that is removed when the first returned value is
/// dropped.
fn history(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.jsonl");
    fs::write(&path, bytes).expect("written");
    (folder, path)
}

/// Checks that an error is one line that names the program and the remedy.
fn assert_one_line(error: &str, parts: &[&str]) {
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("tramontane-conformance: ") && error.contains("; "), "{error}");
    for part in parts {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn bad_history_fails_and_report_names_witnesses() {
    let good = check(&[], &[&fixture(GOOD)]);
    assert_eq!(good.status, Some(0), "{}{}", good.out, good.error);
    assert!(good.out.contains("PASSED") && good.error.is_empty(), "{}{}", good.out, good.error);

    let bad = check(&[], &[&fixture(BAD)]);
    assert_eq!(bad.status, Some(1), "{}{}", bad.out, bad.error);
    assert!(bad.out.contains("total-order (must) is broken"), "{}", bad.out);
    assert!(
        bad.out.contains("line 9: ") && bad.out.contains(r#"{"ev":"deliver","t_ns":80"#),
        "{}",
        bad.out
    );
    assert!(
        bad.out.contains("(culprit)") && bad.out.contains("judged 11 events in "),
        "{}",
        bad.out
    );
}

#[test]
fn violated_recommended_promise_exits_with_status_0() {
    let told = check(&[], &[&fixture("bad/view-majority-alone")]);
    assert_eq!(told.status, Some(0), "{}", told.out);
    assert!(told.out.contains("view-majority (should) is broken"), "{}", told.out);
    assert!(told.out.contains("one recommended promise is broken"), "{}", told.out);
}

#[test]
fn history_without_cases_is_inconclusive() {
    for name in ["good/empty", "good/cut-short"] {
        let told = check(&[], &[&fixture(name)]);
        assert_eq!(told.status, Some(2), "{name}: {}{}", told.out, told.error);
        assert!(told.out.contains("INCONCLUSIVE"), "{}", told.out);
    }
}

#[test]
fn worst_history_determines_the_exit_status() {
    let (good, bad, open) = (fixture(GOOD), fixture(BAD), fixture("good/empty"));
    let missing = Path::new("/nowhere/at/all.jsonl");
    for (histories, status) in [
        (vec![&*good, &*good], 0),
        (vec![&*good, &*open], 2),
        (vec![&*open, missing, &*good], 3),
        (vec![missing, &*bad, &*open], 1),
    ] {
        assert_eq!(check(&[], &histories).status, Some(status), "{histories:?}");
    }
    let told = check(&[], &[missing, &bad]);
    assert_one_line(&told.error, &["/nowhere/at/all.jsonl", "no such file"]);
    assert!(told.out.contains("total-order (must) is broken"), "the other is judged: {}", told.out);
}

#[test]
fn invalid_history_error_names_the_line() {
    let start = br#"{"ev":"start","t_ns":1,"node":"a","inc":1}"#;
    let deep = "[".repeat(100_000);
    let long = "x".repeat(3 << 20);
    for (bytes, parts) in [
        (b"garbage\n".to_vec(), &["line 1", "check that the file is a history"][..]),
        (vec![0; 5000], &["line 1"]),
        (deep.into_bytes(), &["line 1"]),
        (long.into_bytes(), &["line 1", "longer than"]),
        ([start, b"\n\xff\xfe\n" as &[u8]].concat(), &["line 2", "UTF-8"]),
        (
            [start, b"\n{\"ev\":\"start\",\"node\":\"b\",\"inc\":1}\n" as &[u8]].concat(),
            &["line 2", "t_ns"],
        ),
    ] {
        let (_folder, path) = history(&bytes);
        let told = check(&[], &[&path]);
        // A last line without a line feed may be cut. In this case there is nothing to judge, and
        // no error.
        if bytes.ends_with(b"\n") || bytes.len() > 1 << 20 {
            assert_eq!(told.status, Some(3), "{}{}", told.out, told.error);
            assert_one_line(&told.error, parts);
            assert!(told.out.is_empty(), "{}", told.out);
        } else {
            assert!(matches!(told.status, Some(2 | 3)), "{}{}", told.out, told.error);
        }
    }
}

#[test]
fn unreadable_file_is_reported_on_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = check(&[], &[&folder.path().join("missing")]);
    assert_eq!(missing.status, Some(3));
    assert_one_line(&missing.error, &["no such file", "check the path"]);

    let directory = check(&["--quiet"], &[folder.path()]);
    assert_eq!(directory.status, Some(3));
    assert_one_line(&directory.error, &["this is a folder", "name the history files in it"]);
    assert!(directory.out.is_empty());

    let hostile = check(&[], &[&folder.path().join("a\nb\u{1b}[2J")]);
    assert_one_line(&hostile.error, &["a\\u{a}b\\u{1b}[2J"]);
}

#[test]
fn invalid_command_line_exits_with_status_64() {
    for arguments in [
        &[][..],
        &["check"],
        &["nonsense"],
        &["check", "x", "--nonsense"],
        &["--json"],
        &["check", "x", "--json", "-", "--html", "-"],
        &["run", "--nodes", "many"],
    ] {
        let told = tell(arguments);
        assert_eq!(told.status, Some(64), "{arguments:?}: {}{}", told.out, told.error);
        assert_one_line(&told.error, &[]);
        assert!(told.out.is_empty(), "{}", told.out);
    }
}

#[test]
fn help_shows_examples_and_exit_statuses() {
    for arguments in [&["--help"][..], &["check", "--help"], &["run", "--help"]] {
        let told = tell(arguments);
        assert_eq!(told.status, Some(0));
        assert!(told.error.is_empty());
        for part in [
            "Examples:\n  tramontane-conformance",
            "  0  every required promise holds",
            " 64  ",
            "130  ",
            "143  ",
        ] {
            assert!(told.out.contains(part), "{arguments:?} {part}: {}", told.out);
        }
    }
    assert!(tell(["--version"]).out.starts_with("tramontane-conformance "));
}

#[test]
fn checks_are_listed_with_their_promises() {
    let told = tell(["--list"]);
    assert_eq!(told.status, Some(0));
    assert!(told.out.contains("total-order (must)\n  Two members of a group"), "{}", told.out);
    assert!(told.out.contains("view-majority (should)"), "{}", told.out);

    let lists: Value = serde_json::from_str(&tell(["--list", "--json"]).out).expect("JSON");
    let checks = lists["checks"].as_array().expect("a list");
    for field in ["name", "strength", "sentence", "source"] {
        assert!(
            checks.iter().all(|check| check[field].as_str().is_some_and(|text| !text.is_empty())),
            "{field}"
        );
    }
    assert!(lists["scenarios"].is_array());
}

/// Returns the result of a check program on a valid history.
fn own_check(program: &str) -> CommandResult {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("check.sh");
    fs::write(&path, program).expect("written");
    let command = format!("sh {}", path.display());
    check(&["--check-program", &command], &[&fixture(GOOD)])
}

#[test]
fn user_supplied_check_program_is_run() {
    let held = own_check("test -s \"$1\"");
    assert_eq!(held.status, Some(0), "{}{}", held.out, held.error);

    let line = r#"{"what":"the bank lost money","lines":[2]}"#;
    let broken = own_check(&format!("echo '{line}'; echo '{line}'"));
    assert_eq!(broken.status, Some(1), "{}{}", broken.out, broken.error);
    for part in
        ["(user check) is broken 2 times", "the bank lost money", "line 2: named by the program"]
    {
        assert!(broken.out.contains(part), "{part}: {}", broken.out);
    }

    for (program, part) in
        [("exit 3", "exit status: 3"), ("echo nonsense", "does not describe a violation")]
    {
        let failed = own_check(program);
        assert_eq!(failed.status, Some(3), "{program}: {}{}", failed.out, failed.error);
        assert!(failed.error.contains(part), "{part}: {}", failed.error);
    }
}

#[test]
fn shared_cause_is_printed_once_with_count() {
    let bad = fixture(BAD);
    let told = check(&[], &[&bad, &bad, &bad]);
    let cause = told.out.lines().find(|line| line.contains("total-order is broken"));
    assert!(cause.is_some_and(|line| line.contains("in 3 cases")), "{}", told.out);
    assert_eq!(told.out.matches("promised:").count(), 1, "{}", told.out);
    assert_eq!(told.out.matches("as in ").count(), 2, "{}", told.out);
}

#[test]
fn reports_are_written_to_the_requested_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut command = command();
    command.arg("check").arg("--json").arg(path("a.json")).arg("--junit").arg(path("b.xml"));
    command.arg("--html").arg(path("c.html")).arg("-q").args([fixture(GOOD), fixture(BAD)]);
    let told = CommandResult::from(command.output().expect("the program starts"));
    assert_eq!(told.status, Some(1), "{}", told.error);
    assert!(told.out.is_empty() && told.error.is_empty(), "quiet: {}{}", told.out, told.error);

    let results = fs::read(path("a.json")).expect("it was written");
    let results: Value = serde_json::from_slice(&results).expect("JSON");
    assert_eq!(
        (&results["exit_status"], &results["cases"][1]["status"]),
        (&1.into(), &"failed".into())
    );
    let junit = fs::read_to_string(path("b.xml")).expect("it was written");
    let junit = quick_junit::Report::deserialize_from_str(&junit).expect("it is JUnit XML");
    assert_eq!((junit.failures, junit.errors, junit.test_suites.len()), (1, 0, 2));
    let page = fs::read_to_string(path("c.html")).expect("it was written");
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>") && page.contains("<svg")
    );
}

#[test]
fn dash_selects_standard_output_or_input() {
    let told = check(&["--json", "-"], &[&fixture(BAD)]);
    assert_eq!(told.status, Some(1));
    let results: Value = serde_json::from_str(&told.out).expect("nothing but JSON");
    assert_eq!(results["status"], "failed");

    let mut child = command();
    let mut child = child
        .args(["check", "--json", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(&fs::read(fixture(BAD)).expect("a fixture")).expect("it is read");
    drop(input);
    let told = CommandResult::from(child.wait_with_output().expect("it ends"));
    assert_eq!(told.status, Some(1));
    let results: Value = serde_json::from_str(&told.out).expect("JSON");
    assert_eq!(results["cases"][0]["name"], "standard input");
}

#[test]
fn history_from_a_pipe_is_judged() {
    let (_folder, path) = history(b"");
    fs::remove_file(&path).expect("there is none");
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo is everywhere");
    assert!(made.success());
    let child = command().args(["check", "--json", "-"]).arg(&path).stdout(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    // Opening waits until the program reads.
    let mut pipe = File::options().write(true).open(&path).expect("the other end opens");
    pipe.write_all(&fs::read(fixture(BAD)).expect("a fixture")).expect("it is read");
    drop(pipe);
    let told = CommandResult::from(
        child.wait_with_output().expect("it ends, and does not wait for a second reading"),
    );
    let results: Value = serde_json::from_str(&told.out).expect("JSON");
    assert_eq!((told.status, &results["status"]), (Some(1), &"failed".into()));
}

#[test]
fn unwritable_report_is_reported_without_hiding_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = folder.path().join("no/such/folder/x.json");
    let full = Path::new("/dev/full");
    for (target, part) in [
        (full, "free some space"),
        (&*nowhere, "create the folder first"),
        (folder.path(), "name a file"),
    ] {
        for (name, status) in [(GOOD, 3), (BAD, 1)] {
            for form in ["--json", "--junit", "--html"] {
                let mut command = command();
                command.arg("check").arg(form).arg(target).arg(fixture(name));
                let told = CommandResult::from(command.output().expect("the program starts"));
                assert_eq!(
                    told.status,
                    Some(status),
                    "{form} {}: {}",
                    target.display(),
                    told.error
                );
                assert_one_line(&told.error, &["cannot write", part]);
                assert!(told.out.contains("judged"), "the text is there: {}", told.out);
            }
        }
    }
}

#[test]
fn missing_report_folder_fails_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = command();
    command
        .args(["run", "--adapter", "/nowhere/adapter", "--nodes", "3", "--output"])
        .arg(folder.path());
    command.arg("--html").arg(folder.path().join("no/such/folder.html"));
    let told = CommandResult::from(command.output().expect("the program starts"));
    assert_eq!(told.status, Some(3));
    assert_one_line(
        &told.error,
        &["cannot write", "no/such/folder.html", "create the folder first"],
    );
}

#[test]
fn full_standard_output_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").expect("Linux has one");
    for arguments in
        [vec!["check".into(), fixture(GOOD)], vec!["--list".into()], vec!["--help".into()]]
    {
        let told = command().args(&arguments).stdout(full()).output();
        let told = CommandResult::from(told.expect("the program starts"));
        assert_eq!(told.status, Some(3), "{arguments:?}: {}", told.error);
        assert_one_line(&told.error, &["standard output", "free some space"]);
    }
    for (arguments, status) in [
        (vec!["check".into(), fixture(GOOD)], 0),
        (vec!["check".into(), fixture(BAD)], 1),
        (vec!["check".into(), "--json".into(), "-".into(), fixture(BAD)], 1),
        (vec!["--list".into()], 0),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let told = command().args(&arguments).stdout(writer).output();
        let told = CommandResult::from(told.expect("the program starts"));
        assert_eq!((told.status, &*told.error), (Some(status), ""), "{arguments:?}");
    }
}

#[test]
fn interrupted_check_exits_immediately() {
    let (_folder, path) = history(b"");
    fs::remove_file(&path).expect("there is none");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo is everywhere").success());
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        // The shell that runs the tests may ignore these signals, and the program keeps that
        // setting.
        let mut child = Command::new("env")
            .arg("--default-signal=INT,TERM")
            .arg(command().get_program())
            .arg("check")
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        // The program reads, but no data arrives because the pipe stays open.
        let pipe = File::options().write(true).open(&path).expect("the other end opens");
        let told =
            Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status();
        assert!(told.expect("kill is everywhere").success());
        let ended = child.wait().expect("it ends");
        drop(pipe);
        // A process killed by a signal has no exit status; a shell shows 128 plus the signal's
        // number.
        let shown = ended.code().or(ended.signal().map(|number| 128 + number));
        assert_eq!(shown, Some(status), "{ended}");
    }
}

#[test]
fn colours_are_printed_on_terminal_or_when_forced() {
    let plain = check(&[], &[&fixture(BAD)]);
    assert!(!plain.out.contains('\u{1b}'), "{}", plain.out);
    let forced = command().env("CLICOLOR_FORCE", "1").arg("check").arg(fixture(BAD)).output();
    assert!(CommandResult::from(forced.expect("the program starts")).out.contains('\u{1b}'));
}
