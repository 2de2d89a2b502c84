//! Clients that follow a group know what its members know: the state, the messages, and the views
//! and ends of clients between the messages.

#![allow(clippy::expect_used, clippy::panic)]

use std::io::{self, Cursor, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane_client::{ClientId, Event, Members, Publisher, PublisherOptions, Subscriber};
use tramontane_core::ids::SubgroupId;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Application, ControlEndpoints, Description, Forming, Messages, Running, StartOptions,
    ViewChanged, start,
};
use tramontane_runtime::shared_memory::Root;

use crate::group_support::PATIENCE;

const GROUP: SubgroupId = SubgroupId(0);

/// Everything that an application has received, in order. An entry repeated without a message in
/// between is recorded once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ledger {
    lines: Vec<String>,
    messages: u64,
}

impl Ledger {
    fn message(&mut self, client: Option<ClientId>, payload: &[u8]) {
        let from = client.map_or_else(|| "member".into(), |client| client.to_string());
        self.lines.push(format!("{from}: {}", String::from_utf8_lossy(payload)));
        self.messages += 1;
    }

    fn notice(&mut self, line: String) {
        let is_notice = |line: &&String| line.starts_with("view") || line.starts_with("forgotten");
        if !self.lines.iter().rev().take_while(is_notice).any(|told| *told == line) {
            self.lines.push(line);
        }
    }

    fn view(&mut self, view: u64, members: &[u32]) {
        self.notice(format!("view {view} of {members:?}"));
    }

    fn forgotten(&mut self, client: ClientId) {
        self.notice(format!("forgotten {client}"));
    }

    fn bytes(&self) -> Vec<u8> {
        self.lines.join("\n").into_bytes()
    }

    fn read(bytes: &[u8], messages: u64) -> Self {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Self { lines: text.lines().map(str::to_owned).collect(), messages }
    }
}

#[derive(Clone, Default)]
struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    fn ledger(&self) -> Ledger {
        self.0.lock().expect("nobody panics").clone()
    }
}

impl Application for SharedLedger {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let mut ledger = self.0.lock().expect("nobody panics");
        messages.for_each(|message| ledger.message(message.client, message.payload));
    }

    fn client_forgotten(&mut self, subgroup: SubgroupId, client: ClientId) {
        assert_eq!(subgroup, GROUP);
        self.0.lock().expect("nobody panics").forgotten(client);
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let members: Vec<u32> = change.view.members.iter().map(|node| node.get()).collect();
        self.0.lock().expect("nobody panics").view(change.view.id.0, &members);
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        Box::new(Cursor::new(self.ledger().bytes()))
    }

    fn restore(&mut self, _: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        *self.0.lock().expect("nobody panics") = Ledger::read(&bytes, 0);
        Ok(())
    }
}

/// A place for a group, and its description.
struct Place {
    root: TempDir,
    description: Description,
}

impl Place {
    fn new(carrier: Carrier) -> Self {
        let mut description = Description::local("followed", 3, 8, 64);
        description.heartbeat_ms = 10;
        description.failure_timeout_ms = 2_000;
        description.subgroups[0].clients = true;
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
        Self { root: tempfile::tempdir_in("/dev/shm").expect("a folder"), description }
    }

    fn start(&self, node: u32, forming: Forming) -> (Running, SharedLedger) {
        let application = SharedLedger::default();
        let options = StartOptions {
            root: Root::under(self.root.path()),
            time_limit: PATIENCE,
            forming,
            ..StartOptions::new(node)
        };
        let running = start(self.description.clone(), options, application.clone());
        (running.expect("it starts"), application)
    }

    /// Starts all nodes, which form the group.
    fn start_all(&self) -> Vec<(Running, SharedLedger)> {
        std::thread::scope(|scope| {
            let forming = || Forming { new_group: true, ..Forming::default() };
            let starts: Vec<_> =
                (0..3).map(|node| scope.spawn(move || self.start(node, forming()))).collect();
            starts.into_iter().map(|start| start.join().expect("it starts")).collect()
        })
    }

    /// Returns the members, starting with the given one.
    fn members(&self, first: usize) -> Members {
        let root = Root::under(self.root.path());
        let endpoints = ControlEndpoints::of(&self.description, &root).expect("addresses");
        let mut addresses: Vec<_> = endpoints.addresses().cloned().collect();
        addresses.rotate_left(first);
        Members::at(addresses).time_limit(PATIENCE)
    }
}

/// A follower, and what it knows.
struct Follower {
    subscriber: Subscriber,
    ledger: Ledger,
    /// The positions of the states that the follower has received.
    states: Vec<u64>,
    /// The positions at which the group's history started to differ.
    changed: Vec<u64>,
}

