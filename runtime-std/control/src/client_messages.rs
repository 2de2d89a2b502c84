//! The messages between external clients and the members that serve them (EXT-1), in a session of
//! [`Purpose::Client`](super::Purpose::Client).
//!
//! A session has one task, which is decided by its first request:
//!
//! ```text
//! publisher                          member
//! Attach                ---->
//!                       <----        Attached, once the group has attached it; or Refused
//! Publish, Publish ..   ---->
//!                       <----        Reached, as more lines are delivered and become durable
//! End                   ---->        (or the connection ends, and the lease begins)
//!
//! subscriber
//! Subscribe             ---->
//!                       <----        Subscribed, then Messages and Gap
//!
//! follower: a subscriber that begins with the state
//! Follow                ---->
//!                       <----        State, State .., unless it resumes at its position;
//!                                    Following; then Messages, View and Forgotten; Closed at last
//!
//! any client
//! Query                 ---->
//!                       <----        Answer
//! ```
//! A member that has sent nothing for [`ALIVE_PAUSE`] sends `Alive`. A client that has received
//! nothing for [`SILENCE_MAX`] connects to another member, because a stopped member keeps its
//! connections open.
//!
//! # Invariants
//! - A client numbers its lines from zero, without gaps, in each of its incarnations. These numbers
//!   are its *ordinals*.
//! - A *place* is the number of messages delivered in the subgroup since the group began. All
//!   members use the same numbers.
//! - A [`Position`] identifies the messages before a place. A client that resumes compares its
//!   position with the member's.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Idle time after which a member sends a keep-alive.
pub const ALIVE_PAUSE: Duration = Duration::from_millis(500);

/// The time without a message after which a client assumes that its member has stopped or been
/// lost.
pub const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The maximum length of a client's name, in bytes.
pub const NAME_MAX: usize = 64;

/// The maximum length of a request excluding its lines, in bytes.
pub const REQUEST_AROUND: usize = 1 << 10;

/// The maximum number of places in one `Compare`.
pub const COMPARED_MAX: usize = 64;

/// The maximum number of lines in one `Publish`.
pub const LINES_MAX: usize = 1 << 10;

/// The identity of a client in the whole group.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ClientId(pub u64);

impl fmt::Display for ClientId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// A client and its incarnation. A client that restarts has a new incarnation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ClientLife {
    /// The client.
    pub id: ClientId,
    /// The incarnation.
    pub incarnation: u64,
}

/// The progress of a message (DUR-2). Each level implies all earlier ones, except `DurableHere`,
/// which implies nothing about other members' disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// The client's member has delivered the message, which implies that every surviving member has
    /// it.
    #[default]
    Delivered,
    /// The message is on the disk of the client's member.
    DurableHere,
    /// The message is on the disks of a majority of the subgroup's members.
    DurableMajority,
    /// The message is on the disks of all of the subgroup's members.
    DurableEverywhere,
}

/// The number of messages that have reached each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Delivered.
    pub delivered: u64,
    /// Number of messages durable at the member.
    pub durable_here: u64,
    /// Number of messages durable at a majority.
    pub durable_majority: u64,
    /// Durable everywhere.
    pub durable_everywhere: u64,
}

impl Reached {
    /// Returns the number of messages that have reached a level.
    #[must_use]
    pub const fn at(&self, level: Level) -> u64 {
        match level {
            Level::Delivered => self.delivered,
            Level::DurableHere => self.durable_here,
            Level::DurableMajority => self.durable_majority,
            Level::DurableEverywhere => self.durable_everywhere,
        }
    }
}

/// Borrowed bytes of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes<'m>(#[serde(borrow, serialize_with = "whole")] pub &'m [u8]);

