//! Durable logs that cannot be used: each is an error in one line, and harms nothing.

use crate::node_durable::{await_durable, durable_node, logged, logged_group};
use crate::support::group::{Carrier, Group, lines};

/// Starts a node that does not come up. Checks the status, and that standard error is one line with
/// these parts.
fn refused(group: &Group, id: usize, more: &[&str], status: i32, parts: &[&str]) {
    let id = id.to_string();
    group.run("node", &[&["--id", &id], more].concat()).failed(status, parts);
}

#[test]
fn a_log_and_a_folder_belong_together() {
    let group = logged_group(Carrier::SharedMemory, 1);
    refused(&group, 0, &[], 2, &["\"lines\" is logged", "--data DIR"]);
    let plain = Group::of(Carrier::SharedMemory, 1);
    let data = plain.place.path().join("data");
    let data = data.to_str().expect("a path");
    refused(&plain, 0, &["--data", data], 2, &["no logged subgroup", "logged = true"]);
    for (change, why) in [
        ("unordered = true", "no order"),
        ("restart_empty = true", "restart_empty"),
        ("name = \"view\"", "another name"),
    ] {
        let text = group.text() + change + "\n";
        let text = if change.starts_with("name") {
            group.text().replace("name = \"lines\"", change)
        } else {
            text
        };
        group.place.file("wrong.toml", text.as_bytes());
        let wrong = group.place.path().join("wrong.toml");
        let wrong = wrong.to_str().expect("a path");
        let more = ["node", "--config", wrong, "--id", "0", "--data", data];
        group.place.run(&more).failed(2, &[why, "; "]);
    }
    for (field, why) in
        [("majority = false\n", "majority = true"), ("membership = \"fixed\"\n", "changing")]
    {
        let text = group.text().replace("heartbeat_ms", &format!("{field}heartbeat_ms"));
        let wrong = group.place.file("wrong.toml", text.as_bytes());
        let wrong = wrong.to_str().expect("a path");
        let more = ["node", "--config", wrong, "--id", "0", "--data", data];
        group.place.run(&more).failed(2, &["cannot be logged", why, "; "]);
    }
}

#[test]
fn a_log_of_another_node_or_group_or_process_or_version_is_refused_and_stays() {
    let group = logged_group(Carrier::SharedMemory, 2);
    let mut nodes: Vec<_> = (0..2).map(|id| durable_node(&group, id, &[])).collect();
    nodes[0].write(&lines(0, 0..10));
    nodes.iter().for_each(|node| await_durable(node, 10));
    let data = group.place.path().join("data-0");
    let data_text = data.to_str().expect("a path");
    // Node 0 has it still.
    let other = group.variant("name = \"log\"", "name = \"glo\"");
    let alone = ["node", "--config", &other, "--id", "0", "--data", data_text];
    group.place.run(&alone).failed(5, &["another process uses the log", "; "]);
    nodes.remove(0).kill();
    group.place.run(&alone).failed(5, &["has the log of", "glo", "; "]);
    refused(&group, 0, &["--data", &data_text.replace("-0", "-1")], 5, &["another process"]);
    nodes.remove(0).kill();
    refused(
        &group,
        0,
        &["--data", &data_text.replace("-0", "-1")],
        5,
        &["of node 1, and not of node 0", "; "],
    );
    assert_eq!((logged(&group, 0), logged(&group, 1)), (lines(0, 0..10), lines(0, 0..10)));

    // The number of the format stands behind the first eight bytes, and their checksum behind it.
    for name in ["metadata-1", "metadata-2"] {
        let file = data.join("lines").join(name);
        let mut bytes = std::fs::read(&file).expect("it is there");
        bytes[8..12].copy_from_slice(&99_u32.to_le_bytes());
        let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..12]).to_le_bytes();
        bytes[12..16].copy_from_slice(&checksum[..4]);
        std::fs::write(&file, bytes).expect("it can be written");
    }
    refused(&group, 0, &["--data", data_text], 5, &["format 99", "newer", "; "]);
}
