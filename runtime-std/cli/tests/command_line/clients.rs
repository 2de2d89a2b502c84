//! Programs that are not members publish and subscribe while members die (EXT-1).

use std::time::Duration;

use serde_json::Value;

use crate::client_support::{RawClient, addresses, group_of, life, members_from, start};
use crate::support::group::{Node, Transport};
use crate::support::{ProgramEnd, wait_for};
use tramontane_client::{Event, Level, Publisher, PublisherOptions, Subscriber, query};

/// Returns the texts of a subscriber's messages. Their positions must continue from `first`.
#[track_caller]
fn texts(ended: &ProgramEnd, first: u64) -> Vec<String> {
    let output = String::from_utf8_lossy(&ended.output);
    let lines = output.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let events: Vec<Value> = lines.collect();
    assert_eq!(events[0]["event"], "subscribed");
    let messages = events[1..].iter().zip(first..).map(|(event, place)| {
        assert_eq!((&event["event"], &event["place"]), (&"message".into(), &place.into()));
        event["text"].as_str().expect("text").to_owned()
    });
    messages.collect()
}

/// Waits until a command has subscribed.
fn await_subscribed(subscriber: &Node) {
    wait_for("a subscriber", || subscriber.output().contains("\"subscribed\"").then_some(()));
}

/// Members and clients publish at the same time, over both kinds of socket.
#[test]
fn member_and_client_lines_share_one_order() {
    for carrier in Transport::ALL {
        let group = group_of(carrier, "");
        let mut nodes = start(&group);
        let to: Vec<String> = addresses(&group).iter().map(ToString::to_string).collect();
        let mut by_address = vec!["--to".to_owned(), to.join(",")];
        if carrier == Transport::TcpWithKey {
            by_address.extend([
                "--key-file".to_owned(),
                group.place.path().join("key").display().to_string(),
            ]);
        }
        let by_address: Vec<&str> = by_address.iter().map(String::as_str).collect();
        let subscribe =
            [&["subscribe"], &by_address[..], &["--from", "0", "--count", "303", "--json"]]
                .concat();
        let mut subscriber = group.place.start(&subscribe);
        for (id, node) in nodes.iter_mut().enumerate() {
            node.write(&crate::support::group::lines(id, 0..100));
        }
        let publish = [&["publish"], &by_address[..], &["c-0", "c-1", "c-2"]].concat();
        assert_eq!(group.place.run(&publish).succeeded(), b"3 lines delivered\n");
        let log = group.await_same(&[0, 1, 2], 303);
        let ended = subscriber.wait_with_input();
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(texts(&ended, 0).join("\n") + "\n", log);
        let ours: Vec<&str> = log.lines().filter(|line| line.starts_with("c-")).collect();
        assert_eq!(ours, ["c-0", "c-1", "c-2"]);
    }
}

/// The node that serves the client has paused, because nobody sends.
#[test]
fn client_of_paused_sender_publishes() {
    let group = group_of(Transport::SharedMemory, "pause_senders_after_ms = 60\n");
    let _nodes = start(&group);
    for line in ["first", "second"] {
        wait_for("a pause", || {
            let status = ["status", "--config", &group.config, "--json"];
            let output = group.place.run(&status).succeeded();
            String::from_utf8_lossy(&output).contains("\"senders\":[]").then_some(())
        });
        let publish = ["publish", "--config", &group.config, line];
        assert_eq!(group.place.run(&publish).succeeded(), b"1 line delivered\n");
    }
    assert_eq!(group.await_same(&[0, 1, 2], 2), "first\nsecond\n");
}

/// Publisher and subscriber use a node that is killed halfway and then returns.
#[test]
fn member_kill_neither_loses_nor_duplicates_lines() {
    const LINES: usize = 10_000;
    for carrier in Transport::ALL {
        let group = group_of(carrier, "");
        let mut nodes = start(&group);
        let count = LINES.to_string();
        let subscribe = [
            "subscribe",
            "--config",
            &group.config,
            "--json",
            "--count",
            &count,
            "--name",
            "reader",
        ];
        let subscriber = Node::start(group.place.command(&subscribe));
        await_subscribed(&subscriber);
        let publish = ["publish", "--config", &group.config, "--json"];
        let mut publisher = group.place.start(&publish);
        let lines: Vec<String> = (0..LINES).map(|number| format!("p-{number}")).collect();
        let (before, after) = lines.split_at(LINES / 2);
        publisher.write((before.join("\n") + "\n").as_bytes());
        // Most of the lines are in flight, or still to be sent.
        wait_for("the first lines", || (group.log_bytes(1) > 1_000).then_some(()));
        nodes.remove(0).kill();
        publisher.write((after.join("\n") + "\n").as_bytes());
        let ended = publisher.wait();
        assert!(ended.status.success() && ended.errors.is_empty(), "{ended:?}");
        let log = group.await_same(&[1, 2], LINES);
        assert!(log.lines().eq(lines.iter().map(String::as_str)), "in their order");

        let mut subscriber = subscriber;
        let (status, errors) = subscriber.ended();
        assert_eq!((status, errors.as_str()), (Some(0), ""));
        let read = subscriber.output().lines().skip(1).map(String::from).collect::<Vec<_>>();
        assert_eq!(read.len(), LINES);
        for ((line, text), place) in read.iter().zip(&lines).zip(0_u64..) {
            let event: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((&event["place"], &event["text"]), (&place.into(), &text.as_str().into()));
        }

        // The group's information about clients is part of the state that a joiner receives.
        nodes.insert(0, group.node(0, &[]));
        group.await_members(&[0, 1, 2]);
        assert_eq!(group.await_same(&[0, 1, 2], LINES), log);
        let next = ["publish", "--config", &group.config, "one more"];
        assert_eq!(group.place.run(&next).succeeded(), b"1 line delivered\n");
        group.await_same(&[0, 1, 2], LINES + 1);
    }
}

