//! Clients from outside, as the rest of a member sees them. Who serves them is `clients`.

use tramontane_control::Session;
use tramontane_control::client_messages::{ClientRefusal, ClientReply, encode};
use tramontane_core::ids::SubgroupId;

/// What serves the clients of a member. It ends with the member.
pub(crate) trait Clients: Send + Sync {
    /// Serves a client, until its session ends.
    fn receive(&self, session: Session);

    /// Which record of a log which message is, in a subgroup that takes clients.
    fn record_places(&self, subgroup: SubgroupId) -> Option<Box<dyn RecordPlaces>>;

    /// Waits until nothing is served any more. The member has ended.
    fn end(&self);
}

/// Which record of a log which message is: a place counts messages alone, a log also what is said
/// of clients.
pub(crate) trait RecordPlaces: Send + Sync {
    /// The first place of a log that begins with that record.
    fn first(&self, record: u64) -> u64;

    /// The record of the message at a place, or one before it behind which no message comes first;
    /// nothing where that is not known any more.
    fn record_of(&self, place: u64) -> Option<u64>;
}

/// A member whose group takes no clients.
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

/// Refuses a client where none is served.
pub(crate) fn refuse(session: Session, why: ClientRefusal) {
    if let Some(mut session) = session.into_queued() {
        // Who does not take it ends all the same.
        let _ = session.put(&encode(&ClientReply::Refused(why)));
        let _ = session.flush();
    }
}
