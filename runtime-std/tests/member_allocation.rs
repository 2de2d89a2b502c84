//! After the start, nothing is allocated on the path of a message, as counted by the whole
//! program's allocator.

mod allocation_support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use allocation_support::of_all_threads;
use tramontane_core::ids::SubgroupId;
use tramontane_runtime::group::{Description, Messages, StartOptions, start};
use tramontane_runtime::shared_memory::Root;

#[test]
fn sending_and_delivering_allocate_nothing() {
    const MESSAGES: u64 = 20_000;
    let group = Description::builder("allocation").nodes(2).window(16).message_max(64).fixed();
    let group = group.build().expect("a group");
    let folder = tempfile::tempdir().expect("a folder");
    // Between the two waits, only the members' threads run.
    let (before, after) = (Barrier::new(2), Barrier::new(2));
    static DELIVERED: AtomicU64 = AtomicU64::new(0);
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|node| {
                let (root, group) = (Root::under(folder.path()), group.clone());
                let (before, after) = (&before, &after);
                scope.spawn(move || {
                    let time_limit = Duration::from_secs(20);
                    let options = StartOptions { root, time_limit, ..StartOptions::new(node) };
                    let application = |messages: &mut Messages<'_, '_>| {
                        DELIVERED.fetch_add(messages.count() as u64, Ordering::Relaxed);
                    };
                    let running = start(group, options, application).expect("it starts");
                    let mut sender = running.sender_of(SubgroupId(0)).expect("a sender");
                    // The first message initializes what is set up lazily, namely a thread's own
                    // storage.
                    sender.send(&[0; 64], time_limit).expect("it is sent");
                    std::thread::sleep(Duration::from_millis(100));
                    before.wait();
                    let start = of_all_threads();
                    for _ in 0..MESSAGES {
                        sender.send(&[1; 64], time_limit).expect("it is sent");
                    }
                    while DELIVERED.load(Ordering::Relaxed) < 4 * (MESSAGES + 1) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    let count = of_all_threads() - start;
                    after.wait();
                    let _ = running.close();
                    count
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(counts, [0, 0], "{MESSAGES} messages each way");
    assert!(of_all_threads() > 0, "the allocator counts");
}
