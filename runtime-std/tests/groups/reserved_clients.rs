//! Clients of a subgroup that views open and close, which is a new subgroup for them each time.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane_client::{
    ClientId, Event, Members, OpenError, PublishError, Publisher, PublisherOptions, Subscriber,
};
use tramontane_core::ids::SubgroupId;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Application, ControlEndpoints, Description, Forming, Messages, Running, StartOptions,
    SubgroupDescription, ViewChanged, start,
};
use tramontane_runtime::shared_memory::Root;

use crate::group_support::PATIENCE;

const PLACE: SubgroupId = SubgroupId(1);
const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];

/// The messages of the reserved subgroup since it was last opened.
#[derive(Clone, Default)]
struct SharedLines(Arc<Mutex<Vec<String>>>);

impl SharedLines {
    fn lines(&self) -> Vec<String> {
        self.0.lock().expect("nobody panics").clone()
    }
}

fn line(client: Option<ClientId>, payload: &[u8]) -> String {
    let from = client.map_or_else(|| "member".into(), |client| client.to_string());
    format!("{from}: {}", String::from_utf8_lossy(payload))
}

impl Application for SharedLines {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let is_place = messages.subgroup() == PLACE;
        let lines = messages.map(|message| line(message.client, message.payload));
        if is_place {
            self.0.lock().expect("nobody panics").extend(lines);
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        // The lines are inspected while the subgroup is closed.
        let mut lines = self.0.lock().expect("nobody panics");
        let is_closed = lines.last().is_some_and(|line| line == "closed");
        match (change.view.is_closed(PLACE), is_closed) {
            (true, false) => lines.push("closed".to_owned()),
            (false, true) => lines.clear(),
            _ => {}
        }
    }

    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn std::io::Read + Send> {
        let lines = if subgroup == PLACE { self.lines() } else { Vec::new() };
        Box::new(std::io::Cursor::new(lines.join("\n")))
    }

    fn restore(
        &mut self,
        subgroup: SubgroupId,
        state: &mut dyn std::io::Read,
    ) -> std::io::Result<()> {
        let mut text = String::new();
        state.read_to_string(&mut text)?;
        if subgroup == PLACE {
            *self.0.lock().expect("nobody panics") = text.lines().map(str::to_owned).collect();
        }
        Ok(())
    }
}

struct Crowd {
    root: TempDir,
    description: Description,
}

impl Crowd {
    fn new(carrier: Carrier, initial: &[u32]) -> Self {
        let mut description = Description::local("places", 3, 8, 64);
        description.heartbeat_ms = 10;
        description.failure_timeout_ms = 2_000;
        description.subgroups.push(SubgroupDescription {
            window: 8,
            message_max: 8_192,
            clients: true,
            restart_empty: true,
            reserved: true,
            ..SubgroupDescription::named("place")
        });
        if carrier == Carrier::Tcp {
            description.fabric = carrier;
            // All listeners are held at the same time, so that their ports differ.
            let held: Vec<TcpListener> = (0..3)
                .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"))
                .collect();
            for (node, held) in description.nodes.iter_mut().zip(&held) {
                node.address = Some(held.local_addr().expect("an address").into());
            }
        }
        description.initial = initial.to_vec();
        description.complete().expect("well formed");
        Self { root: tempfile::tempdir_in("/dev/shm").expect("a folder"), description }
    }

    fn start(&self, node: u32) -> (Running, SharedLines) {
        let application = SharedLines::default();
        let options = StartOptions {
            root: Root::under(self.root.path()),
            time_limit: PATIENCE,
            forming: Forming { new_group: true, ..Forming::default() },
            ..StartOptions::new(node)
        };
        let running = start(self.description.clone(), options, application.clone());
        (running.expect("it starts"), application)
    }

    fn start_all(&self, nodes: &[u32]) -> Vec<(Running, SharedLines)> {
        std::thread::scope(|scope| {
            let starts: Vec<_> =
                nodes.iter().map(|node| scope.spawn(move || self.start(*node))).collect();
            starts.into_iter().map(|start| start.join().expect("it starts")).collect()
        })
    }

    /// Returns the members of the reserved subgroup, starting with the given one.
    fn members(&self, first: usize) -> Members {
        let root = Root::under(self.root.path());
        let endpoints = ControlEndpoints::of(&self.description, &root).expect("addresses");
        let mut addresses: Vec<_> = endpoints.addresses().cloned().collect();
        addresses.rotate_left(first);
        Members::at(addresses).time_limit(PATIENCE).subgroup("place")
    }
}

fn open(running: &Running, opens: bool) {
    let reserved = running.reserved_subgroups().expect("there is one");
    assert!(if opens { reserved.open(PLACE) } else { reserved.close(PLACE) });
}