/// Encodes bytes as a whole, not as a sequence of numbers.
fn whole<S: Serializer>(bytes: &&[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

/// The subgroup that a client asks for, and the client's name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target<'m> {
    /// The name of the group, or an empty string for any group.
    pub group: &'m str,
    /// The name of the subgroup, or an empty string for the first one that accepts clients.
    pub subgroup: &'m str,
    /// The name of the client, for people.
    pub name: &'m str,
}

/// A client's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientRequest<'m> {
    /// Publish as this client. `is_new` is false if the client has been attached before.
    Attach {
        /// Subgroup.
        #[serde(borrow)]
        target: Target<'m>,
        /// Client.
        life: ClientLife,
        /// Whether this incarnation of the client is new.
        is_new: bool,
        /// The level that the client waits for.
        level: Level,
    },
    /// Consecutive lines.
    Publish {
        /// The ordinal of the first line.
        first: u64,
        /// The lines.
        #[serde(borrow)]
        lines: Vec<Bytes<'m>>,
    },
    /// Subscribe.
    Subscribe {
        /// Subgroup.
        #[serde(borrow)]
        target: Target<'m>,
        /// The first requested place; `None` for the next message.
        from: Option<u64>,
        /// The level that messages must have reached. If `None`, the member chooses the lowest
        /// level that no crash can undo.
        level: Option<Level>,
    },
    /// Ask for the status.
    Query {
        /// Subgroup.
        #[serde(borrow)]
        target: Target<'m>,
    },
    /// The client ends, and will publish nothing more. Its lease ends at once.
    End,
    /// Subscribe, with views and forgotten clients reported in the order.
    Follow {
        /// Subgroup.
        #[serde(borrow)]
        target: Target<'m>,
        /// The next place, or `None` to receive the application's state first.
        from: Option<u64>,
    },
    /// Ask for the member's order. The session continues with another request.
    Compare {
        /// Subgroup.
        #[serde(borrow)]
        target: Target<'m>,
        /// The places whose digests are requested; at most [`COMPARED_MAX`].
        places: Vec<u64>,
    },
}

/// A position in the order of a subgroup. Two orders have the same position if all messages before
/// it are equal, including their senders and clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Next place.
    pub place: u64,
    /// A digest of the messages before that place. Zero if there are none.
    pub digest: u64,
}

impl Position {
    /// Returns the position after the given message, which must be at this position.
    #[must_use]
    pub fn after(self, message: &PublishedMessage<'_>) -> Self {
        let mut head = [0; 21];
        let (digest, from) = head.split_at_mut(8);
        digest.copy_from_slice(&self.digest.to_le_bytes());
        let (sender, client) = from.split_at_mut(4);
        sender.copy_from_slice(&message.sender.to_le_bytes());
        if let (Some(ClientId(id)), Some((kind, bytes))) =
            (message.client, client.split_first_mut())
        {
            *kind = 1;
            bytes.copy_from_slice(&id.to_le_bytes());
        }
        let digest = xxh3_64_with_seed(message.payload.0, xxh3_64(&head));
        Self { place: self.place.saturating_add(1), digest }
    }
}

/// A member's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The member's view. Everything delivered in earlier views is before `end`.
    pub view: u64,
    /// The end of the order.
    pub end: Position,
    /// The digests at the requested places. `None` for places that are no longer known or have not
    /// been reached yet.
    pub digests: Vec<Option<u64>>,
}

/// A member's replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientReply<'m> {
    /// The request is refused, by this member, for now or in general. The session ends.
    Refused(ClientRefusal),
    /// The client has been attached.
    Attached {
        /// The next ordinal: all lower ones have been delivered.
        next: u64,
        /// The maximum length of a line, in bytes.
        line_max: u32,
        /// The time for which the client is remembered while no member hears from it, in ms.
        lease_ms: u64,
    },
    /// The ordinals below which all lines have reached each level.
    Reached(Reached),
    /// The client is subscribed. This is sent again when the order reaches a place that did not
    /// exist before.
    Subscribed {
        /// Next place.
        next: u64,
        /// The digest of the order up to that place, if known.
        digest: Option<u64>,
        /// Some earlier positions, the oldest first.
        earlier: Vec<Position>,
        /// The member's view.
        view: u64,
        /// The level that messages must have reached.
        level: Level,
    },
    /// The messages at these places are no longer available at this member.
    Gap {
        /// The first missing place.
        from: u64,
        /// The first available place.
        to: u64,
    },
    /// Consecutive messages.
    Messages(#[serde(borrow)] Vec<PublishedMessage<'m>>),
    /// The status.
    Answer(GroupAnswer),
    /// The member is alive.
    Alive,
    /// A part of the application's state, which is complete once `Following` arrives.
    State(#[serde(borrow)] Bytes<'m>),
    /// The client follows from this position on: the next message is at that position.
    Following {
        /// Position.
        position: Position,
        /// Some earlier positions, the oldest first.
        earlier: Vec<Position>,
        /// The member's view.
        view: u64,
        /// Whether the state at this position was sent. The state may be empty.
        has_state: bool,
    },
    /// A view began.
    View(ViewBegun),
    /// The group has forgotten a client. The client's current incarnation will publish nothing
    /// more.
    Forgotten(ClientId),
    /// A view has closed the subgroup, so no messages follow those before that view. The session
    /// ends.
    Closed,
    /// The member's order.
    Compared(Compared),
}

/// A view, as reported to a follower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewBegun {
    /// View id.
    pub view: u64,
    /// The members of the view, in all subgroups.
    pub members: Vec<u32>,
    /// The members that joined in the view, even if an earlier process of the node was a member
    /// before.
    pub joined: Vec<u32>,
}

