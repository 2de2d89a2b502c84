//! External clients, as seen by the rest of a member. The module `clients` serves them.

use tramontane_control::Session;
use tramontane_control::client_messages::{ClientRefusal, ClientReply, encode};
use tramontane_core::ids::SubgroupId;

/// The service for the clients of a member. It ends when the member ends.
pub(crate) trait Clients: Send + Sync {
    /// Serves a client until its session ends.
    fn receive(&self, session: Session);

    /// Returns the mapping from log records to messages in a subgroup that accepts clients.
    fn record_places(&self, subgroup: SubgroupId) -> Option<Box<dyn RecordPlaces>>;

    /// Waits until no client is being served. Called after the member has ended.
    fn end(&self);
}

/// Maps log records to messages. Sequence positions count messages only, but a log also contains
/// client control messages.
pub(crate) trait RecordPlaces: Send + Sync {
    /// Returns the first sequence position in a log that begins with that record.
    fn first(&self, record: u64) -> u64;

    /// Returns the record of the message at a sequence position, or an earlier record with no
    /// message in between. Returns `None` if the record is no longer known.
    fn record_of(&self, place: u64) -> Option<u64>;
}

/// A member whose group accepts no clients.
pub(crate) struct NoClients;

impl Clients for NoClients {
    fn receive(&self, session: Session) {
        refuse(session, ClientRefusal::NotAllowed);
    }

    fn record_places(&self, _subgroup: SubgroupId) -> Option<Box<dyn RecordPlaces>> {
        None
    }

    fn end(&self) {}
}

/// Refuses a client because this process serves none.
pub(crate) fn refuse(session: Session, why: ClientRefusal) {
    if let Some(mut session) = session.into_queued() {
        // A client that misses the refusal is disconnected anyway.
        let _ = session.put(&encode(&ClientReply::Refused(why)));
        let _ = session.flush();
    }
}
