//! `tramontane layout`: what it prints is what the core computes.

use crate::support::Place;
use serde_json::Value;
use tramontane_core::ids::Rank;
use tramontane_runtime::configuration::GroupConfiguration;

const TOML: &str = r#"
members = [7, 9, 11]

[[subgroups]]
members = [0, 1, 2]
senders = [0, 2]
window = 10
message_max = 100

[[subgroups]]
members = [1, 2]
senders = [1]
unordered = true
"#;

#[track_caller]
fn layout(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[&["layout", "--json"], arguments].concat()).succeeded();
    serde_json::from_slice(&output).expect("JSON")
}

#[test]
fn the_numbers_are_the_cores() {
    let place = Place::new();
    let map =
        layout(&place, &["--nodes", "4", "--senders", "2", "--window", "9", "--message-max", "77"]);
    let group = GroupConfiguration::single(4, 2, 9, 77);
    let checked = group.with_layout(|layout| {
        assert_eq!(map["digest"], format!("{:016x}", layout.digest()));
        assert_eq!(map["view_bytes"], layout.view_bytes());
        assert_eq!(map["change_bytes"], 2 * layout.view_bytes());
        for rank in 0..4 {
            assert_eq!(map["rows"][usize::from(rank)]["bytes"], layout.row_bytes(Rank(rank)));
        }
    });
    checked.expect("a layout");
    let parts = map["rows"][0]["parts"].as_array().expect("parts");
    let kinds: Vec<&str> =
        parts.iter().map(|part| part["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["header", "control", "ring"]);
    assert_eq!((&parts[2]["slots"], &parts[2]["message_max"]), (&Value::from(9), &Value::from(77)));
    assert_eq!(map["rows"][3]["parts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_group_may_come_from_a_file() {
    let place = Place::new();
    let group: GroupConfiguration = toml::from_str(TOML).expect("a group");
    let toml = place.file("group.toml", TOML.as_bytes());
    let json = place.file("group.json", &serde_json::to_vec(&group).expect("JSON"));
    let one = layout(&place, &["--config", toml.to_str().expect("a path")]);
    let other = layout(&place, &["--config", json.to_str().expect("a path")]);
    assert_eq!(one, other);
    assert_eq!((&one["rows"][2]["id"], &one["subgroups"]), (&Value::from(11), &Value::from(2)));
    let text = place.run(&["layout", "--config", toml.to_str().expect("a path")]).succeeded();
    let text = String::from_utf8(text).expect("text");
    for words in ["member 7", "member 11", "subgroup 1, unordered", "two views", "private state"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let place = Place::new();
    place.run(&["layout", "--nodes", "0"]).failed(2, &["--nodes"]);
    place.run(&["layout", "--nodes", "2", "--senders", "3"]).failed(2, &["3 senders"]);
    place.run(&["layout", "--window", "0"]).failed(2, &["--window"]);
    place.run(&["layout", "--config", "/nowhere"]).failed(3, &["/nowhere"]);
    let wrong: [(&str, &str); 6] = [
        ("members = [1, 2", "line 1"),
        ("members = [1]\nsubgroups = 3\n", "line 2"),
        ("members = []\nsubgroups = []\n", "no members"),
        ("members = [1, 1]\nsubgroups = []\n", "stands twice"),
        ("members = [1]\n[[subgroups]]\nmembers = [0]\nsenders = [1]\n", "sender"),
        ("members = [1]\n[[subgroups]]\nmembers = [0]\nsenders = [0]\nwindow = 0\n", "window is 0"),
    ];
    for (text, words) in wrong {
        let path = place.file("wrong.toml", text.as_bytes());
        place.run(&["layout", "--config", path.to_str().expect("a path")]).failed(2, &[words]);
    }
    place.assert_empty();
}

#[test]
fn a_group_file_is_taken_in_a_view_of_all_its_nodes() {
    let place = Place::new();
    let example = place.run(&["node", "--example-config"]).succeeded();
    let path = place.file("group.toml", &example);
    let map = layout(&place, &["--config", path.to_str().expect("a path")]);
    assert_eq!((&map["members"], &map["subgroups"]), (&Value::from(3), &Value::from(1)));
    let text = std::str::from_utf8(&example).expect("text");
    let description: tramontane_runtime::group::Description =
        toml::from_str(text).expect("a group file");
    let mut description = description;
    description.complete().expect("it is right");
    let view = tramontane_runtime::group::View::of_all(&description);
    let layout = description.view_layout(&view).expect("a layout");
    assert_eq!(map["digest"], format!("{:016x}", layout.get().digest()));
    assert_eq!(map["view_bytes"], layout.get().view_bytes());
    let wrong = place.file("wrong.toml", b"name = \"g\"\nnodes = []\nfabrik = 1\n");
    place
        .run(&["layout", "--config", wrong.to_str().expect("a path")])
        .failed(2, &["line 3", "fabrik"]);
}
