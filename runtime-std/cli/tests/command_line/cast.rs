//! `tramontane cast`: members as filters, in separate processes.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{LONG, ProgramEnd, RunningProgram, TestFolder, wait_for};
use rustix::process::Signal;
use serde_json::Value;

#[track_caller]
fn cast(place: &TestFolder, group: &str, id: u32, nodes: u32, more: &[&str]) -> RunningProgram {
    let (id, nodes) = (id.to_string(), nodes.to_string());
    place.start(&[&["cast", "--group", group, "--id", &id, "--nodes", &nodes], more].concat())
}

/// Runs one member per input. Returns their results, in the order of their ids.
#[track_caller]
fn cast_all(place: &TestFolder, more: &[&str], inputs: &[Vec<u8>]) -> Vec<ProgramEnd> {
    let nodes = u32::try_from(inputs.len()).expect("few");
    let members: Vec<RunningProgram> =
        (0..nodes).map(|id| cast(place, "all", id, nodes, more)).collect();
    // Each input is written in a separate thread, because a member reads no more than the others
    // deliver.
    let feeders: Vec<_> = members
        .into_iter()
        .zip(inputs)
        .map(|(mut member, input)| {
            let input = input.clone();
            std::thread::spawn(move || {
                member.write(&input);
                member.wait()
            })
        })
        .collect();
    feeders.into_iter().map(|feeder| feeder.join().expect("no panic")).collect()
}

/// Starts members that have all joined, with their inputs open.
#[track_caller]
fn running(place: &TestFolder, group: &str, nodes: u32) -> Vec<RunningProgram> {
    let mut members: Vec<RunningProgram> =
        (0..nodes).map(|id| cast(place, group, id, nodes, &[])).collect();
    members[0].write(b"hello\n");
    members.iter().for_each(|member| member.await_output(b"hello\n"));
    members
}

fn numbered(id: usize, count: usize) -> Vec<u8> {
    (0..count).map(|number| format!("{id} {number}\n")).collect::<String>().into_bytes()
}

#[test]
fn three_members_print_the_same_merged_output() {
    let place = TestFolder::new();
    // The window wraps many times, and inputs of very different lengths mix.
    let inputs = [numbered(0, 20_000), numbered(1, 3), numbered(2, 5_000)];
    let outputs: Vec<Vec<u8>> = cast_all(&place, &["--window", "16"], &inputs)
        .into_iter()
        .map(ProgramEnd::succeeded)
        .collect();
    assert!(outputs[1] == outputs[0] && outputs[2] == outputs[0], "the outputs differ");
    for (id, input) in inputs.iter().enumerate() {
        let mark = format!("{id} ").into_bytes();
        let lines = outputs[0].split_inclusive(|byte| *byte == b'\n');
        let own: Vec<u8> =
            lines.filter(|line| line.starts_with(&mark)).flatten().copied().collect();
        assert!(own == *input, "the records of member {id} are not in its order, or not all there");
    }
    assert_eq!(outputs[0].len(), inputs.iter().map(Vec::len).sum::<usize>());
    place.assert_empty();
}

#[test]
fn record_may_contain_any_bytes() {
    let place = TestFolder::new();
    let input = b"first\n\n\xff\xfe\0\r\n\nlast".to_vec();
    for output in cast_all(&place, &[], &[input.clone(), Vec::new()]) {
        assert_eq!(output.succeeded(), [&input[..], b"\n"].concat());
    }
    for output in cast_all(&place, &["--format", "jsonl"], &[input.clone(), Vec::new()]) {
        let output = String::from_utf8(output.succeeded()).expect("text");
        let lines: Vec<Value> =
            output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let records: Vec<(&str, &str)> = lines
            .iter()
            .map(|line| {
                let record = line.as_object().expect("an object");
                assert_eq!((record.len(), &line["sender"]), (3, &Value::from(0)));
                let key = if record.contains_key("text") { "text" } else { "base64" };
                (key, line[key].as_str().expect("a string"))
            })
            .collect();
        let expected = [
            ("text", "first"),
            ("text", ""),
            ("base64", "//4ADQ=="),
            ("text", ""),
            ("text", "last"),
        ];
        assert_eq!(records, expected);
        let places: Vec<u64> =
            lines.iter().map(|line| line["place"].as_u64().expect("a place")).collect();
        assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
    }
    place.assert_empty();
}

#[test]
fn single_record_is_printed_at_once() {
    let place = TestFolder::new();
    let seen = place.path().join("seen");
    let mut command = place.command(&["cast", "--group", "prompt", "--id", "0", "--nodes", "1"]);
    let file = std::fs::File::create(&seen).expect("a file");
    let mut member = command.stdin(Stdio::piped()).stdout(file).spawn().expect("a process");
    let mut input = member.stdin.take().expect("an input");
    // The input stays open, but nothing more is written to it.
    std::io::Write::write_all(&mut input, b"now\n").expect("it reads");
    wait_for("the record", || {
        (std::fs::read(&seen).is_ok_and(|seen| seen == b"now\n")).then_some(())
    });
    drop(input);
    assert!(member.wait().expect("an end").success());
    place.assert_empty();
}

#[test]
fn member_stays_until_every_input_ended() {
    let place = TestFolder::new();
    let mut members = running(&place, "stay", 3);
    members[0].end_input();
    members[2].end_input();
    std::thread::sleep(Duration::from_millis(500));
    assert!(members.iter_mut().all(RunningProgram::is_running));
    members[1].write(b"late\n");
    members[1].end_input();
    for mut member in members {
        assert_eq!(member.wait_with_input().succeeded(), b"hello\nlate\n");
    }
    place.assert_empty();
}