/// A client connects to a node that joined later, and resends lines that it has sent before.
#[test]
fn later_node_drops_resent_client_lines() {
    let group = group_of(Transport::SharedMemory, "");
    let mut nodes = start(&group);
    let mut client = RawClient::at(&group, 0);
    client.attach(life(7, 1), true);
    assert_eq!(client.hear_next(), Ok(0));
    client.publish(0, &["a", "b", "c"]);
    client.await_delivered(3);
    nodes.remove(2).kill();
    group.await_members(&[0, 1]);
    nodes.push(group.node(2, &[]));
    group.await_members(&[0, 1, 2]);
    let mut client = RawClient::at(&group, 2);
    client.attach(life(7, 1), false);
    assert_eq!(client.hear_next(), Ok(3));
    client.publish(3, &["d"]);
    client.await_delivered(4);
    assert_eq!(group.await_same(&[0, 1, 2], 4), "a\nb\nc\nd\n");
}

/// The table also detects duplicates that a client's member has already sent: the client leaves a
/// member that still has its lines, and resends them to another.
#[test]
fn lines_sent_at_two_members_are_delivered_once() {
    let group = group_of(Transport::SharedMemory, "");
    let _nodes = start(&group);
    let lines: Vec<String> = (0..1_000).map(|number| format!("twice-{number}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut first = RawClient::at(&group, 0);
    first.attach(life(8, 1), true);
    assert_eq!(first.hear_next(), Ok(0));
    first.publish(0, &lines);
    // This client does not wait.
    let mut second = RawClient::at(&group, 1);
    second.attach(life(8, 1), false);
    let next = second.hear_next().expect("it is known");
    second.publish(next, &lines[usize::try_from(next).expect("few")..]);
    second.await_delivered(1_000);
    first.await_delivered(1_000);
    let log = group.await_same(&[0, 1, 2], 1_000);
    assert!(log.lines().eq(lines.iter().copied()));
}

/// The library in a program: many threads in blocking and in async calls.
#[test]
fn two_hundred_clients_publish_concurrently() {
    const CLIENTS: usize = 200;
    let group = group_of(Transport::SharedMemory, "");
    let _nodes = start(&group);
    let mut reader = Subscriber::open(members_from(&group, 1), Some(0)).expect("it is let in");
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let members = members_from(&group, client % 3).time_limit(Duration::from_secs(60));
            scope.spawn(move || {
                let publisher =
                    Publisher::open(members, PublisherOptions::default()).expect("it is let in");
                for number in 0..10 {
                    let line = format!("{client}-{number}");
                    let receipt = publisher.publish(line.as_bytes()).expect("room");
                    if number % 3 == 0 {
                        futures_wait(receipt.clone()).expect("delivered");
                        assert!(receipt.has_reached(Level::Delivered));
                    }
                }
                publisher.close(Duration::from_secs(60)).expect("delivered");
            });
        }
    });
    let mut next = vec![0; CLIENTS];
    for place in 0..10 * CLIENTS as u64 {
        let Event::Message(message) = reader.next().expect("it comes") else { panic!("a gap") };
        assert_eq!(message.place, place);
        let text = String::from_utf8(message.payload).expect("text");
        let (client, number) = text.split_once('-').expect("two numbers");
        let client: usize = client.parse().expect("a number");
        assert_eq!(number, next[client].to_string());
        next[client] += 1;
    }
    group.await_same(&[0, 1, 2], 10 * CLIENTS);
    // All clients have announced their departure.
    wait_for("an end of all leases", || {
        (query(members_from(&group, 0)).expect("an answer").clients == 0).then_some(())
    });
}

/// Waits for a future on this thread, as any executor would.
fn futures_wait<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}

/// A node that joined has no earlier messages, so a subscriber there is told of a gap.
#[test]
fn subscriber_learns_of_unavailable_positions() {
    let group = group_of(Transport::SharedMemory, "");
    let mut nodes = start(&group);
    nodes[0].write(&crate::support::group::lines(0, 0..20));
    group.await_same(&[0, 1, 2], 20);
    nodes.remove(2).kill();
    group.await_members(&[0, 1]);
    nodes.push(group.node(2, &[]));
    group.await_members(&[0, 1, 2]);
    nodes[0].write("after\n");
    group.await_same(&[0, 1, 2], 21);
    let mut late = Subscriber::open(members_from(&group, 2), Some(5)).expect("it is let in");
    assert_eq!(late.next().expect("it comes"), Event::Gap { from: 5, to: 20 });
    let Event::Message(message) = late.next().expect("it comes") else { panic!("a gap") };
    assert_eq!((message.place, message.sender, message.client), (20, 0, None));
    let mut whole = Subscriber::open(members_from(&group, 1), Some(5)).expect("it is let in");
    let Event::Message(message) = whole.next().expect("it comes") else { panic!("a gap") };
    assert_eq!((message.place, message.payload.as_slice()), (5, &b"0-5"[..]));
}
