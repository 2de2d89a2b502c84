//! `tramontane node` with lines of several megabytes: a node is stopped while they are in flight.

use std::io::Write as _;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::group::{GroupFile, Transport};
use rustix::process::Signal;

/// Writes lines of several megabytes until `is_over` is set or the input is closed.
fn write_on(mut input: ChildStdin, is_over: &AtomicBool) {
    let line = format!("{}\n", "long ".repeat(500_000));
    while !is_over.load(Ordering::Relaxed) && input.write_all(line.as_bytes()).is_ok() {}
}

/// The node wakes in the middle of blocks that no member accepts any longer. It must not blame its
/// memory or the others.
#[test]
fn node_stopped_amid_large_lines_is_removed() {
    let group = GroupFile::of(Transport::TcpWithKey, 3);
    let large = "\n[[subgroups]]\nname = \"log\"\nmessage_max = 64\nlarge_max = 3000000\n";
    group.write(&(group.text() + large));
    let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
    nodes[0].await_errors("view 1: 0 1 2");
    let is_over = Arc::new(AtomicBool::new(false));
    for node in &mut nodes {
        let (input, is_over) = (node.take_input(), Arc::clone(&is_over));
        std::thread::spawn(move || write_on(input, &is_over));
    }
    crate::support::wait_for("large lines", || (group.log_bytes(2) > 30_000_000).then_some(()));
    nodes[2].signal(Signal::STOP);
    let bytes_then = group.log_bytes(0);
    crate::support::wait_for("the view without it", || {
        nodes[..2].iter().all(|node| node.errors().contains("view 2: ")).then_some(())
    });
    for node in &nodes[..2] {
        assert!(node.errors().contains("view 2: 0 1; gone 2\n"), "{}", node.errors());
    }
    nodes[2].signal(Signal::CONT);
    let (code, errors) = nodes[2].ended();
    assert_eq!(code, Some(9), "{errors}");
    assert!(errors.contains("no longer in the group"), "{errors}");
    // The node's messages after it woke did not disturb the others.
    crate::support::wait_for("more large lines", || {
        (group.log_bytes(0) > bytes_then + 30_000_000).then_some(())
    });
    is_over.store(true, Ordering::Relaxed);
    assert!(!nodes[0].errors().contains("view 3"), "{}", nodes[0].errors());
}