#[test]
fn all_survivors_name_killed_member() {
    let place = TestFolder::new();
    let mut members = running(&place, "killed", 3);
    let killed = Instant::now();
    members[1].signal(Signal::KILL);
    for id in [0, 2] {
        let ended = members[id].wait_with_input();
        ended.failed(6, &["member 1 is lost", "its process ended"]);
        assert_eq!(ended.output, b"hello\n");
    }
    // The members notice the peer's exit rather than its silence.
    assert!(killed.elapsed() < LONG / 4, "{:?}", killed.elapsed());
    place.assert_empty();
}

#[test]
fn interrupted_member_leaves_the_group() {
    let place = TestFolder::new();
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut members = running(&place, "left", 3);
        // A repeated signal makes no difference.
        members[2].signal(signal);
        members[2].signal(signal);
        let ended = members[2].wait_with_input();
        assert_eq!((ended.status.code(), ended.errors.as_str()), (Some(status), ""));
        for id in [0, 1] {
            members[id].wait_with_input().failed(6, &["member 2 is lost", "it left"]);
        }
        place.assert_empty();
    }
}

#[test]
fn member_interrupted_while_waiting_leaves_no_files() {
    let place = TestFolder::new();
    let mut alone = cast(&place, "waiting", 0, 2, &[]);
    wait_for("it", || (place.members() == 1).then_some(()));
    alone.signal(Signal::INT);
    assert_eq!(alone.wait_with_input().status.code(), Some(130));
    place.assert_empty();
}

#[test]
fn cast_continues_after_too_long_line() {
    let place = TestFolder::new();
    let members: Vec<RunningProgram> =
        (0..2).map(|id| cast(&place, "large", id, 2, &["--message-max", "5"])).collect();
    let [mut one, mut other] =
        <[RunningProgram; 2]>::try_from(members).unwrap_or_else(|_| panic!("two"));
    other.write(b"12345\n");
    one.write(b"first\n123456\nlater\n");
    one.end_input();
    other.end_input();
    let (one, other) = (one.wait(), other.wait());
    one.failed(3, &["line 2 of the input", "5 bytes", "--message-max"]);
    let output = String::from_utf8(other.succeeded()).expect("text");
    assert_eq!(output.as_bytes(), one.output);
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["12345", "first", "later"]);
    place.assert_empty();
}

#[test]
fn cast_reports_invalid_groups() {
    let place = TestFolder::new();
    cast(&place, "late", 0, 3, &["--join-timeout", "0.3"])
        .wait()
        .failed(5, &["members 1, 2 could not be reached"]);
    place.assert_empty();
    cast(&place, "a/b", 0, 1, &[]).wait().failed(2, &["--group"]);
    cast(&place, "few", 3, 3, &[]).wait().failed(2, &["member 3 is not in a group of 3"]);
    cast(&place, "big", 0, 1, &["--message-max", "268435456"]).wait().failed(2, &["268435455"]);
    place.run(&["cast", "--id", "0"]).failed(2, &["--group"]);

    let mut members = running(&place, "twice", 2);
    cast(&place, "twice", 1, 2, &[]).wait().failed(5, &["member 1", "is already running"]);
    members.iter_mut().for_each(RunningProgram::end_input);
    for mut member in members {
        member.wait_with_input().succeeded();
    }

    let mut small = cast(&place, "unlike", 0, 2, &["--window", "3"]);
    let mut large = cast(&place, "unlike", 1, 2, &["--window", "4"]);
    small.wait_with_input().failed(5, &["a different configuration"]);
    large.wait_with_input().failed(5, &["a different configuration"]);
    place.assert_empty();
}

#[test]
fn member_exits_silently_when_its_output_closes() {
    let place = TestFolder::new();
    let mut command = place.command(&["cast", "--group", "head", "--id", "0", "--nodes", "1"]);
    let mut member = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    drop(member.stdout.take());
    let mut input = member.stdin.take().expect("an input");
    // The member may have exited before everything is written.
    let _ = std::io::Write::write_all(&mut input, &numbered(0, 1000));
    let ended = member.wait_with_output().expect("an end");
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(141), 0));
    place.assert_empty();
}

#[test]
fn cast_reports_full_disk() {
    let place = TestFolder::new();
    let mut command = place.command(&["cast", "--group", "full", "--id", "0", "--nodes", "1"]);
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let member = command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn();
    let mut member = member.expect("a process");
    let mut input = member.stdin.take().expect("an input");
    std::io::Write::write_all(&mut input, b"a\n").expect("it reads");
    let ended = member.wait_with_output().expect("an end");
    drop(input);
    assert_eq!(ended.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("No space left"), "{ended:?}");
    place.assert_empty();
}

#[test]
fn member_with_unread_output_can_be_interrupted() {
    let place = TestFolder::new();
    let mut command = place.command(&["cast", "--group", "stuck", "--id", "0", "--nodes", "1"]);
    let mut member =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
    let mut input = member.stdin.take().expect("an input");
    let feeder = std::thread::spawn(move || {
        let block = vec![b'x'; 10_000];
        // The lines are far more than all buffers hold. The write fails when the member exits.
        for _ in 0..10_000 {
            if std::io::Write::write_all(&mut input, &block)
                .and_then(|()| std::io::Write::write_all(&mut input, b"\n"))
                .is_err()
            {
                return;
            }
        }
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(member.try_wait().expect("a status").is_none());
    crate::support::send(member.id(), Signal::INT);
    assert_eq!(member.wait().expect("an end").code(), Some(130));
    feeder.join().expect("no panic");
    place.assert_empty();
}
