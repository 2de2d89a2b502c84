//! Regions and many views over shared memory satisfy the contract. Three members run within this
//! process, each with its own files and mappings. For real processes, see `regions_processes`.

use std::sync::Arc;

use tramontane_contract::{
    Breach, PROCESSES, Process, RegionBench, RegionTestbed, Turns, race_in_threads, run_regions,
};
use tramontane_core::fabric::HostFabric as _;
use tramontane_core::ids::NodeId;
use tramontane_shared_memory::{Residence, SharedMemory};

use crate::support::{LONG, NEVER, SharedFolder, name};

pub struct SharedRegions;

impl SharedRegions {
    /// Fresh processes.
    pub fn processes() -> Processes {
        let place = SharedFolder::new();
        let root = place.root();
        let join = |index: usize| {
            let (node, start) = (node(index), 1 + index as u64);
            let residence = Residence::claim(&root, &name("regions"), node, 5, start, LONG, &NEVER);
            SharedMemory::for_residence(&Arc::new(residence.expect("its place")))
        };
        let fabrics = std::array::from_fn(|index| Some(join(index)));
        Processes { _place: place, fabrics, passes: 0 }
    }
}

impl RegionTestbed for SharedRegions {
    type Bench<'b> = Processes;

    fn with(&self, scene: impl FnOnce(&mut Processes)) {
        scene(&mut Self::processes());
    }
}

fn node(index: usize) -> NodeId {
    NodeId(10 + u32::try_from(index).expect("few"))
}

pub struct Processes {
    fabrics: [Option<SharedMemory>; PROCESSES],
    passes: u32,
    _place: SharedFolder,
}

/// Number of polls between two runs of a process's timer while a test waits.
const PASSES_PER_LOOK: u32 = 16;

impl Processes {
    /// Takes the fabrics for a separate bench. Everything that they need stays here.
    pub fn take_fabrics(&mut self) -> [Option<SharedMemory>; PROCESSES] {
        std::mem::take(&mut self.fabrics)
    }
}

impl RegionBench for Processes {
    type Fabric = SharedMemory;

    fn nodes(&self) -> [NodeId; PROCESSES] {
        std::array::from_fn(node)
    }

    fn fabric(&mut self, process: Process) -> &mut SharedMemory {
        self.fabrics[process.0].as_mut().expect("nobody uses who was lost")
    }

    fn pass(&mut self) {
        self.passes += 1;
        if self.passes.is_multiple_of(PASSES_PER_LOOK) {
            for fabric in self.fabrics.iter_mut().flatten() {
                fabric.check_peers();
            }
        }
    }

    fn passes_to_settle(&self) -> u32 {
        2 * PASSES_PER_LOOK
    }

    fn lose(&mut self, process: Process) -> Result<(), &'static str> {
        // Releases the process's locks without leaving, as if the process had exited.
        self.fabrics[process.0] = None;
        Ok(())
    }

    fn rounds(&self) -> u64 {
        20_000
    }

    fn race(&mut self, actors: [(Process, Turns<'_, SharedMemory>); 2]) -> Result<(), Breach> {
        let [(one, first), (other, second)] = actors;
        let fabrics = self.fabrics.get_disjoint_mut([one.0, other.0]).expect("two of them");
        race_in_threads(fabrics.map(|fabric| fabric.as_mut().expect("there")), [first, second])
    }
}

#[test]
fn regions_on_shared_memory_satisfy_the_contract() {
    let report = run_regions(&SharedRegions);
    println!("Regions on shared memory:\n{report}");
    report.assert_kept();
    assert_eq!(report.not_applicable().count(), 0, "clauses that say nothing");
}
