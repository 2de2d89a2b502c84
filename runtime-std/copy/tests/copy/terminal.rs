//! The terminal output of a copy.

use std::path::Path;

use crate::support::terminal::{assert_no_bar_is_left, await_shown, interrupted, on_terminal};
use crate::support::{TestFolder, children_of, send, wait_for};
use rustix::process::Signal;

#[test]
fn interrupted_copy_clears_its_progress_bar() {
    let place = TestFolder::new();
    let folder = tempfile::tempdir().expect("a folder");
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    std::fs::write(&file, vec![7; 768 << 20]).expect("a large file");
    std::fs::create_dir(&to).expect("a folder");
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let shown = on_terminal(&place, &format!("{} --to {}", text(&file), text(&to)));
    // The copy is stopped until a bar appears: by then, much more may have arrived than the bar has
    // seen.
    let copies = wait_for("a copy", || {
        let root = *children_of(shown.pid()).first()?;
        let members = children_of(root);
        let begun = std::fs::read_dir(&to).ok()?.next().is_some();
        (begun && !members.is_empty()).then_some(members)
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    copies.iter().for_each(|pid| send(*pid, Signal::STOP));
    std::thread::sleep(std::time::Duration::from_millis(2200));
    copies.iter().for_each(|pid| send(*pid, Signal::CONT));
    await_shown(&shown, "of 768.00 MiB");
    let shown = interrupted(shown);
    assert_no_bar_is_left(&shown, "of 768.00 MiB");
    assert!(!shown.contains("TiB/s") && shown.contains("B/s"), "{shown:?}");
}
