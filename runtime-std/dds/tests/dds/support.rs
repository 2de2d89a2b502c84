//! Domains whose participants are members in the same process.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::free_addresses::free_addresses;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tramontane::group::ControlEndpoints;
use tramontane::shared_memory::Root;
use tramontane::{Carrier, Description, Forming, StartOptions};
use tramontane_dds::{
    DataReader, DataWriter, Domain, DomainParticipant, Level, Members, OutsideParticipant, Sample,
    Selection, TopicDescription, TopicPlaces, TypeSupport, WaitSet,
};

/// Time limit for any wait, generous enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A sample with a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    pub aircraft: u32,
    pub number: u64,
    pub note: String,
}

impl TypeSupport for Track {
    const TYPE_NAME: &'static str = "Track";
    type Key = u32;
    fn key(&self) -> u32 {
        self.aircraft
    }
}

/// Returns a track with this number.
pub fn track(aircraft: u32, number: u64) -> Track {
    Track { aircraft, number, note: format!("{aircraft}/{number}") }
}

/// A domain for tests, with folders of its own.
pub struct TestDomain {
    root: TempDir,
    /// Folders for logs and memberships, by node.
    data: TempDir,
    pub domain: Domain,
    /// The approximate size, in bytes, of the part of a log that is kept.
    pub keep_bytes: Option<u64>,
}

impl TestDomain {
    pub fn new(nodes: u32, topics: impl IntoIterator<Item = TopicDescription>) -> Self {
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let group = Description::builder("dds").nodes(nodes).heartbeat_ms(10, 2_000);
        let data = tempfile::tempdir().expect("a folder");
        Self { root, data, domain: Domain::new(group, topics).expect("a domain"), keep_bytes: None }
    }

    /// Creates a domain over a carrier, with places for topics created at run time.
    pub fn with_places(
        carrier: Carrier,
        nodes: u32,
        places: impl IntoIterator<Item = TopicPlaces>,
    ) -> Self {
        let mut place = Self::new(nodes, []).over(carrier);
        place.domain = place.domain.with_places(places).expect("a domain");
        place
    }

    /// Changes the carrier of the domain.
    pub fn over(mut self, carrier: Carrier) -> Self {
        if carrier == Carrier::Tcp {
            let addresses = free_addresses(self.domain.group().nodes.len()).expect("free ports");
            self.domain = self.domain.with_group(|group| {
                group.fabric = carrier;
                for (node, address) in group.nodes.iter_mut().zip(addresses) {
                    node.address = Some(address.into());
                }
            });
        }
        self
    }

    /// Returns the members that an external participant may connect to, with node `first` first.
    pub fn members(&self, first: usize) -> Members {
        let root = Root::under(self.root.path());
        let endpoints = ControlEndpoints::of(self.domain.group(), &root).expect("addresses");
        let mut addresses: Vec<_> = endpoints.addresses().cloned().collect();
        addresses.rotate_left(first);
        Members::at(addresses).time_limit(PATIENCE)
    }

    /// Creates an external participant that tries node `first` first.
    pub fn connect(&self, first: usize) -> OutsideParticipant {
        OutsideParticipant::connect(self.members(first)).expect("a member takes it")
    }

    /// Creates a domain in which these nodes form the group.
    pub fn formed_by(
        nodes: u32,
        initial: Vec<u32>,
        topics: impl IntoIterator<Item = TopicDescription>,
    ) -> Self {
        let mut place = Self::new(nodes, topics);
        place.domain = place.domain.with_group(|group| group.initial = initial);
        place
    }

    pub fn join(&self, node: u32) -> DomainParticipant {
        let root = Root::under(self.root.path());
        let is_logged = self.domain.topics().iter().any(|topic| topic.level == Level::Logged);
        let data = is_logged.then(|| self.data.path().join(node.to_string()));
        // Over a network, a node must remember its membership.
        let state = Some(self.data.path().join(format!("state-{node}")));
        let forming = Forming { state, ..Forming::default() };
        let data_keep_bytes = self.keep_bytes;
        let options =
            StartOptions { root, data, data_keep_bytes, forming, ..StartOptions::new(node) };
        DomainParticipant::join(&self.domain, options).expect("it joins")
    }

    /// Removes a node's record of its membership, so that it may form the group again.
    pub fn forget(&self, node: u32) {
        let state = self.data.path().join(format!("state-{node}"));
        std::fs::remove_dir_all(state).expect("it has been a member");
    }

    /// Joins these nodes at the same time.
    pub fn join_all(&self, nodes: std::ops::Range<u32>) -> Vec<DomainParticipant> {
        std::thread::scope(|scope| {
            let joins: Vec<_> = nodes.map(|node| scope.spawn(move || self.join(node))).collect();
            joins.into_iter().map(|join| join.join().expect("it joins")).collect()
        })
    }
}

/// Waits until a condition holds.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until a writer has `count` readers.
pub fn until_read_by<T: TypeSupport>(writer: &DataWriter<T>, count: u32) {
    until("readers come", || writer.publication_matched_status().current_count == count);
}

/// Takes `count` samples.
pub fn take<T: TypeSupport>(reader: &DataReader<T>, count: usize) -> Vec<Sample<T>> {
    let mut set = WaitSet::new();
    set.attach(reader.read_condition(Selection::unread()));
    let (started, mut taken) = (Instant::now(), Vec::new());
    while taken.len() < count {
        assert!(started.elapsed() < PATIENCE, "{} of {count} samples came", taken.len());
        if !set.wait(Duration::from_millis(50)).is_empty() {
            taken.extend(reader.take(&Selection::default()));
        }
    }
    taken
}

/// Takes `count` values, or a few more, skipping state changes of instances between them.
pub fn take_values<T: TypeSupport>(reader: &DataReader<T>, count: usize) -> Vec<Sample<T>> {
    let mut values: Vec<Sample<T>> = Vec::new();
    while values.len() < count {
        let taken = take(reader, 1);
        values.extend(taken.into_iter().filter(|sample| sample.info.valid_data));
    }
    values
}

/// The records of a listener.
pub type Notes<N> = Arc<Mutex<Vec<N>>>;
