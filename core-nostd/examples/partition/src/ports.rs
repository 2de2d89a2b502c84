//! The requirements on a partition's ports, and a partition's reports to the health monitor.

use tramontane_core::health::HealthEvent;

/// Size in bytes of the largest message in the queuing ports.
pub const MESSAGE_BYTES: usize = 128;

/// Size in bytes of a message in the sampling ports.
pub const SAMPLE_BYTES: usize = 40;

/// A port is not as configured, or it has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortError;

/// Two queuing ports and two sampling ports, one of each in each direction, and the path to the
/// health monitor. No call waits.
///
/// A queue loses nothing and keeps its order as long as its receiver is alive, but it may be full.
pub trait Ports {
    /// Puts a message into the queue. Returns false if the queue is full.
    ///
    /// # Errors
    /// See [`PortError`].
    fn send(&mut self, message: &[u8]) -> Result<bool, PortError>;

    /// Takes the next message from the queue and returns its length, or `None` if there is none.
    ///
    /// # Errors
    /// See [`PortError`].
    fn receive(&mut self, into: &mut [u8; MESSAGE_BYTES]) -> Result<Option<usize>, PortError>;

    /// Publishes a message, which replaces the previous one.
    ///
    /// # Errors
    /// See [`PortError`].
    fn show(&mut self, sample: &[u8; SAMPLE_BYTES]) -> Result<(), PortError>;

    /// Returns the message that the partner is publishing, or `None` if it has never published one.
    ///
    /// # Errors
    /// See [`PortError`].
    fn look(&mut self) -> Result<Option<[u8; SAMPLE_BYTES]>, PortError>;

    /// Reports something to the health monitor.
    fn report(&mut self, report: HealthReport);
}

/// A report to a health monitor. The numbers are stable: first those of
/// [`HealthKind`](tramontane_core::health::HealthKind), and starting at 32 those of this example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthReport {
    /// A change of the partner's state.
    Health(HealthEvent),
    /// The partner belongs to a different group, or runs a different version of this example. The
    /// value is the partner's digest.
    OtherGroup(u64),
    /// This partition stops because a step found something impossible.
    Stopped(Why),
}

/// Reason why a partition stops for good. Only a restart helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// A port failed.
    Port = 1,
    /// A queue lost a message or delivered an impossible one.
    Queue = 2,
    /// The core refused to open or to step a node, or a member halted.
    Node = 3,
    /// The partner has restarted, but the membership is fixed.
    Partner = 4,
}

impl HealthReport {
    /// Returns the stable number of this reason.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Health(event) => event.kind.code(),
            Self::OtherGroup(_) => 32,
            Self::Stopped(_) => 33,
        }
    }

    /// Returns the report as the message of an application error: number, member, two zero bytes,
    /// time, and detail.
    #[must_use]
    pub fn encode(self) -> [u8; 20] {
        let (peer, since, detail) = match self {
            Self::Health(event) => (event.peer.get(), event.since.get(), event.detail),
            Self::OtherGroup(digest) => (0, 0, digest),
            Self::Stopped(why) => (0, 0, why as u64),
        };
        let mut bytes = [0; 20];
        bytes[0] = self.code();
        bytes[1] = peer.to_le_bytes()[0];
        bytes[4..12].copy_from_slice(&since.to_le_bytes());
        bytes[12..].copy_from_slice(&detail.to_le_bytes());
        bytes
    }
}
