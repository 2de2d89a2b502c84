//! The reasons why a process does not become a replica or client.

use tramontane_control::Address;
use tramontane_core::tram::OpenError;

use super::description_error::DescriptionError;
use super::durable::FolderError;
use super::places::NoSuchPlace;
use crate::group::ControlEndpointsError;
use crate::member::Stopped;
use crate::rdma::NoFabric;
use crate::shared_memory;

/// The reason why a process did not become a replica or client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The overlay's description is invalid.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The overlay has no such replica.
    #[error(transparent)]
    NoSuchPlace(#[from] NoSuchPlace),
    /// The replica's data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The control servers of the other replicas cannot be reached.
    #[error(transparent)]
    ControlEndpoints(#[from] ControlEndpointsError),
    /// There is no fabric to carry the overlay's writes.
    #[error(transparent)]
    Fabric(#[from] NoFabric),
    /// The process's directory in shared memory is not available.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// The process's own address is in use or does not exist.
    #[error(
        "cannot listen at {address}: {source}; stop replica {replica} if it is already running"
    )]
    Listen {
        /// The address of the socket.
        address: Address,
        /// This replica.
        replica: String,
        /// The error reported by the system.
        source: std::io::Error,
    },
    /// A process of the overlay has a different key, program or configuration.
    #[error("replica {replica}: {why}")]
    Refused {
        /// The name of the replica.
        replica: String,
        /// Its answer.
        why: String,
    },
    /// The required replicas did not connect.
    #[error("these replicas did not respond in time: {}; start them", missing.join(", "))]
    NotMet {
        /// Their names.
        missing: Vec<String>,
    },
    /// A majority of the group's replicas have lost their memory, so no replica has the group's
    /// state.
    #[error(
        "group {group} lost a majority of its replicas at once, and its state with them; stop all \
         processes of the overlay, remove their data folders if they have any, and start them again"
    )]
    GroupLost {
        /// The group.
        group: String,
    },
    /// All client places are taken.
    #[error(
        "all {0} client places are taken; stop a client, wait until the lease of a lost client has \
         expired (client_lease_ms), or raise clients_max"
    )]
    NoSeat(u16),
    /// This process may not open enough files for all clients.
    #[error(
        "{clients} clients need up to {needed} descriptors in each replica, but this process may \
         open {limit}; raise the limit (ulimit -n), or lower clients_max"
    )]
    Descriptors {
        /// The maximum number of clients.
        clients: u16,
        /// The number of descriptors that a replica needs.
        needed: u64,
        /// The limit of this process.
        limit: u64,
    },
    /// The application refuses the state.
    #[error("the application refused the state of its group: {0}")]
    StateRefused(std::io::Error),
    /// There is no memory for the log.
    #[error("not enough memory: {0}; lower log_entries or message_max")]
    NoMemory(String),
    /// The fabric cannot write entries with the longest messages to logs.
    #[error(
        "the overlay's messages are too long for a device without order between writes; set \
         message_max to at most {most}, or the RDMA order to writes if NICs and switches keep order"
    )]
    MessagesTooLong {
        /// Maximum length of a message in bytes.
        most: u32,
    },
    /// The core refuses the parameters.
    #[error("the replica cannot be opened: {0}")]
    Open(#[from] OpenError),
    /// The wait was cancelled.
    #[error("interrupted while starting")]
    Cancelled,
    /// The process stopped before it became a replica or client.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A system call failed.
    #[error("cannot start: {0}; resolve the cause, and try again")]
    Io(#[from] std::io::Error),
}
