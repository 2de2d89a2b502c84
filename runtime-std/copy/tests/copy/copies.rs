//! Helpers of the tests of `tramontane-copy`: sources, destinations, and nodes.

// Each test program uses only some of these functions.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{TestFolder, free_addresses};

/// Size in bytes: several large messages, and part of one.
pub const LARGE: usize = 40 << 20;

/// Creates the sources: large and empty files, a nested directory, an empty directory, a link, and
/// a file with a special mode.
pub fn sources(place: &TestFolder) -> Vec<PathBuf> {
    let source = place.path().join("source");
    fs::create_dir_all(source.join("tree/inner/empty")).expect("directories");
    let large: Vec<u8> =
        (0..LARGE).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    fs::write(source.join("large"), large).expect("a file");
    fs::write(source.join("tree/nothing"), b"").expect("a file");
    fs::write(source.join("tree/inner/script"), b"#!/bin/sh\n").expect("a file");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(source.join("tree/inner/script"), mode).expect("its mode");
    let hole = fs::File::create(source.join("tree/hole")).expect("a file");
    hole.set_len(1 << 20).expect("a file with nothing but a hole");
    std::os::unix::fs::symlink("inner/script", source.join("tree/link")).expect("a link");
    vec![source.join("large"), source.join("tree")]
}

/// Creates empty directories to copy to.
pub fn targets<const N: usize>(place: &TestFolder) -> [PathBuf; N] {
    let directories: [PathBuf; N] =
        std::array::from_fn(|number| place.path().join(format!("to-{number}")));
    directories.iter().for_each(|directory| fs::create_dir(directory).expect("a directory"));
    directories
}

/// Formats directories for `--to`.
pub fn joined(directories: &[PathBuf]) -> String {
    directories.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(",")
}

/// Returns the content or kind, and the mode, of everything below a path, by name.
pub fn content(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        let bytes = if metadata.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .expect("a directory")
                    .map(|entry| entry.expect("an entry").path()),
            );
            b"a directory".to_vec()
        } else if metadata.is_symlink() {
            fs::read_link(&path).expect("a link").to_string_lossy().into_owned().into_bytes()
        } else {
            fs::read(&path).expect("a file")
        };
        let name = path.strip_prefix(root).expect("below it").to_path_buf();
        let mode = if name.as_os_str().is_empty() { 0 } else { metadata.permissions().mode() };
        found.insert(name, (bytes, mode));
    }
    found
}

/// Writes a group file for `nodes` nodes on this host, over shared memory.
pub fn hosts_in_memory(place: &TestFolder, nodes: usize) -> String {
    let nodes: String = (0..nodes).map(|id| format!("[[nodes]]\nid = {id}\n")).collect();
    let group = format!("name = \"hosts\"\nfabric = \"shm\"\n{nodes}");
    place.file("group.toml", group.as_bytes()).display().to_string()
}

/// Writes a group file for `nodes` nodes on this host, over TCP.
pub fn hosts(place: &TestFolder, nodes: usize) -> String {
    let mut group = String::from("name = \"hosts\"\nfabric = \"tcp\"\n");
    for (id, address) in free_addresses(nodes).into_iter().enumerate() {
        group += &format!("[[nodes]]\nid = {id}\naddress = \"{address}\"\n");
    }
    place.file("group.toml", group.as_bytes()).display().to_string()
}
