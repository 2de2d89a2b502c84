//! Limits of today's trust, as `docs/security.md` states them. Each test shows one; when a limit
//! goes, its test changes.

use std::fs::File;

use crate::support::free_addresses;
use crate::support::group::{Carrier, Group, Node, lines};

#[test]
fn without_a_key_the_group_file_is_all_that_an_operator_needs() {
    let group = Group::without_file();
    let mut text =
        "name = \"log\"\nfabric = \"tcp\"\nheartbeat_ms = 20\nfailure_timeout_ms = 3000\n"
            .to_owned();
    for (id, address) in free_addresses(2).into_iter().enumerate() {
        text.push_str(&format!("[[nodes]]\nid = {id}\naddress = \"{address}\"\n"));
    }
    group.write(&text);
    let mut nodes: Vec<Node> = (0..2).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1]);
    group.run("leave", &["--id", "1"]).succeeded();
    nodes[1].assert_left();
}

#[test]
fn a_row_that_is_cut_off_kills_all_members() {
    const SIGBUS: i32 = 7;
    let group = Group::of(Carrier::SharedMemory, 3);
    let mut nodes: Vec<Node> = (0..3).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
    let folders = group.place.left().into_iter().flat_map(|root| below(&root));
    let rows = folders.flat_map(|folder| below(&folder));
    let row =
        rows.into_iter().find(|file| file.to_string_lossy().contains("/row-")).expect("a row");
    File::options().write(true).open(&row).and_then(|row| row.set_len(0)).expect("its owner may");
    for node in &mut nodes {
        assert_eq!(node.ended_by(), Some(SIGBUS));
    }
}

fn below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
