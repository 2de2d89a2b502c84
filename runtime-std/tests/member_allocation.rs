//! Nothing is allocated after the start on the path of a message: the whole program's allocator counts.

mod allocation_support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use allocation_support::of_all_threads;
use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::Batch;
use tramontane_runtime::configuration::GroupConfiguration;
use tramontane_runtime::join::{JoinOptions, Meeting, join};
use tramontane_runtime::member::Settings;
use tramontane_runtime::shared_memory::{GroupName, Root};

#[test]
fn sending_and_delivering_allocate_nothing() {
    const MESSAGES: u64 = 20_000;
    let group = GroupConfiguration::single(2, 2, 16, 64);
    let folder = tempfile::tempdir().expect("a folder");
    let name = GroupName::unique("allocation").expect("a name");
    // Between the two waits only the members' threads run.
    let (before, after) = (Barrier::new(2), Barrier::new(2));
    static DELIVERED: AtomicU64 = AtomicU64::new(0);
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|node| {
                let (root, name, group) = (Root::under(folder.path()), name.clone(), &group);
                let (before, after) = (&before, &after);
                scope.spawn(move || {
                    let cancel = AtomicBool::new(false);
                    let time_limit = Duration::from_secs(20);
                    let settings = Settings::default();
                    let options = JoinOptions {
                        meeting: Meeting::SharedMemory { root, name },
                        time_limit,
                        cancel: &cancel,
                        settings,
                    };
                    let member = join(group, node, &options).expect("it joins");
                    let running = member
                        .spawn(|batch: &mut Batch<'_>| {
                            DELIVERED.fetch_add(batch.count() as u64, Ordering::Relaxed);
                        })
                        .expect("a thread");
                    let sender = running.sender(SubgroupId(0)).expect("a sender");
                    // The first message warms up what is set up lazily: a thread's own storage.
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