impl Follower {
    fn new(members: Members) -> Self {
        let subscriber = Subscriber::follow(members).expect("a member takes it");
        let (states, changed) = (Vec::new(), Vec::new());
        Self { subscriber, ledger: Ledger::default(), states, changed }
    }

    fn take(&mut self, timeout: Duration) {
        match self.subscriber.next_within(timeout) {
            Ok(Event::Message(message)) => {
                assert_eq!(message.place, self.ledger.messages, "places have no gap");
                self.ledger.message(message.client, &message.payload);
            }
            Ok(Event::State { place, state }) => {
                self.states.push(place);
                self.ledger = Ledger::read(&state, place);
            }
            Ok(Event::Changed { from }) => self.changed.push(from),
            Ok(Event::View(view)) => self.ledger.view(view.view, &view.members),
            Ok(Event::Forgotten(client)) => self.ledger.forgotten(client),
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert!(timeout < PATIENCE, "{error}"),
        }
    }

    /// Reads until the follower knows as much as the ledger.
    fn catch_up(&mut self, to: &Ledger) {
        let until = Instant::now() + PATIENCE;
        while self.ledger.lines.len() < to.lines.len() {
            assert!(Instant::now() < until, "{:?} and not {to:?}", self.ledger);
            self.take(Duration::from_millis(10));
        }
        assert_eq!(self.ledger.lines, to.lines);
    }
}

fn publish(publisher: &Publisher, lines: std::ops::Range<u32>) {
    for line in lines {
        publisher.publish(format!("{line}").as_bytes()).expect("it is taken");
    }
    publisher.wait(PATIENCE).expect("they are delivered");
}

/// Followers connect at any moment and to any member, and one member ends. In the end, each
/// follower knows the same, in the same order, as a member that was present all the time.
#[test]
fn followers_match_members_despite_member_loss() {
    for carrier in [Carrier::SharedMemory, Carrier::Tcp] {
        let place = Place::new(carrier);
        let mut running = place.start_all();
        let mut followers = vec![Follower::new(place.members(2))];
        let publisher = Publisher::open(place.members(1), PublisherOptions::default());
        let publisher = publisher.expect("a member takes it");
        let mut sender = running[0].0.sender_of(GROUP).expect("it sends");
        for round in 0..5 {
            publish(&publisher, round * 10..round * 10 + 10);
            sender.send(b"of a member", PATIENCE).expect("there is room");
            followers.push(Follower::new(place.members(round as usize % 3)));
            let other = Publisher::open(place.members(0), PublisherOptions::default());
            let other = other.expect("a member takes it");
            publish(&other, 0..3);
            other.close(PATIENCE).expect("nothing is under way");
        }
        // All connected followers have the last message before their member ends.
        let before = running[0].1.ledger();
        followers.iter_mut().for_each(|follower| follower.catch_up(&before));
        drop(running.pop());
        publish(&publisher, 50..60);
        followers.push(Follower::new(place.members(0)));
        publisher.close(PATIENCE).expect("nothing is under way");
        // The control message about the client's end follows the lines.
        let until = Instant::now() + PATIENCE;
        let is_last = |ledger: &Ledger| {
            ledger.lines.iter().filter(|line| line.starts_with("forgotten")).count() == 6
        };
        while !is_last(&running[0].1.ledger()) {
            assert!(Instant::now() < until, "{:?}", running[0].1.ledger());
            std::thread::sleep(Duration::from_millis(1));
        }
        let all = running[0].1.ledger();
        for (number, follower) in followers.iter_mut().enumerate() {
            follower.catch_up(&all);
            assert_eq!(follower.states.len(), 1, "follower {number} went on where it was");
        }
        assert_eq!(all.messages, 60 + 5 + 15);
    }
}

/// A new group under the same addresses reuses the positions of the earlier one, but a follower of
/// the earlier group is not mistaken for one of the new group. It learns of the new group, and
/// receives its state, whether that is longer or shorter than what it knows.
#[test]
fn follower_restores_state_of_re_formed_group() {
    for lines in [2, 20] {
        let place = Place::new(Carrier::Tcp);
        let running = place.start_all();
        let mut follower = Follower::new(place.members(0));
        let open = || Publisher::open(place.members(0), PublisherOptions::default());
        publish(&open().expect("a member takes it"), 0..5);
        while follower.ledger.messages < 5 {
            follower.take(PATIENCE);
        }
        drop(running);
        let running = place.start_all();
        publish(&open().expect("a member takes it"), 100..100 + lines);
        while follower.ledger.messages != u64::from(lines) || follower.states.len() < 2 {
            follower.take(PATIENCE);
        }
        assert_eq!(follower.changed, [0]);
        follower.catch_up(&running[0].1.ledger());
    }
}