/// A message as received by a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedMessage<'m> {
    /// The place of the message.
    pub place: u64,
    /// The view in which the message was delivered.
    pub view: u64,
    /// The position among the messages of that view. Numbers may be skipped.
    pub place_in_view: u64,
    /// The member that sent the message, for itself or for a client.
    pub sender: u32,
    /// The client that published the message; `None` if the member did.
    pub client: Option<ClientId>,
    /// Message content.
    #[serde(borrow)]
    pub payload: Bytes<'m>,
}

/// The status of a group, as seen by a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupAnswer {
    /// Group name.
    pub group: String,
    /// Subgroup name.
    pub subgroup: String,
    /// The node that answers.
    pub node: u32,
    /// The view of that node.
    pub view: u64,
    /// The members of the view.
    pub members: Vec<u32>,
    /// The first place that the member still has.
    pub first: u64,
    /// The number of messages that have reached each level since the group began.
    pub reached: Reached,
    /// The number of clients that the group remembers.
    pub clients: u64,
    /// The maximum length of a line, in bytes.
    pub line_max: u32,
}

/// The reason why a client was refused, worded to follow "the member refused this client: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ClientRefusal {
    /// The group accepts no clients.
    #[error("the group accepts no clients; set clients = true for a subgroup in its group file")]
    NotAllowed,
    /// A different group uses the address.
    #[error("this address belongs to a different group; check the addresses")]
    OtherGroup,
    /// The subgroup does not exist, or accepts no clients.
    #[error("no subgroup of that name accepts clients; choose a subgroup that does")]
    NoSubgroup,
    /// The member does not belong to the subgroup, or does not send in it.
    #[error("this member does not send in the subgroup; give the address of a member that does")]
    NotHere,
    /// The node is not a member yet, or no longer a member.
    #[error("this node is currently not a member of its group; try again, or give more addresses")]
    NotNow,
    /// Another client uses the id.
    #[error(
        "another client already uses this id; choose a different id, or wait until that client's \
         lease has expired"
    )]
    IdTaken,
    /// The group has forgotten the client.
    #[error(
        "the lease has expired, so the group has forgotten this client, and unacknowledged lines \
         may have been delivered; check which were, and publish the rest as a new client"
    )]
    LeaseOver,
    /// The group remembers too many publishing clients, or too many from the client's source.
    #[error(
        "the group remembers at most 4096 clients, and fewer from a single address or user; close \
         clients properly, so that they are forgotten at once, or wait until leases have expired \
         (client_lease_ms)"
    )]
    TooMany,
    /// The member has too many clients, or too many from the client's source.
    #[error(
        "the member serves at most 1024 clients, and fewer from a single address or user; give the \
         addresses of more members, or stop some clients"
    )]
    MemberFull,
    /// The requested level needs a log.
    #[error(
        "the subgroup has no log, so its messages do not become durable; request the level \
         delivered"
    )]
    NotLogged,
    /// The client received nothing for too long, or lagged by more messages than the member keeps.
    #[error(
        "the subscriber was too slow and was disconnected; read faster, or subscribe again from \
         the next message"
    )]
    TooSlow,
}

