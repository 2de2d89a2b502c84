//! Regions over TCP satisfy the contract in many views: unencrypted and with a key, with the
//! kernel's default buffers and with small ones.

use std::time::Duration;

use tramontane_contract::{
    Breach, PROCESSES, Process, RegionBench, RegionTestbed, Turns, race_in_threads, run_regions,
};
use tramontane_control::SharedKey;
use tramontane_core::ids::NodeId;
use tramontane_tcp::{Settings, Tcp};

use crate::support::{connections, ids, key, small};

/// The duration of a pass. The end of a connection must be reported within `passes_to_settle`
/// passes.
const PASS: Duration = Duration::from_micros(20);

struct Connected {
    key: Option<SharedKey>,
    settings: Settings,
    rounds: u64,
}

struct Processes {
    fabrics: [Option<Tcp>; PROCESSES],
    rounds: u64,
}

impl RegionTestbed for Connected {
    type Bench<'b> = Processes;

    fn with(&self, scene: impl FnOnce(&mut Processes)) {
        let mut fabrics = [const { None }; PROCESSES];
        for ((fabric, own), peers) in
            fabrics.iter_mut().zip(ids()).zip(connections(self.key.clone()))
        {
            let mut tcp = Tcp::new(own, self.settings).expect("descriptors");
            for (peer, connection) in ids().into_iter().zip(peers) {
                if let Some(connection) = connection {
                    tcp.add_peer(peer, connection).expect("a socket");
                }
            }
            *fabric = Some(tcp);
        }
        scene(&mut Processes { fabrics, rounds: self.rounds });
    }
}

impl RegionBench for Processes {
    type Fabric = Tcp;

    fn nodes(&self) -> [NodeId; PROCESSES] {
        ids().try_into().expect("three")
    }

    fn fabric(&mut self, process: Process) -> &mut Tcp {
        self.fabrics[process.0].as_mut().expect("nobody uses who was lost")
    }

    fn pass(&mut self) {
        std::thread::sleep(PASS);
    }

    fn passes_to_settle(&self) -> u32 {
        24
    }

    fn lose(&mut self, process: Process) -> Result<(), &'static str> {
        // Imitates a process that exits: its sockets are closed without a last frame.
        self.fabrics[process.0] = None;
        Ok(())
    }

    fn rounds(&self) -> u64 {
        self.rounds
    }

    fn views_tried(&self) -> usize {
        256
    }

    fn race(&mut self, actors: [(Process, Turns<'_, Tcp>); 2]) -> Result<(), Breach> {
        let [(first, one), (second, other)] = actors;
        let fabrics = self.fabrics.get_disjoint_mut([first.0, second.0]).expect("two processes");
        let fabrics = fabrics.map(|fabric| fabric.as_mut().expect("nobody uses who was lost"));
        race_in_threads(fabrics, [one, other])
    }
}

#[track_caller]
fn assert_kept(what: &str, how: &Connected) {
    let report = run_regions(how);
    println!("Regions over TCP, {what}:\n{report}");
    report.assert_kept();
    let silent: Vec<&str> = report.not_applicable().collect();
    assert_eq!(silent, <[&str; 0]>::default(), "{what}: clauses that say nothing");
}

#[test]
fn regions_over_tcp_satisfy_the_contract() {
    assert_kept("in clear", &Connected { key: None, settings: Settings::default(), rounds: 2_000 });
}

#[test]
fn regions_with_small_tcp_buffers_satisfy_the_contract() {
    assert_kept("small buffers", &Connected { key: None, settings: small(), rounds: 500 });
}

#[test]
fn regions_over_keyed_tcp_satisfy_the_contract() {
    assert_kept("with a key", &Connected { key: key(), settings: small(), rounds: 500 });
}
