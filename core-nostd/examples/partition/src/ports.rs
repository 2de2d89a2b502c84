//! What a partition needs of its ports, and what it tells its health monitor.

use tramontane_core::health::HealthEvent;

/// The largest message of the queuing ports, in bytes.
pub const MESSAGE_BYTES: usize = 128;

/// The message of the sampling ports, in bytes.
pub const SAMPLE_BYTES: usize = 40;

/// A port is not as it was configured, or it has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortError;

/// Two queuing ports and two sampling ports, one of each in each direction, and the way to the
/// health monitor. No call waits.
///
/// A queue loses nothing and keeps its order as long as its receiver lives; it may be full.
pub trait Ports {
    /// Puts a message into the queue; false if the queue is full.
    ///
    /// # Errors
    /// See [`PortError`].
    fn send(&mut self, message: &[u8]) -> Result<bool, PortError>;

    /// Takes the next message out of the queue, and says how long it is; nothing if there is none.
    ///
    /// # Errors
    /// See [`PortError`].
    fn receive(&mut self, into: &mut [u8; MESSAGE_BYTES]) -> Result<Option<usize>, PortError>;

    /// Shows a message, in the place of the one that was shown before.
    ///
    /// # Errors
    /// See [`PortError`].
    fn show(&mut self, sample: &[u8; SAMPLE_BYTES]) -> Result<(), PortError>;

    /// What the partner shows now; nothing if it has never shown anything.
    ///
    /// # Errors
    /// See [`PortError`].
    fn look(&mut self) -> Result<Option<[u8; SAMPLE_BYTES]>, PortError>;

    /// Hands something to the health monitor.
    fn report(&mut self, report: Report);
}

/// What a health monitor is told. The numbers are stable: those of
/// [`HealthKind`](tramontane_core::health::HealthKind), and from 32 on those of this example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// What became of the partner.
    Health(HealthEvent),
    /// The partner has another group, or another version of this example. Its digest.
    OtherGroup(u64),
    /// This partition stops: a step found something that cannot be.
    Stopped(Why),
}

/// Why a partition stops for good. Only a restart helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// A port failed.
    Port = 1,
    /// A queue lost something, or what came out of it cannot be.
    Queue = 2,
    /// The core refused to open or to step a node, or a member halted.
    Node = 3,
    /// The partner has restarted, and the membership is fixed.
    Partner = 4,
}

impl Report {
    /// The stable number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Health(event) => event.kind.code(),
            Self::OtherGroup(_) => 32,
            Self::Stopped(_) => 33,
        }
    }

    /// The report as the message of an application error: number, member, two bytes of nothing,
    /// since when, and the detail.
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
