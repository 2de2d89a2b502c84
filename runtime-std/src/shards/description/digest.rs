//! The digest with which two processes check that they have the same overlay file.

use super::Description;
use crate::group::description::digest::{Fields, hash};
use crate::rdma::DeviceOptions;

/// The fields of an overlay that are compared: those of its file, and the format of the rows that
/// this program derives from them.
const FIELDS: Fields<17> = Fields {
    names: [
        "name",
        "fabric",
        "heartbeat_ms",
        "failure_timeout_ms",
        "client_lease_ms",
        "clients_max",
        "client_window",
        "parent_window",
        "log_entries",
        "message_max",
        "references_from",
        "answer_max",
        "batching",
        "pass_on_early",
        "durable",
        "groups",
        "the format of rows",
    ],
    bits: 3,
};

impl Description {
    /// Returns the digest of everything that must be the same in all processes, including the
    /// format of their rows. Keys, folders and devices are not included, because each process
    /// chooses its own.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let Self { shm_dir: _, key_file: _, allow_clear: _, rdma: _, .. } = self;
        let Self { name, fabric, heartbeat_ms, failure_timeout_ms, client_lease_ms, .. } = self;
        let Self { clients_max, client_window, parent_window, log_entries, message_max, .. } = self;
        let Self { references_from, answer_max, batching, pass_on_early, durable, groups, .. } =
            self;
        // Device options that do not suit the fabric do not change the identity of the overlay.
        let alike = Self { rdma: DeviceOptions::default(), ..self.clone() };
        FIELDS.digest(&[
            hash(name),
            hash(fabric),
            hash(heartbeat_ms),
            hash(failure_timeout_ms),
            hash(client_lease_ms),
            hash(clients_max),
            hash(client_window),
            hash(parent_window),
            hash(log_entries),
            hash(message_max),
            hash(references_from),
            hash(answer_max),
            hash(batching),
            hash(pass_on_early),
            hash(durable),
            hash(groups),
            alike.overlay().map_or(0, |overlay| hash(&overlay.digest())),
        ])
    }

    /// Returns the fields of an overlay file in which two digests are known to differ.
    pub(in crate::shards) fn differing(own: u64, other: u64) -> String {
        let names = FIELDS.differing(own, other);
        // Most fields also change the rows, and are then the actual cause.
        match names.strip_suffix(", the format of rows") {
            Some(causes) => causes.to_owned(),
            None => names,
        }
    }
}