impl ClientRefusal {
    /// Returns whether another member may accept the client, or the same member later.
    #[must_use]
    pub const fn is_for_now(self) -> bool {
        matches!(self, Self::NotHere | Self::NotNow | Self::MemberFull)
    }
}

/// Encodes a message.
#[must_use]
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Numbers and bytes are written to memory, which cannot fail.
    postcard::to_stdvec(message).unwrap_or_default()
}

/// Decodes a message. Returns `None` if the bytes are not a message.
#[must_use]
pub fn decode<'m, T: Deserialize<'m>>(bytes: &'m [u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Some(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_messages_round_trip_unless_damaged() {
        let life = ClientLife { id: ClientId(7), incarnation: 9 };
        let target = Target { group: "log", subgroup: "", name: "feed" };
        let requests = [
            ClientRequest::Attach { target, life, is_new: true, level: Level::DurableMajority },
            ClientRequest::Publish { first: 3, lines: vec![Bytes(b"one"), Bytes(b"")] },
            ClientRequest::Subscribe { target, from: Some(4), level: Some(Level::Delivered) },
            ClientRequest::Query { target },
            ClientRequest::End,
            ClientRequest::Follow { target, from: Some(5) },
            ClientRequest::Compare { target, places: vec![5, 6] },
        ];
        for request in requests {
            let mut bytes = encode(&request);
            assert_eq!(decode(&bytes), Some(request));
            for length in 0..bytes.len() {
                assert_eq!(decode::<ClientRequest<'_>>(&bytes[..length]), None);
            }
            bytes.push(0);
            assert_eq!(decode::<ClientRequest<'_>>(&bytes), None);
        }
        let message = PublishedMessage {
            place: 1 << 40,
            view: 2,
            place_in_view: 7,
            sender: 3,
            client: Some(ClientId(u64::MAX)),
            payload: Bytes(b"bytes"),
        };
        let position = Position { place: 5, digest: 6 };
        let view = ViewBegun { view: 3, members: vec![0, 2], joined: vec![2] };
        let replies = [
            ClientReply::Messages(vec![message; 2]),
            ClientReply::State(Bytes(b"state")),
            ClientReply::Following { position, earlier: vec![position], view: 2, has_state: true },
            ClientReply::Compared(Compared {
                view: 2,
                end: position,
                digests: vec![None, Some(1)],
            }),
            ClientReply::View(view),
            ClientReply::Forgotten(ClientId(8)),
        ];
        for reply in replies {
            assert_eq!(decode(&encode(&reply)), Some(reply));
        }
    }

    /// Orders that differ in any message can be distinguished, wherever that message is.
    #[test]
    fn position_digest_covers_all_earlier_messages() {
        let message = |sender, client, payload| PublishedMessage {
            place: 0,
            view: 1,
            place_in_view: 0,
            sender,
            client,
            payload: Bytes(payload),
        };
        let order = |messages: &[PublishedMessage<'_>]| {
            messages.iter().fold(Position::default(), |at, message| at.after(message))
        };
        let (a, b) = (message(1, None, b"a"), message(1, None, b"b"));
        let others = [
            vec![b, a],
            vec![a, a],
            vec![message(2, None, b"a"), b],
            vec![message(1, Some(ClientId(0)), b"a"), b],
            vec![message(1, None, b"ab"), message(1, None, b"")],
        ];
        let one = order(&[a, b]);
        assert_eq!((one, one.place), (order(&[a, b]), 2));
        assert!(others.iter().all(|other| order(other) != one));
        let elsewhen = PublishedMessage { place: 9, view: 8, place_in_view: 7, ..a };
        assert_eq!(order(&[elsewhen, b]), one, "not which view it was");
    }

    /// A forged length must not cause an allocation.
    #[test]
    fn oversized_length_allocates_no_memory() {
        let mut bytes = encode(&ClientRequest::Publish { first: 0, lines: Vec::new() });
        bytes.pop();
        bytes.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(decode::<ClientRequest<'_>>(&bytes), None);
    }
}
