//! Ports of a system with ARINC 653 services, through the traits of `a653rs`.

use core::marker::PhantomData;

use crate::group::WhichPartition;
use crate::ports::{HealthReport, MESSAGE_BYTES, PortError, Ports, SAMPLE_BYTES};
use a653rs::bindings::{
    ApexErrorP4, ApexName, ApexQueuingPortP4, ApexSamplingPortP4, ErrorCode, ErrorReturnCode,
    PortDirection, QueuingDiscipline, QueuingPortId, SamplingPortId, Validity,
};

/// Number of messages that a queue holds. The system's configuration must contain the same number.
pub const QUEUE: u32 = 8;

/// Time without a new message after which a sampling port is stale. Nothing in this example depends
/// on it, because beats show whether the partner is alive.
const REFRESH_NS: i64 = 100_000_000;

/// The names of a partition's ports in the system's configuration.
#[derive(Clone, Copy, Debug)]
pub struct PortNames {
    /// Queuing ports, out and in.
    pub queues: [&'static str; 2],
    /// Sampling ports, out and in.
    pub samples: [&'static str; 2],
}

impl PortNames {
    /// Returns the names for a channel.
    #[must_use]
    pub const fn of(own: WhichPartition) -> Self {
        match own {
            WhichPartition::A => {
                Self { queues: ["rows-a", "rows-b"], samples: ["hello-a", "hello-b"] }
            }
            WhichPartition::B => {
                Self { queues: ["rows-b", "rows-a"], samples: ["hello-b", "hello-a"] }
            }
        }
    }
}

/// The ports of a partition in a system `S`.
#[derive(Debug)]
pub struct ApexPorts<S> {
    queues: [QueuingPortId; 2],
    samples: [SamplingPortId; 2],
    system: PhantomData<S>,
}

impl<S: ApexQueuingPortP4 + ApexSamplingPortP4 + ApexErrorP4> ApexPorts<S> {
    /// Creates the ports. Call this only while the partition starts.
    ///
    /// # Errors
    /// Fails if the system has no such port.
    pub fn create(names: &PortNames) -> Result<Self, ErrorReturnCode> {
        let [out, incoming] = names.queues;
        let queue = |name, direction| {
            let (size, discipline) = (MESSAGE_BYTES as u32, QueuingDiscipline::Fifo);
            S::create_queuing_port(named(name), size, QUEUE, direction, discipline)
        };
        let queues =
            [queue(out, PortDirection::Source)?, queue(incoming, PortDirection::Destination)?];
        let [out, incoming] = names.samples;
        let sample = |name, direction| {
            S::create_sampling_port(named(name), SAMPLE_BYTES as u32, direction, REFRESH_NS)
        };
        let samples =
            [sample(out, PortDirection::Source)?, sample(incoming, PortDirection::Destination)?];
        Ok(Self { queues, samples, system: PhantomData })
    }
}

/// Returns a name, padded with zeros.
fn named(name: &str) -> ApexName {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    bytes
}

impl<S: ApexQueuingPortP4 + ApexSamplingPortP4 + ApexErrorP4> Ports for ApexPorts<S> {
    fn send(&mut self, message: &[u8]) -> Result<bool, PortError> {
        // With a timeout of zero, the call never waits.
        match S::send_queuing_message(self.queues[0], message, 0) {
            Ok(()) => Ok(true),
            Err(ErrorReturnCode::NotAvailable | ErrorReturnCode::TimedOut) => Ok(false),
            Err(_) => Err(PortError),
        }
    }

    fn receive(&mut self, into: &mut [u8; MESSAGE_BYTES]) -> Result<Option<usize>, PortError> {
        // SAFETY: the buffer holds the largest message for which the port was created.
        match unsafe { S::receive_queuing_message(self.queues[1], 0, into) } {
            // A queue may have overflowed before this incarnation. Frame numbers show what a
            // session has lost.
            Ok((length, _overflow)) => usize::try_from(length).map(Some).map_err(|_| PortError),
            Err(ErrorReturnCode::NotAvailable | ErrorReturnCode::TimedOut) => Ok(None),
            Err(_) => Err(PortError),
        }
    }

    fn show(&mut self, sample: &[u8; SAMPLE_BYTES]) -> Result<(), PortError> {
        S::write_sampling_message(self.samples[0], sample).map_err(|_| PortError)
    }

    fn look(&mut self) -> Result<Option<[u8; SAMPLE_BYTES]>, PortError> {
        let mut sample = [0; SAMPLE_BYTES];
        // SAFETY: as above.
        match unsafe { S::read_sampling_message(self.samples[1], &mut sample) } {
            Ok((Validity::Valid | Validity::Invalid, length)) => {
                Ok((length as usize == SAMPLE_BYTES).then_some(sample))
            }
            // Nothing has ever been written to the port.
            Err(ErrorReturnCode::NoAction) => Ok(None),
            Err(_) => Err(PortError),
        }
    }

    fn report(&mut self, report: HealthReport) {
        // The health monitor's table determines the reaction.
        let _ = match report {
            HealthReport::Stopped(_) => {
                S::raise_application_error(ErrorCode::ApplicationError, &report.encode())
            }
            HealthReport::Health(_) | HealthReport::OtherGroup(_) => {
                S::report_application_message(&report.encode())
            }
        };
    }
}
