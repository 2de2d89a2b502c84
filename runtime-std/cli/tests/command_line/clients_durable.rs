//! Clients of a logged group: durable lines, and subscribers that read from a log (EXT-1, DUR-2).

use std::time::Duration;

use crate::client_support::members_from;
use crate::node_durable::{await_durable, durable_node, logged_group};
use crate::support::group::{GroupFile, Node, Transport};
use tramontane_client::{Event, Level, Publisher, PublisherOptions, Subscriber, query};

const LONG: Duration = Duration::from_secs(60);

fn start(group: &GroupFile) -> Vec<Node> {
    group.write(&group.text().replace("logged = true", "logged = true\nclients = true"));
    let nodes = (0..3).map(|id| durable_node(group, id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    nodes
}

#[test]
fn publisher_waits_for_durability_despite_killed_member() {
    const LINES: usize = 2_000;
    let group = logged_group(Transport::SharedMemory, 3);
    let mut nodes = start(&group);
    let publish = ["publish", "--config", &group.config, "--level", "all", "one", "two"];
    assert_eq!(group.place.run(&publish).succeeded(), b"2 lines durable everywhere\n");
    // Nodes count lines, but not the group's internal messages about clients.
    await_durable(&nodes[1], 2);
    let mut reader = Subscriber::open_at(members_from(&group, 1), Some(0), Level::DurableMajority);
    let reader = reader.as_mut().expect("it is let in");
    let options = PublisherOptions { level: Level::DurableMajority, ..Default::default() };
    let publisher = Publisher::open(members_from(&group, 0), options).expect("it is let in");
    let mut victim = Some(nodes.remove(0));
    for number in 0..LINES {
        let receipt = publisher.publish(format!("c-{number}").as_bytes()).expect("room");
        if number == LINES / 2 {
            receipt.wait(LONG).expect("durable");
            assert!(receipt.has_reached(Level::Delivered));
            assert!(receipt.has_reached(Level::DurableMajority));
        }
        if number == LINES * 3 / 4 {
            victim.take().expect("it runs").kill();
        }
    }
    publisher.close(LONG).expect("durable at a majority");
    for place in 0..LINES as u64 + 2 {
        let Event::Message(message) = reader.next_within(LONG).expect("it comes") else {
            panic!("a gap")
        };
        let text = match place {
            0 => "one".to_owned(),
            1 => "two".to_owned(),
            _ => format!("c-{}", place - 2),
        };
        assert_eq!((message.place, message.payload.as_slice()), (place, text.as_bytes()));
    }
    group.await_same(&[1, 2], LINES + 2);
    // The node receives a log, and with it the state about clients.
    nodes.insert(0, durable_node(&group, 0, &[]));
    group.await_members(&[0, 1, 2]);
    group.await_same(&[0, 1, 2], LINES + 2);
    for node in &nodes[1..] {
        await_durable(node, LINES as u64 + 2);
    }
    let reached = query(members_from(&group, 2)).expect("an answer").reached;
    assert_eq!((reached.delivered, reached.durable_everywhere), (2_002, 2_002));
}

/// Reads more than a member keeps in memory, even from a node that has returned with its log.
#[test]
fn subscriber_reads_older_messages_from_log() {
    const LINES: u64 = 2_400;
    let group = logged_group(Transport::SharedMemory, 3);
    let mut nodes = start(&group);
    let publisher = Publisher::open(members_from(&group, 0), PublisherOptions::default());
    let publisher = publisher.expect("it is let in");
    for number in 0..LINES {
        let line = format!("{number:010000}");
        publisher.publish(line.as_bytes()).expect("room");
    }
    publisher.close(LONG).expect("delivered");
    let read_all = |node: usize| {
        let mut reader = Subscriber::open(members_from(&group, node), Some(1)).expect("let in");
        for place in 1..LINES {
            let Event::Message(message) = reader.next_within(LONG).expect("it comes") else {
                panic!("a gap")
            };
            assert_eq!(message.place, place);
            assert_eq!(message.payload, format!("{place:010000}").as_bytes());
        }
    };
    read_all(0);
    nodes.remove(2).kill();
    group.await_members(&[0, 1]);
    nodes.push(durable_node(&group, 2, &[]));
    group.await_members(&[0, 1, 2]);
    read_all(2);
}
