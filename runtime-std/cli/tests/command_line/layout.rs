//! `tramontane layout` prints what the core computes.

use crate::support::TestFolder;
use serde_json::Value;
use tramontane_core::ids::Rank;
use tramontane_runtime::group::{Description, View};

const TOML: &str = r#"
name = "two"
membership = "fixed"
nodes = [{ id = 7 }, { id = 9 }, { id = 11 }]

[[subgroups]]
name = "ordered"
senders = [7, 11]
window = 10
message_max = 100

[[subgroups]]
name = "unordered"
members = [9, 11]
senders = [9]
unordered = true
"#;

#[track_caller]
fn layout(place: &TestFolder, arguments: &[&str]) -> Value {
    let output = place.run(&[&["layout", "--json"], arguments].concat()).succeeded();
    serde_json::from_slice(&output).expect("JSON")
}

#[test]
fn layout_numbers_match_the_core() {
    let place = TestFolder::new();
    let map =
        layout(&place, &["--nodes", "4", "--senders", "2", "--window", "9", "--message-max", "77"]);
    let group = Description::builder("g").nodes(4).senders(2).window(9).message_max(77);
    let group = group.fixed().build().expect("a group");
    let layout = group.view_layout(&View::of_all(&group)).expect("a layout");
    let layout = layout.get();
    assert_eq!(map["digest"], format!("{:016x}", layout.digest()));
    assert_eq!(map["view_bytes"], layout.view_bytes());
    assert_eq!(map["change_bytes"], 2 * layout.view_bytes());
    for rank in 0..4 {
        assert_eq!(map["rows"][usize::from(rank)]["bytes"], layout.row_bytes(Rank(rank)));
    }
    let parts = map["rows"][0]["parts"].as_array().expect("parts");
    let kinds: Vec<&str> =
        parts.iter().map(|part| part["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["header", "control", "ring"]);
    assert_eq!((&parts[2]["slots"], &parts[2]["message_max"]), (&Value::from(9), &Value::from(77)));
    assert_eq!(map["rows"][3]["parts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn layout_command_reads_the_group_file() {
    let place = TestFolder::new();
    let toml = place.file("group.toml", TOML.as_bytes());
    let map = layout(&place, &["--config", toml.to_str().expect("a path")]);
    assert_eq!((&map["rows"][2]["id"], &map["subgroups"]), (&Value::from(11), &Value::from(2)));
    let text = place.run(&["layout", "--config", toml.to_str().expect("a path")]).succeeded();
    let text = String::from_utf8(text).expect("text");
    for words in ["member 7", "member 11", "subgroup 1, unordered", "view change", "private state"]
    {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn invalid_layout_options_fail_with_one_line() {
    let place = TestFolder::new();
    place.run(&["layout", "--nodes", "0"]).failed(2, &["--nodes"]);
    place.run(&["layout", "--nodes", "2", "--senders", "3"]).failed(2, &["3 senders"]);
    place.run(&["layout", "--window", "0"]).failed(2, &["--window"]);
    place.run(&["layout", "--config", "/nowhere"]).failed(3, &["/nowhere"]);
    let wrong: [(&str, &str); 9] = [
        ("nodes = [1, 2", "line 1"),
        ("name = \"g\"\nnodes = 3\n", "line 2"),
        ("name = \"g\"\nnodes = []\n", "no members"),
        ("name = \"g\"\nnodes = [{ id = 1 }, { id = 1 }]\n", "is listed twice"),
        (
            "name = \"g\"\nnodes = [{ id = 1 }]\n[[subgroups]]\nname = \"a\\nb\"\n",
            "has control characters",
        ),
        ("name = \"g\"\ninitial = [1, 1]\nnodes = [{ id = 1 }]\n", "initial names node 1 twice"),
        ("name = \"g\"\nheartbeat_ms = 0\nnodes = [{ id = 1 }]\n", "heartbeat_ms is 0"),
        (
            "name = \"g\"\nnodes = [{ id = 1 }]\n[[subgroups]]\nname = \"a\"\nsenders = [2]\n",
            "names node 2",
        ),
        (
            "name = \"g\"\nnodes = [{ id = 1 }]\n[[subgroups]]\nname = \"a\"\nwindow = 0\n",
            "window is 0",
        ),
    ];
    for (text, words) in wrong {
        let path = place.file("wrong.toml", text.as_bytes());
        place.run(&["layout", "--config", path.to_str().expect("a path")]).failed(2, &[words]);
    }
    place.assert_empty();
}

#[test]
fn layout_of_group_file_includes_all_nodes() {
    let place = TestFolder::new();
    let example = place.run(&["node", "--example-config"]).succeeded();
    let path = place.file("group.toml", &example);
    let map = layout(&place, &["--config", path.to_str().expect("a path")]);
    assert_eq!((&map["members"], &map["subgroups"]), (&Value::from(3), &Value::from(1)));
    let text = std::str::from_utf8(&example).expect("text");
    let mut description: Description = toml::from_str(text).expect("a group file");
    description.complete().expect("it is right");
    let view = View::of_all(&description);
    let layout = description.view_layout(&view).expect("a layout");
    assert_eq!(map["digest"], format!("{:016x}", layout.get().digest()));
    assert_eq!(map["view_bytes"], layout.get().view_bytes());
    let wrong = place.file("wrong.toml", b"name = \"g/h\"\nnodes = []\n");
    place.run(&["layout", "--config", wrong.to_str().expect("a path")]).failed(2, &["g/h", "; "]);
    let wrong = place.file("wrong.toml", b"name = \"g\"\nnodes = []\nfabrik = 1\n");
    place
        .run(&["layout", "--config", wrong.to_str().expect("a path")])
        .failed(2, &["line 3", "fabrik"]);
}
