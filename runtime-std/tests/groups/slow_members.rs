//! Members that are alive but slow are named, and removed if the group is configured to do so
//! (EXT-2).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_runtime::group::{Description, GroupStatus, Messages, Running, StartOptions, start};
use tramontane_runtime::member::Stopped;
use tramontane_runtime::shared_memory::Root;

use crate::group_support::PATIENCE;

/// The time that the slow member takes per message. Several messages together take less than a
/// failure timeout.
const EACH: Duration = Duration::from_millis(60);

fn description(evict_slow_after_ms: u64) -> Description {
    let name = format!("slow-{}-{evict_slow_after_ms}", std::process::id());
    let mut description =
        Description::builder(&name).nodes(3).window(4).message_max(64).build().expect("a group");
    description.failure_timeout_ms = 1_000;
    description.evict_slow_after_ms = evict_slow_after_ms;
    description.complete().expect("it is right");
    description
}

/// Runs three members. The last is slow while `is_slow` is true, and the first two send
/// continuously until `look`, which inspects the members, returns a result.
fn with_slow_member<T>(
    description: &Description,
    look: impl Fn(&[Running], &AtomicBool) -> Option<T>,
) -> T {
    let folder = tempfile::tempdir().expect("a folder");
    let (is_slow, is_over) = (AtomicBool::new(true), AtomicBool::new(false));
    // The members outlive the scope of the sending threads.
    let is_slow: &'static AtomicBool = Box::leak(Box::new(is_slow));
    let running: Vec<Running> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..3)
            .map(|node| {
                let (description, root) = (description.clone(), Root::under(folder.path()));
                scope.spawn(move || {
                    let options =
                        StartOptions { root, time_limit: PATIENCE, ..StartOptions::new(node) };
                    let application = move |messages: &mut Messages<'_, '_>| {
                        for _ in messages {
                            if node == 2 && is_slow.load(Ordering::Relaxed) {
                                std::thread::sleep(EACH);
                            }
                        }
                    };
                    start(description, options, application).expect("it starts")
                })
            })
            .collect();
        starting.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let found = std::thread::scope(|scope| {
        for member in &running[..2] {
            let mut sender = member.sender_of(SubgroupId(0)).expect("a sender");
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    // Senders are deliberately held back here.
                    let _ = sender.send(&[7; 64], Duration::from_millis(50));
                }
            });
        }
        let until = Instant::now() + PATIENCE;
        let found = loop {
            if let Some(found) = look(&running, is_slow) {
                break Some(found);
            }
            if Instant::now() > until {
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        is_over.store(true, Ordering::Relaxed);
        found
    });
    let statuses: Vec<GroupStatus> = running.iter().map(Running::status).collect();
    found.unwrap_or_else(|| panic!("it did not come: {statuses:?}"))
}

#[test]
fn slow_member_is_reported_until_it_catches_up() {
    let description = description(0);
    let was_named = AtomicBool::new(false);
    with_slow_member(&description, |running, is_slow| {
        let status = running[0].status();
        assert_eq!(status.members, [0, 1, 2], "nobody is removed");
        if let [slow] = status.slow.as_slice()
            && slow.lasts_ms > 2_000
        {
            assert_eq!((slow.node, slow.subgroup.as_str()), (2, status.subgroups[0].name.as_str()));
            assert!(slow.holds.iter().all(|node| [0, 1].contains(node)), "{slow:?}");
            was_named.store(true, Ordering::Relaxed);
            is_slow.store(false, Ordering::Relaxed);
        }
        (was_named.load(Ordering::Relaxed) && status.slow.is_empty()).then_some(())
    });
}

#[test]
fn slow_member_is_evicted_if_configured() {
    let description = description(2_000);
    with_slow_member(&description, |running, _| {
        let (status, stopped) = (running[0].status(), running[2].stopped());
        let is_out = status.members == [0, 1] && matches!(stopped, Some(Stopped::Halted { .. }));
        let go_on = status.slow.is_empty() && status.delivered_per_second > 100;
        (is_out && go_on).then_some(())
    });
}
