//! Members driven by a polling thread and by their caller, several of a group in one process.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::{Batch, EachMessage, Message};
use tramontane_core::smc::ReserveError;
use tramontane_runtime::configuration::GroupConfiguration;
use tramontane_runtime::join::{JoinOptions, Meeting, join};
use tramontane_runtime::joined::JoinedFabric;
use tramontane_runtime::member::{Member, SendError, Settings, Stopped, queue};
use tramontane_runtime::shared_memory::{GroupName, Root};

const PATIENCE: Duration = Duration::from_secs(20);

/// Joins every member of a group, each in a thread, and calls `body` in it.
fn with_members<R: Send>(
    group: &GroupConfiguration,
    body: impl Fn(u32, Member<JoinedFabric>) -> R + Sync,
) -> Vec<R> {
    let folder = tempfile::tempdir().expect("a folder");
    let name = GroupName::unique("member").expect("a name");
    std::thread::scope(|scope| {
        let threads: Vec<_> = group
            .members
            .iter()
            .map(|node| {
                let (root, name, body) = (Root::under(folder.path()), name.clone(), &body);
                scope.spawn(move || {
                    let cancel = AtomicBool::new(false);
                    let settings = Settings::default();
                    let options = JoinOptions {
                        meeting: Meeting::SharedMemory { root, name },
                        time_limit: PATIENCE,
                        cancel: &cancel,
                        settings,
                    };
                    body(*node, join(group, *node, &options).expect("it joins"))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Steps a member until it has delivered `count` messages, and then until it is at rest for a while.
fn drive(member: &mut Member<JoinedFabric>, count: usize) -> Vec<Vec<u8>> {
    let mut delivered = Vec::new();
    let start = std::time::Instant::now();
    let mut rest = 0;
    while delivered.len() < count || rest < 2_000 {
        assert!(start.elapsed() < PATIENCE, "{} of {count} delivered", delivered.len());
        let stepped = member.step(&mut EachMessage(|message: Message<'_>| {
            delivered.push(message.payload.to_vec())
        }));
        match stepped {
            Ok(progress) if progress.is_idle() => rest += 1,
            Ok(_) => rest = 0,
            // The others are through, and gone.
            Err(Stopped::PeerLost { .. }) if delivered.len() == count => break,
            Err(error) => panic!("{error}"),
        }
        std::thread::yield_now();
    }
    delivered
}

#[test]
fn polled_members_deliver_what_several_threads_send_in_one_order() {
    const EACH: u64 = 500;
    let group = GroupConfiguration::single(3, 3, 8, 16);
    let delivered = with_members(&group, |node, member| {
        let (done, all) = mpsc::channel();
        let mut seen = Vec::new();
        let running = member
            .spawn(move |batch: &mut Batch<'_>| {
                seen.extend(batch.map(|message| (message.place, message.payload.to_vec())));
                if seen.len() as u64 == 3 * 2 * EACH {
                    let _ = done.send(std::mem::take(&mut seen));
                }
            })
            .expect("a thread");
        let sender = running.sender(SubgroupId(0)).expect("a sender");
        std::thread::scope(|scope| {
            for thread in 0..2_u8 {
                let sender = sender.clone();
                scope.spawn(move || {
                    for number in 0..EACH {
                        let mut message = vec![node as u8, thread];
                        message.extend(number.to_le_bytes());
                        sender.send(&message, PATIENCE).expect("it is sent");
                    }
                });
            }
        });
        let seen = all.recv_timeout(PATIENCE).expect("all arrive");
        assert!(running.settle(PATIENCE) || running.stopped().is_some());
        std::thread::sleep(Duration::from_millis(300));
        let _ = running.close();
        seen
    });
    assert_eq!(delivered[0], delivered[1]);
    assert_eq!(delivered[0], delivered[2]);
    let mut next = std::collections::BTreeMap::new();
    for (_, message) in &delivered[0] {
        let number = u64::from_le_bytes(message[2..].try_into().expect("eight bytes"));
        let expected = next.entry((message[0], message[1])).or_insert(0);
        assert_eq!(number, *expected, "each thread's messages keep their order");
        *expected += 1;
    }
}

#[test]
fn an_upcall_that_panics_stops_its_member_and_the_others_learn_of_it() {
    let group = GroupConfiguration::single(2, 2, 8, 16);
    let ends = with_members(&group, |node, member| {
        let running = member
            .spawn(move |batch: &mut Batch<'_>| {
                for message in batch {
                    assert!(node != 1 || message.payload != b"bang", "told to");
                }
            })
            .expect("a thread");
        if node == 0 {
            let sender = running.sender(SubgroupId(0)).expect("a sender");
            sender.send(b"bang", PATIENCE).expect("it is sent");
        }
        let start = std::time::Instant::now();
        while running.stopped().is_none() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let sender = running.sender(SubgroupId(0)).expect("a sender");
        let refused = (0..9).find_map(|_| sender.send(b"more", Duration::from_millis(50)).err());
        assert!(matches!(refused, Some(SendError::Stopped(_))), "{refused:?}");
        running.close().expect_err("it had stopped before")
    });
    assert!(matches!(&ends[1], Stopped::Panicked(text) if text.contains("told to")), "{ends:?}");
    assert!(matches!(ends[0], Stopped::PeerLost { .. }), "{ends:?}");
}

#[test]
fn a_queue_gives_messages_at_the_takers_pace() {
    let group = GroupConfiguration::single(2, 1, 4, 16);
    let taken = with_members(&group, |node, member| {
        let (application, end) = queue(2);
        let running = member.spawn(application).expect("a thread");
        std::thread::scope(|scope| {
            if node == 0 {
                let sender = running.sender(SubgroupId(0)).expect("a sender");
                scope.spawn(move || {
                    for number in 0..100_u8 {
                        sender.send(&[number], PATIENCE).expect("it is sent");
                    }
                });
            }
            let taken: Vec<u8> = (0..100)
                .map(|_| end.take(PATIENCE, |message| message.payload[0]).expect("it arrives"))
                .collect();
            std::thread::sleep(Duration::from_millis(300));
            taken
        })
    });
    assert_eq!(taken, vec![(0..100).collect::<Vec<u8>>(); 2]);
}

#[test]
fn a_caller_driven_member_waits_for_its_callers_steps() {
    let group = GroupConfiguration::single(2, 2, 2, 8);
    let delivered = with_members(&group, |node, mut member| {
        let sender = member.sender(SubgroupId(0)).expect("a sender");
        for number in 0..2 {
            sender.send(&[node as u8, number], PATIENCE).expect("two slots are free");
        }
        assert!(matches!(sender.try_reserve(1), Err(ReserveError::Full)));
        let refused = sender.send(&[], Duration::from_millis(20));
        assert!(matches!(refused, Err(SendError::TimedOut(_))), "{refused:?}");
        let refused = sender.send(&[0; 9], PATIENCE);
        assert!(matches!(refused, Err(SendError::TooLarge { length: 9, limit: 8 })), "{refused:?}");
        drive(&mut member, 4)
    });
    assert_eq!(delivered[0], [[0, 0], [1, 0], [0, 1], [1, 1]]);
    assert_eq!(delivered[0], delivered[1]);
}

#[test]
fn a_group_asleep_wakes_for_a_message() {
    let group = GroupConfiguration::single(2, 2, 4, 8);
    with_members(&group, |node, member| {
        let (told, heard) = mpsc::channel();
        let running = member
            .spawn(move |batch: &mut Batch<'_>| {
                for message in batch {
                    let _ = told.send(message.payload.to_vec());
                }
            })
            .expect("a thread");
        for round in 0..20_u8 {
            // Long enough for both to be asleep.
            std::thread::sleep(Duration::from_millis(10));
            if u32::from(round % 2) == node {
                let sender = running.sender(SubgroupId(0)).expect("a sender");
                sender.send(&[round], PATIENCE).expect("it is sent");
            }
            assert_eq!(heard.recv_timeout(PATIENCE).expect("it arrives"), [round]);
        }
        std::thread::sleep(Duration::from_millis(300));
        let _ = running.close();
    });
}

#[test]
fn settling_gets_its_turn_whatever_the_polling_thread_does() {
    // The polling thread held the turn while it paused and slept, and a settle could wait for ever.
    let group = GroupConfiguration::single(1, 1, 4, 8);
    with_members(&group, |_, member| {
        let running = member.spawn(|_: &mut Batch<'_>| {}).expect("a thread");
        let sender = running.sender(SubgroupId(0)).expect("a sender");
        for round in 0..100_u64 {
            sender.send(&[], PATIENCE).expect("it is sent");
            // From right away to long asleep.
            std::thread::sleep(Duration::from_micros(round * round));
            assert!(running.settle(PATIENCE), "round {round}");
        }
        running.close().expect("it was running");
    });
}
