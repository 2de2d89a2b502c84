//! Two partitions that are stepped in turn and restarted. The results of all incarnations are
//! compared message by message.

#![allow(dead_code, reason = "each test uses its own part")]

use tramontane_core::ids::Time;
use tramontane_partition::group::WhichPartition;
use tramontane_partition::ports::HealthReport;
use tramontane_partition::shim::stepped::Wires;
use tramontane_partition::{Partition, PartitionStorage, Phase};

/// Total number of messages from both partitions.
pub const MESSAGES: u64 = 1_000;

/// A run: the wires, the current incarnations, and the known part of the order.
pub struct PartitionRun {
    pub wires: Wires,
    pub lives: [Option<Partition<'static>>; 2],
    pub incarnations: [u32; 2],
    pub reports: [Vec<HealthReport>; 2],
    /// Digest after each message, once a partition has delivered it.
    order: Vec<Option<u64>>,
    /// Number of messages, from both partitions, that each incarnation has compared.
    compared: [u64; 2],
    pub steps: u64,
    messages: u64,
}

fn begin(own: WhichPartition, incarnation: u32, messages: u64) -> Partition<'static> {
    let storage: &'static PartitionStorage = Box::leak(Box::default());
    let rows = Box::leak(Box::new(storage.rows()));
    Partition::new(own, incarnation, storage, rows, messages / 2)
}

impl PartitionRun {
    pub fn new(messages: u64) -> Self {
        Self {
            wires: Wires::new(),
            lives: WhichPartition::BOTH.map(|own| Some(begin(own, 1, messages))),
            incarnations: [1; 2],
            reports: [vec![], vec![]],
            order: vec![None; messages as usize + 1],
            compared: [0; 2],
            steps: 0,
            messages,
        }
    }

    /// Steps one partition, 100 microseconds after the last step of either partition.
    pub fn step(&mut self, own: WhichPartition) -> Option<Phase> {
        let index = own.index();
        self.steps += 1;
        let now = Time(self.steps * 100_000);
        let reports = &mut self.reports[index];
        let mut ports = self.wires.end(own, |report| reports.push(report));
        let life = self.lives[index].as_mut()?;
        let phase = life.step(now, &mut ports);
        let orders = life.orders();
        if orders.count() < self.compared[index] {
            self.compared[index] = 0;
            self.forget_if_nobody_has_it();
        }
        let Some(life) = &self.lives[index] else { return None };
        let orders = life.orders();
        for count in self.compared[index] + 1..=orders.count() {
            // Messages that came with a state and are no longer kept were compared at the other
            // partition.
            let Some(digest) = orders.digest_after(count) else { continue };
            let known = self.order[count as usize].get_or_insert(digest);
            assert_eq!(*known, digest, "message {count} at {own:?}, step {}", self.steps);
        }
        self.compared[index] = orders.count();
        Some(phase)
    }

    /// Steps the partition whose turn it is.
    pub fn step_in_turn(&mut self) {
        self.step(if self.steps.is_multiple_of(2) { WhichPartition::A } else { WhichPartition::B });
    }

    /// Ends the incarnation at once, and discards everything that it had.
    pub fn kill(&mut self, own: WhichPartition) {
        self.lives[own.index()] = None;
        self.forget_if_nobody_has_it();
    }

    /// If neither partition has any message left, the order may begin again.
    fn forget_if_nobody_has_it(&mut self) {
        if WhichPartition::BOTH.iter().all(|own| self.count(*own) == 0) {
            self.order.fill(None);
        }
    }

    /// Starts a new incarnation.
    pub fn start(&mut self, own: WhichPartition) {
        let index = own.index();
        self.incarnations[index] += 1;
        self.compared[index] = 0;
        self.lives[index] = Some(begin(own, self.incarnations[index], self.messages));
    }

    pub fn count(&self, own: WhichPartition) -> u64 {
        self.lives[own.index()].as_ref().map_or(0, |life| life.orders().count())
    }

    pub fn is_done(&self) -> bool {
        WhichPartition::BOTH.iter().all(|own| self.count(*own) == self.messages)
    }

    /// Steps both partitions in turn until everything has been delivered.
    pub fn finish(&mut self) -> Result<(), String> {
        for _ in 0..20_000 {
            if self.is_done() {
                return self.agree();
            }
            for own in WhichPartition::BOTH {
                self.step(own);
            }
        }
        let phases = self.lives.each_ref().map(|life| life.as_ref().map(Partition::phase));
        let counts = WhichPartition::BOTH.map(|own| self.count(own));
        Err(format!("{counts:?} messages, {phases:?}, {:?}", self.reports))
    }

    fn agree(&self) -> Result<(), String> {
        let [Some(a), Some(b)] = &self.lives else { return Err("one is gone".into()) };
        let each = WhichPartition::BOTH.map(|own| a.orders().count_of(own));
        if a.orders() != b.orders() || each != [self.messages / 2; 2] {
            return Err(format!("{:?} and {:?}", a.orders(), b.orders()));
        }
        Ok(())
    }
}
