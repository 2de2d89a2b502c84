//! Ports of two partitions that are stepped in turn in the same memory: on bare metal, and in
//! tests. The queues are deliberately small, so that they are often full.

use crate::group::WhichPartition;
use crate::ports::{HealthReport, MESSAGE_BYTES, PortError, Ports, SAMPLE_BYTES};
use crate::queue::Queue;

/// Number of messages that a queue holds.
pub const QUEUE: usize = 4;

/// The contents of the ports in one direction.
#[derive(Debug)]
struct PortDirection {
    queue: Queue<([u8; MESSAGE_BYTES], usize), QUEUE>,
    sample: Option<[u8; SAMPLE_BYTES]>,
    /// Number of times that the queue was full.
    full: u64,
}

impl PortDirection {
    const fn new() -> Self {
        Self { queue: Queue::new(), sample: None, full: 0 }
    }
}

/// The ports of both partitions. They belong to the system: a restarted partition finds them
/// unchanged.
#[derive(Debug)]
pub struct Wires {
    from_a: PortDirection,
    from_b: PortDirection,
}

impl Wires {
    /// Creates empty queues.
    #[must_use]
    pub const fn new() -> Self {
        Self { from_a: PortDirection::new(), from_b: PortDirection::new() }
    }

    /// Returns the ports of one partition for one step. Reports go to `monitor`.
    pub fn end<M: FnMut(HealthReport)>(
        &mut self,
        own: WhichPartition,
        monitor: M,
    ) -> PartitionPorts<'_, M> {
        let Self { from_a, from_b } = self;
        let (out, incoming) = match own {
            WhichPartition::A => (from_a, from_b),
            WhichPartition::B => (from_b, from_a),
        };
        PartitionPorts { out, incoming, monitor }
    }

    /// Returns the number of times that a queue was full.
    #[must_use]
    pub const fn full(&self) -> u64 {
        self.from_a.full.saturating_add(self.from_b.full)
    }
}

impl Default for Wires {
    fn default() -> Self {
        Self::new()
    }
}

/// One partition's ports.
#[derive(Debug)]
pub struct PartitionPorts<'w, M> {
    out: &'w mut PortDirection,
    incoming: &'w mut PortDirection,
    monitor: M,
}

impl<M: FnMut(HealthReport)> Ports for PartitionPorts<'_, M> {
    fn send(&mut self, message: &[u8]) -> Result<bool, PortError> {
        let mut slot = [0; MESSAGE_BYTES];
        let place = slot.get_mut(..message.len()).ok_or(PortError)?;
        for (to, from) in place.iter_mut().zip(message) {
            *to = *from;
        }
        let is_taken = self.out.queue.push((slot, message.len()));
        self.out.full = self.out.full.saturating_add(u64::from(!is_taken));
        Ok(is_taken)
    }

    fn receive(&mut self, into: &mut [u8; MESSAGE_BYTES]) -> Result<Option<usize>, PortError> {
        Ok(self.incoming.queue.pop().map(|(message, length)| {
            *into = message;
            length
        }))
    }

    fn show(&mut self, sample: &[u8; SAMPLE_BYTES]) -> Result<(), PortError> {
        self.out.sample = Some(*sample);
        Ok(())
    }

    fn look(&mut self) -> Result<Option<[u8; SAMPLE_BYTES]>, PortError> {
        Ok(self.incoming.sample)
    }

    fn report(&mut self, report: HealthReport) {
        (self.monitor)(report);
    }
}
