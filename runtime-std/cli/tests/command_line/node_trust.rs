//! Current limits of trust, as `docs/security.md` states them. Each test shows one limit and must
//! change when that limit is removed.

use std::fs::File;

use crate::support::free_addresses;
use crate::support::group::{GroupFile, Node, Transport, lines};

#[test]
fn operator_needs_only_group_file_without_key() {
    let group = GroupFile::without_file();
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
fn damage_to_group_folder_kills_no_member() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    let mut nodes: Vec<Node> = (0..3).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
    let folders = group.place.left().into_iter().flat_map(|root| below(&root));
    let files = folders.flat_map(|folder| below(&folder)).filter(|path| path.is_file());
    let mut cut_off = 0;
    for path in files {
        let file = File::options().write(true).open(&path);
        file.and_then(|file| file.set_len(0)).expect("its owner may");
        cut_off += 1;
    }
    assert!(cut_off >= 3, "a file a member: {cut_off}");
    nodes[1].write(&lines(1, 0..10));
    group.await_same(&[0, 1, 2], 20);
}

fn below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
