//! Groups with fixed membership, over each fabric. Each member is driven by its own thread.

use std::collections::BTreeMap;
use std::sync::{Barrier, mpsc};
use std::time::Duration;

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Description, DescriptionBuilder, Fate, MemberState, Messages, Receipt, Running, StartError,
    queue, start,
};
use tramontane_runtime::member::{SendError, Stopped};

use crate::fixed_support::{Meeting, PATIENCE, await_end};
use crate::group_support::carriers;

fn shape(nodes: u32, window: u32, message_max: u32) -> DescriptionBuilder {
    Description::builder("fixed").nodes(nodes).window(window).message_max(message_max)
}

#[test]
fn messages_of_several_threads_share_one_order() {
    const EACH: u64 = 500;
    for fabric in carriers() {
        let meeting = Meeting::new(fabric, 3);
        let delivered = meeting.run(shape(3, 8, 16), 3, |node, description, options| {
            let (done, all) = mpsc::channel();
            let mut seen = Vec::new();
            let application = move |messages: &mut Messages<'_, '_>| {
                seen.extend(messages.map(|message| {
                    assert_eq!(message.sender, NodeId(u32::from(message.payload[0])));
                    (message.place, message.payload.to_vec())
                }));
                if seen.len() as u64 == 3 * 2 * EACH {
                    let _ = done.send(std::mem::take(&mut seen));
                }
            };
            let running = start(description, options, application).expect("it starts");
            let sender = running.sender_of(SubgroupId(0)).expect("a sender");
            std::thread::scope(|scope| {
                for thread in 0..2_u8 {
                    let mut sender = sender.clone();
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
            (seen, running)
        });
        // All members have all messages, so that no member misses the first one to close.
        let delivered: Vec<_> = delivered.into_iter().map(|(seen, _)| seen).collect();
        assert_eq!(delivered[0], delivered[1]);
        assert_eq!(delivered[0], delivered[2]);
        let mut next = BTreeMap::new();
        for (_, message) in &delivered[0] {
            let number = u64::from_le_bytes(message[2..].try_into().expect("eight bytes"));
            let expected = next.entry((message[0], message[1])).or_insert(0);
            assert_eq!(number, *expected, "each thread's messages keep their order");
            *expected += 1;
        }
    }
}

#[test]
fn upcall_panic_stops_member_and_informs_others() {
    for fabric in carriers() {
        let meeting = Meeting::new(fabric, 2);
        let ends = meeting.run(shape(2, 8, 16), 2, |node, description, options| {
            let application = move |messages: &mut Messages<'_, '_>| {
                for message in messages {
                    assert!(node != 1 || message.payload != b"bang", "told to");
                }
            };
            let running = start(description, options, application).expect("it starts");
            let mut sender = running.sender_of(SubgroupId(0)).expect("a sender");
            if node == 0 {
                sender.send(b"bang", PATIENCE).expect("it is sent");
            }
            await_end(&running);
            let refused =
                (0..9).find_map(|_| sender.send(b"more", Duration::from_millis(50)).err());
            assert!(matches!(refused, Some(SendError::Stopped(_))), "{refused:?}");
            running.close().0
        });
        let is_told =
            |end: &Stopped| matches!(end, Stopped::Panicked(text) if text.contains("told to"));
        assert!(is_told(&ends[1]), "{ends:?}");
        let is_lost =
            |end: &Stopped| matches!(end, Stopped::PeerLost { node: Some(NodeId(1)), .. });
        assert!(is_lost(&ends[0]), "{ends:?}");
    }
}

/// The first member that leaves ends the group, and undelivered messages are returned. The others
/// read nothing further from it once they know that it has left, so it stays until the other has
/// delivered the same messages.
#[test]
fn leave_ends_fixed_group_and_returns_undelivered_messages() {
    for fabric in carriers() {
        let meeting = Meeting::new(fabric, 2);
        let both_delivered = Barrier::new(2);
        let ends = meeting.run(shape(2, 8, 16), 2, |node, description, options| {
            let (told, heard) = mpsc::channel();
            let application = move |messages: &mut Messages<'_, '_>| {
                let _ = told.send(messages.count());
            };
            let running = start(description, options, application).expect("it starts");
            let mut sender = running.sender_of(SubgroupId(0)).expect("a sender");
            if node == 1 {
                heard.recv_timeout(PATIENCE).expect("it comes");
                both_delivered.wait();
                return running.leave(PATIENCE).map(|unsent| (None, unsent.len()));
            }
            let receipt = sender.send(b"before", PATIENCE).expect("it is sent");
            heard.recv_timeout(PATIENCE).expect("it comes");
            while receipt.fate() != Fate::Delivered {
                std::thread::sleep(Duration::from_millis(1));
            }
            both_delivered.wait();
            let mut last = None;
            while running.stopped().is_none() {
                last = sender.send(b"after", Duration::from_millis(1)).ok().or(last);
            }
            let (stopped, unsent) = running.close();
            let is_back = |last: &Receipt| unsent.iter().any(|one| one.ordinal == last.ordinal());
            let last = last.map(|last| (last.fate(), is_back(&last)));
            assert_ne!(last.map(|(fate, _)| fate), Some(Fate::UnderWay));
            assert!(last.is_none_or(|(fate, is_back)| is_back == (fate != Fate::Delivered)));
            Ok((Some(stopped), unsent.len()))
        });
        assert_eq!(ends[1], Ok((None, 0)), "{fabric:?}");
        let Ok((Some(Stopped::PeerLost { node, cause, .. }), _)) = &ends[0] else {
            panic!("{fabric:?}: {ends:?}")
        };
        assert_eq!((*node, *cause), (Some(NodeId(1)), LossCause::Left), "{fabric:?}");
    }
}

#[test]
fn idle_fixed_group_sleeps_and_posts_nothing() {
    for fabric in carriers() {
        let meeting = Meeting::new(fabric, 3);
        let running = meeting.run(shape(3, 8, 64), 3, |node, description, options| {
            let (told, heard) = mpsc::channel();
            let application = move |messages: &mut Messages<'_, '_>| {
                for message in messages {
                    let _ = told.send(message.payload.to_vec());
                }
            };
            let running = start(description, options, application).expect("it starts");
            let mut sender = running.sender_of(SubgroupId(0)).expect("a sender");
            for round in 0..20_u32 {
                // Each member in turn breaks the silence during which all are asleep.
                if round % 3 == node {
                    std::thread::sleep(Duration::from_millis(30));
                    sender.send(&round.to_le_bytes(), PATIENCE).expect("it is sent");
                }
                let delivered = heard.recv_timeout(PATIENCE).expect("it wakes");
                assert_eq!(delivered, round.to_le_bytes());
            }
            assert!(running.settle(PATIENCE));
            std::thread::sleep(Duration::from_millis(50));
            let before = running.writes();
            std::thread::sleep(Duration::from_millis(500));
            assert_eq!(running.writes(), before, "a group that rests posts nothing");
            let status = running.status();
            assert_eq!((status.state, status.heartbeats), (MemberState::Steady, 0));
            assert_eq!((status.members.len(), status.delivered), (3, 20));
            running
        });
        let stopped: Vec<_> = running.iter().map(Running::stopped).collect();
        assert!(stopped.iter().all(Option::is_none), "{fabric:?}: {stopped:?}");
    }
}

#[test]
fn full_delivery_queue_slows_down_delivery() {
    for fabric in carriers() {
        let meeting = Meeting::new(fabric, 2);
        let taken = meeting.run(shape(2, 4, 16).senders(1), 2, |node, description, options| {
            let (application, end) = queue(2);
            let running = start(description, options, application).expect("it starts");
            std::thread::scope(|scope| {
                if node == 0 {
                    let mut sender = running.sender_of(SubgroupId(0)).expect("a sender");
                    scope.spawn(move || {
                        for number in 0..100_u8 {
                            sender.send(&[number], PATIENCE).expect("it is sent");
                        }
                    });
                }
                let take = |_| end.take(PATIENCE, |message| message.payload[0]);
                let taken: Option<Vec<u8>> = (0..100).map(take).collect();
                std::thread::sleep(Duration::from_millis(300));
                taken.expect("all arrive")
            })
        });
        assert_eq!(taken, vec![(0..100).collect::<Vec<u8>>(); 2]);
    }
}

#[test]
fn settle_completes_while_polling_thread_is_idle() {
    // Regression: the polling thread held the turn while it paused and slept, so a settle could
    // wait indefinitely.
    let meeting = Meeting::new(Carrier::SharedMemory, 1);
    meeting.run(shape(1, 4, 8), 1, |_, description, options| {
        let application = |_: &mut Messages<'_, '_>| {};
        let running = start(description, options, application).expect("it starts");
        let mut sender = running.sender_of(SubgroupId(0)).expect("a sender");
        for round in 0..100_u64 {
            sender.send(&[], PATIENCE).expect("it is sent");
            // Pauses of increasing length, from none at all to long after the thread has fallen
            // asleep.
            std::thread::sleep(Duration::from_micros(round * round));
            assert!(running.settle(PATIENCE), "round {round}");
        }
        assert_eq!(running.close(), (Stopped::Closed, Vec::new()));
    });
}

#[test]
fn fixed_group_requires_all_nodes_and_same_description() {
    for fabric in carriers() {
        let meeting = Meeting::new(fabric, 2);
        let mut options = meeting.options(0);
        options.time_limit = Duration::from_millis(300);
        let application = |_: &mut Messages<'_, '_>| {};
        let alone = start(meeting.describe(shape(2, 8, 16)), options, application);
        assert!(matches!(alone, Err(StartError::Meet(_))), "{fabric:?}: {alone:?}");
        let started = meeting.run(shape(2, 8, 16), 2, |node, mut description, mut options| {
            description.subgroups[0].window += node;
            options.time_limit = Duration::from_secs(5);
            start(description, options, application).map(drop)
        });
        let differs = |started: &Result<(), StartError>| {
            started.as_ref().is_err_and(|error| error.to_string().contains("(subgroups)"))
        };
        assert!(started.iter().any(differs), "{fabric:?}: {started:?}");
    }
}

/// Running members are not disturbed by a process that arrives late.
#[test]
fn late_process_cannot_join_fixed_group() {
    let meeting = Meeting::new(Carrier::Tcp, 2);
    let application = |_: &mut Messages<'_, '_>| {};
    let running = meeting.run(shape(2, 8, 16), 2, |_, description, options| {
        start(description, options, application).expect("it starts")
    });
    let own = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let mut options = meeting.options(1);
    options.listener = Some(own.try_into().expect("it listens"));
    options.time_limit = Duration::from_secs(5);
    let late = start(meeting.describe(shape(2, 8, 16)), options, application);
    assert!(matches!(late, Err(StartError::FixedRuns { node: 1 })), "{late:?}");
    assert!(running.iter().all(|member| member.stopped().is_none()));
}