/// Returns everything that a follower has received, up to the end.
fn lines_to_the_end(subscriber: &mut Subscriber) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        match subscriber.next_within(PATIENCE).expect("it goes on to the end") {
            Event::Message(message) => lines.push(line(message.client, &message.payload)),
            Event::State { place, .. } => assert_eq!(place, 0, "it was there from the beginning"),
            Event::Closed => break,
            _ => {}
        }
    }
    let told = subscriber.next_within(PATIENCE).expect_err("nothing more comes").to_string();
    assert!(told.contains("the subgroup has been closed"), "{told}");
    lines
}

fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns what all members received while the subgroup was open, once it is closed at all of them.
fn told_until_closed(members: &[(Running, SharedLines)]) -> Vec<String> {
    let is_closed = |lines: &[String]| lines.last().is_some_and(|line| line == "closed");
    await_that("it is closed at all", || members.iter().all(|(_, own)| is_closed(&own.lines())));
    let mut lines = members[0].1.lines();
    for (_, own) in members {
        assert_eq!(own.lines(), lines, "the same at all members");
    }
    lines.pop();
    lines
}

fn publisher(members: Members) -> Publisher {
    let options = PublisherOptions { id: Some(ClientId(7)), ..PublisherOptions::default() };
    Publisher::open(members, options).expect("it is taken")
}

/// The subgroup is closed while lines flow, and is then reopened. A client with the same id is a
/// new client, and nothing from the earlier client arrives.
#[test]
fn reopened_subgroup_forgets_its_earlier_clients() {
    for carrier in CARRIERS {
        let crowd = Crowd::new(carrier, &[0, 1]);
        let mut members = crowd.start_all(&[0, 1]);
        let soon = crowd.members(0).time_limit(Duration::from_millis(200));
        let closed = Subscriber::follow(soon).expect_err("it has no members");
        assert!(matches!(closed, OpenError::NoMember { .. }), "{closed}");

        open(&members[0].0, true);
        let mut follower = Subscriber::follow(crowd.members(1)).expect("it is open soon");
        let old = publisher(crowd.members(0));
        (0..40).for_each(|number: u32| {
            drop(old.publish(number.to_string().as_bytes()).expect("it is taken"));
        });
        let mut sender = members[1].0.sender_of(PLACE).expect("all send");
        (0..20).for_each(|_| drop(sender.send(b"own", PATIENCE).expect("it is sent")));
        old.wait(PATIENCE).expect("all is delivered");
        members.push(crowd.start(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Publishes until there is no room left, because nothing is delivered after the
                // end.
                for number in 100_u32.. {
                    let said = old.publish_within(number.to_string().as_bytes(), Duration::ZERO);
                    if said.is_err() {
                        break;
                    }
                }
            });
            await_that("lines flow", || members[2].1.lines().len() > 80);
            open(&members[1].0, false);
        });
        let told = told_until_closed(&members);
        assert_eq!(lines_to_the_end(&mut follower), told, "followers are told the same");
        let of_client = told.iter().filter_map(|line| line.strip_prefix("0000000000000007: "));
        let numbers: Vec<u32> = of_client.map(|text| text.parse().expect("a number")).collect();
        assert!(
            numbers.iter().copied().eq((0..40).chain(100..).take(numbers.len())),
            "{numbers:?}"
        );

        open(&members[2].0, true);
        let mut follower = Subscriber::follow(crowd.members(2)).expect("it is open soon");
        let new = publisher(crowd.members(1));
        (0..30).for_each(|_| drop(new.publish(b"new").expect("it is taken")));
        new.wait(PATIENCE).expect("all is delivered");
        let ended = old.wait(PATIENCE).expect_err("nobody knows it any more");
        assert!(matches!(ended, PublishError::Refused(_)), "{ended}");
        // A member that is lost and returns receives the existing state.
        drop(members.remove(0));
        members.push(crowd.start(0));
        open(&members[1].0, false);
        let told = told_until_closed(&members);
        assert_eq!(told, vec!["0000000000000007: new"; 30]);
        assert_eq!(lines_to_the_end(&mut follower), told);
    }
}

/// The follower's member is lost, and the subgroup is closed before the follower finds another
/// member. The follower still receives the remaining lines.
#[test]
fn follower_receives_last_lines_from_another_member() {
    for carrier in CARRIERS {
        let crowd = Crowd::new(carrier, &[0, 1, 2]);
        let mut members = crowd.start_all(&[0, 1, 2]);
        open(&members[1].0, true);
        let mut follower = Subscriber::follow(crowd.members(0)).expect("it is open soon");
        let mut sender = members[1].0.sender_of(PLACE).expect("all send");
        // The follower reads nothing, and only part of this data fits on the way to it.
        (0..800).for_each(|_| drop(sender.send(&[b'x'; 8_000], PATIENCE).expect("it is sent")));
        await_that("all is delivered", || members.iter().all(|of| of.1.lines().len() == 800));
        drop(members.remove(0));
        open(&members[0].0, false);
        let told = told_until_closed(&members);
        assert_eq!(told.len(), 800);
        assert!(lines_to_the_end(&mut follower) == told, "each once, and all of them");
    }
}
