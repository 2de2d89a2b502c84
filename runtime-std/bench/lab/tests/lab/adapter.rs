//! `tramontane-lab adapter`: the suite's protocol over standard input and output. The suite checks
//! that the adapter's statements are true. These tests check that it speaks the protocol, and how
//! it answers unsupported requests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::support::{RunningProgram, TestFolder};
use serde_json::{Value, json};

/// A member driven by this test.
struct DrivenMember {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl DrivenMember {
    fn start(place: &TestFolder, init: &Value) -> Self {
        Self::start_with(place, &["adapter"], init)
    }

    fn start_with(place: &TestFolder, arguments: &[&str], init: &Value) -> Self {
        let mut command = place.command(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut member = Self { child, input, output };
        member.ask(init);
        member
    }

    fn ask(&mut self, command: &Value) {
        let input = self.input.as_mut().expect("still open");
        writeln!(input, "{command}").expect("the member reads");
    }

    /// Returns the next line that is not a view. It must arrive, because the test ends with the
    /// member.
    fn answer(&mut self) -> Value {
        loop {
            let answer = self.line();
            if answer["type"] != "view" {
                return answer;
            }
        }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Reads answers until `count` answers of a type have arrived, and returns those.
    fn answers(&mut self, kind: &str, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        while found.len() < count {
            let answer = self.answer();
            assert_ne!(answer["type"], "halt", "{answer}");
            if answer["type"] == kind {
                found.push(answer);
            }
        }
        found
    }
}

impl Drop for DrivenMember {
    fn drop(&mut self) {
        // The member may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn init(place: &TestFolder, own: usize, nodes: usize) -> Value {
    let names: Vec<String> = (0..nodes).map(|node| format!("n{node}")).collect();
    let shared = place.path().join("shared");
    json!({
        "type": "init", "protocol": 1, "node": names[own], "inc": 1, "join": false, "seed": 1,
        "nodes": names.iter().map(|name| json!({"node": name, "address": "127.0.0.1"})).collect::<Vec<_>>(),
        "groups": [{"group": "g0", "members": names, "senders": names},
                   {"group": "g1", "members": names, "senders": names.iter().skip(1).collect::<Vec<_>>()}],
        "limits": {"message_bytes_max": 4096, "window": 64, "deadline_ms": 30000},
        "shared": shared, "storage": shared,
    })
}

#[test]
fn three_members_report_one_order_and_correct_bytes() {
    let place = TestFolder::new();
    let mut members: Vec<DrivenMember> =
        (0..3).map(|own| DrivenMember::start(&place, &init(&place, own, 3))).collect();
    for member in &mut members {
        assert_eq!(member.answer()["name"], "tramontane");
    }
    const EACH: usize = 40;
    for number in 0..EACH {
        for (own, member) in members.iter_mut().enumerate() {
            // A message may be empty; it then has no room for its name.
            let bytes = if number % 4 == 3 { 0 } else { 100 };
            member.ask(&json!({"type": "multicast", "message": format!("n{own}/1/{number}"), "groups": ["g0"], "bytes": bytes}));
        }
    }
    let told: Vec<Vec<Value>> =
        members.iter_mut().map(|member| member.answers("deliver", 3 * EACH)).collect();
    assert!(told[1] == told[0] && told[2] == told[0], "three orders");
    let mut numbers = [0; 3];
    for deliver in &told[0] {
        let sender: usize =
            deliver["sender"].as_str().and_then(|name| name[1..].parse().ok()).expect("a node");
        let name = format!("n{sender}/1/{}", numbers[sender]);
        let empty = numbers[sender] % 4 == 3;
        assert_eq!(deliver["message"], if empty { Value::Null } else { json!(name) });
        assert_eq!(
            (&deliver["bytes"], &deliver["group"]),
            (&json!(if empty { 0 } else { 100 }), &json!("g0"))
        );
        assert_eq!(deliver.get("digest").is_some(), !empty);
        numbers[sender] += 1;
    }
    assert_eq!(numbers, [EACH; 3]);
    for member in &mut members {
        member.ask(&json!({"type": "stop"}));
    }
    for member in &mut members {
        while member.answer()["type"] != "halt" {}
        assert!(member.child.wait().expect("its end").success());
    }
}

#[test]
fn unsupported_requests_are_reported_without_side_effects() {
    let place = TestFolder::new();
    let mut member = DrivenMember::start(&place, &init(&place, 0, 1));
    assert_eq!(member.answer()["type"], "init_ok");
    let refused = [
        (json!({"type": "dance"}), "unsupported"),
        (
            json!({"type": "multicast", "message": "a", "groups": ["g0", "g1"], "bytes": 100}),
            "unsupported",
        ),
        (
            json!({"type": "multicast", "message": "a", "groups": ["g1"], "bytes": 100}),
            "not-a-sender",
        ),
        (
            json!({"type": "multicast", "message": "a", "groups": ["nowhere"], "bytes": 100}),
            "not-a-sender",
        ),
        (
            json!({"type": "multicast", "message": "a", "groups": ["g0"], "bytes": 5000}),
            "too-large",
        ),
    ];
    for (command, code) in refused {
        member.ask(&command);
        let answer = member.answer();
        assert_eq!(
            (&answer["type"], &answer["code"], &answer["definite"]),
            (&json!("error"), &json!(code), &json!(true))
        );
    }
    member.ask(&json!({"type": "multicast", "message": "a", "groups": ["g0"], "bytes": 10}));
    assert_eq!(member.answers("deliver", 1)[0]["message"], "a");
    // The end of the input counts as a stop command.
    member.input = None;
    while member.answer()["type"] != "halt" {}
}

#[test]
fn leave_is_reported_as_a_smaller_view() {
    let place = TestFolder::new();
    let mut members: Vec<DrivenMember> =
        (0..3).map(|own| DrivenMember::start(&place, &init(&place, own, 3))).collect();
    for member in &mut members {
        let view = member.line();
        assert_eq!((&view["type"], &view["members"]), (&json!("view"), &json!(["n0", "n1", "n2"])));
        assert_eq!(member.answer()["type"], "init_ok");
    }
    members[2].ask(&json!({"type": "leave"}));
    let halt = members[2].answer();
    assert_eq!((&halt["type"], &halt["reason"]), (&json!("halt"), &json!("left")));
    let view = members[0].line();
    assert_eq!((&view["type"], &view["view"]), (&json!("view"), &json!(2)));
    assert_eq!(view["members"], json!(["n0", "n1"]));
}

#[test]
fn adapter_reports_external_sender_as_unsupported() {
    let place = TestFolder::new();
    let mut outside = init(&place, 0, 2);
    outside["groups"][1]["members"] = json!(["n1"]);
    outside["groups"][1]["senders"] = json!(["n0"]);
    let mut member = DrivenMember::start(&place, &outside);
    assert_eq!(member.answer()["code"], "unsupported");
    assert_eq!(member.answer()["type"], "halt");
}

/// Returns the `init` of two groups of one replica, and a client.
fn init_of_shards(place: &TestFolder, own: usize) -> Value {
    let mut init = init(place, own, 3);
    for (group, replica) in [(0, "n1"), (1, "n0")] {
        let of_group = &mut init["groups"][group];
        of_group["members"] = json!([replica]);
        of_group["all_members"] = json!([replica]);
        of_group["senders"] = json!(["n2"]);
    }
    init
}

#[test]
fn shards_deliver_everywhere_and_report_leaders() {
    assert_shards_deliver(&["adapter", "--shards"]);
}

#[test]
fn shards_by_reference_deliver_to_all_destinations() {
    assert_shards_deliver(&["adapter", "--shards", "base", "--references-from", "60"]);
}

fn assert_shards_deliver(arguments: &[&str]) {
    let place = TestFolder::new();
    let start = |own| DrivenMember::start_with(&place, arguments, &init_of_shards(&place, own));
    let (mut below, mut root, mut client) = (start(0), start(1), start(2));
    for (replica, group) in [(&mut root, "g0"), (&mut below, "g1")] {
        assert_eq!(replica.answers("leader", 1)[0]["group"], group);
    }
    assert_eq!(client.answer()["type"], "init_ok");
    // A message may be empty, and a message to fewer groups does not overtake others.
    let asked = [(json!(["g0", "g1"]), 100), (json!(["g1"]), 0), (json!(["g1"]), 50)];
    for (number, (groups, bytes)) in asked.iter().enumerate() {
        let message = format!("n2/1/{number}");
        client.ask(
            &json!({"type": "multicast", "message": message, "groups": groups, "bytes": bytes}),
        );
        assert_eq!(client.answer(), json!({"type": "ok", "message": message}));
    }
    let told = |deliver: &Value| (deliver["message"].clone(), deliver["sender"].clone());
    let told_below: Vec<_> = below.answers("deliver", 3).iter().map(told).collect();
    let names = [json!("n2/1/0"), Value::Null, json!("n2/1/2")];
    assert_eq!(told_below, names.map(|name| (name, json!("n2"))));
    assert_eq!(told(&root.answers("deliver", 1)[0]), (json!("n2/1/0"), json!("n2")));
    let refused = [
        (false, json!(["g0"]), 100, "not-a-sender"),
        (true, json!(["nowhere"]), 100, "not-a-sender"),
        (true, json!(["g0"]), 5000, "too-large"),
    ];
    for (by_client, groups, bytes, code) in refused {
        let member = if by_client { &mut client } else { &mut root };
        member.ask(&json!({"type": "multicast", "message": "a", "groups": groups, "bytes": bytes}));
        assert_eq!(member.answers("error", 1)[0]["code"], code);
    }
    for mut member in [client, root, below] {
        member.ask(&json!({"type": "stop"}));
        while member.answer()["type"] != "halt" {}
        assert!(member.child.wait().expect("its end").success());
    }
}

#[test]
fn adapter_reports_sending_replica_as_unsupported() {
    let place = TestFolder::new();
    let mut member =
        DrivenMember::start_with(&place, &["adapter", "--shards"], &init(&place, 0, 2));
    assert_eq!(member.answer()["code"], "unsupported");
    assert_eq!(member.answer()["type"], "halt");
}

#[test]
fn invalid_command_ends_adapter_with_one_line_error() {
    let place = TestFolder::new();
    for (input, word) in [("hello\n", "hello"), ("{\"type\":\"stats\"}\n", "init")] {
        let mut process = RunningProgram::start(place.command(&["adapter"]));
        process.write(input.as_bytes());
        process.wait().failed(3, &[word]);
    }
}
