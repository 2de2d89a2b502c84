//! What outside clients and the members that serve them say to each other (EXT-1), in a session of
//! [`Purpose::Client`](super::Purpose::Client).
//!
//! A session is for one thing, which its first request decides:
//!
//! ```text
//! publisher                          member
//! Attach                ---->
//!                       <----        Attached, once that was delivered; or Refused
//! Publish, Publish ..   ---->
//!                       <----        Reached, as more was delivered and became durable
//! End                   ---->        (or the connection ends, and the lease runs)
//!
//! subscriber
//! Subscribe             ---->
//!                       <----        Subscribed, then Messages and Gap
//!
//! follower: a subscriber that begins with the state
//! Follow                ---->
//!                       <----        State, State .., where it does not go on from its position;
//!                                    Following; then Messages, View and Forgotten; Closed at last
//!
//! anybody
//! Query                 ---->
//!                       <----        Answer
//! ```
//! A member that has nothing to say for [`ALIVE_PAUSE`] says `Alive`. A client that hears nothing
//! for [`SILENCE_MAX`] goes to another member: one that is stopped keeps its connections open.
//!
//! # Invariants
//! - What a client publishes is numbered without a gap, from zero in each of its lives: its
//!   *ordinals*.
//! - A *place* counts the messages of the subgroup that were handed over since the group began. All
//!   members number alike.
//! - A [`Position`] says which messages those were: whoever resumes compares it with the member's.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// After so long without another message, a member says that it is there.
pub const ALIVE_PAUSE: Duration = Duration::from_millis(500);

/// After so long without a message, a client takes its member for stopped or lost.
pub const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The longest name of a client, in bytes.
pub const NAME_MAX: usize = 64;

/// The longest request beside the lines that it carries, in bytes.
pub const REQUEST_AROUND: usize = 1 << 10;

/// The most places of one `Compare`.
pub const COMPARED_MAX: usize = 64;

/// The most lines of one `Publish`.
pub const LINES_MAX: usize = 1 << 10;

/// What a client is known by in the whole group.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ClientId(pub u64);

impl fmt::Display for ClientId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// A client, and which of its lives: a client that begins anew has another incarnation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ClientLife {
    /// The client.
    pub id: ClientId,
    /// Which life.
    pub incarnation: u64,
}

/// How far a message has come (DUR-2). Each level holds only where all before it do, but for
/// `DurableHere`, which says nothing of other members' disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Delivered at the client's member: so every member that goes on has it.
    #[default]
    Delivered,
    /// On the disk of the client's member.
    DurableHere,
    /// On the disks of a majority of the subgroup's members.
    DurableMajority,
    /// On the disks of all of the subgroup's members.
    DurableEverywhere,
}

impl Level {
    /// All levels, in their order.
    pub const ALL: [Self; 4] =
        [Self::Delivered, Self::DurableHere, Self::DurableMajority, Self::DurableEverywhere];
}

/// How many of something have reached each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Delivered.
    pub delivered: u64,
    /// Durable at the member.
    pub durable_here: u64,
    /// Durable at a majority.
    pub durable_majority: u64,
    /// Durable everywhere.
    pub durable_everywhere: u64,
}

impl Reached {
    /// How many have reached a level.
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

/// Bytes of a message, lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes<'m>(pub &'m [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'm, 'm> Deserialize<'de> for Bytes<'m> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lent;
        impl<'de> Visitor<'de> for Lent {
            type Value = Bytes<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("bytes")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Bytes<'de>, E> {
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_bytes(Lent)
    }
}

/// Where a client wants to go, and as what it is known there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target<'m> {
    /// The group's name; any group if it is empty.
    pub group: &'m str,
    /// The subgroup's name; the first that takes clients if it is empty.
    pub subgroup: &'m str,
    /// What people call the client.
    pub name: &'m str,
}

/// A client's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientRequest<'m> {
    /// Publish as this client. One that has been attached before is not new.
    Attach {
        /// Where.
        #[serde(borrow)]
        target: Target<'m>,
        /// Which client.
        life: ClientLife,
        /// Whether this life begins.
        is_new: bool,
        /// The level that it waits for.
        level: Level,
    },
    /// Lines in a row.
    Publish {
        /// The ordinal of the first.
        first: u64,
        /// The lines.
        #[serde(borrow)]
        lines: Vec<Bytes<'m>>,
    },
    /// Subscribe.
    Subscribe {
        /// Where.
        #[serde(borrow)]
        target: Target<'m>,
        /// The first place that is wanted; what comes next if it is none.
        from: Option<u64>,
        /// The level that messages must have reached; without one, that which the member chooses:
        /// the lowest one that no crash takes back.
        level: Option<Level>,
    },
    /// How things stand.
    Query {
        /// Where.
        #[serde(borrow)]
        target: Target<'m>,
    },
    /// The client ends, and has no more to say. Its lease ends at once.
    End,
    /// Subscribe, and be told of views and of clients that are forgotten, in the order.
    Follow {
        /// Where.
        #[serde(borrow)]
        target: Target<'m>,
        /// The place that is next; without one it takes over the application's state first.
        from: Option<u64>,
    },
    /// Asks which order the member has. The session goes on with another request.
    Compare {
        /// Where.
        #[serde(borrow)]
        target: Target<'m>,
        /// The places whose digests are wanted: [`COMPARED_MAX`] at most.
        places: Vec<u64>,
    },
}

/// A position in the order of a subgroup. It is equal for two orders if the messages before it are:
/// senders, clients and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The place that is next.
    pub place: u64,
    /// A digest of the messages before that place. Zero if there are none.
    pub digest: u64,
}

impl Position {
    /// Returns the position after another message, which has this position's place.
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

/// What a member's order is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The member's view. All that was delivered before it is before `end`.
    pub view: u64,
    /// Where the order ends.
    pub end: Position,
    /// The digests at the places that were asked for; none at those that are not known any more, or
    /// not there yet.
    pub digests: Vec<Option<u64>>,
}

/// A member's replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientReply<'m> {
    /// Not here, not now, or not at all. The session ends.
    Refused(ClientRefusal),
    /// The client is attached.
    Attached {
        /// Ordinals below this were delivered.
        next: u64,
        /// The longest line, in bytes.
        line_max: u32,
        /// How long the client is remembered while no member hears it, in ms.
        lease_ms: u64,
    },
    /// Ordinals below these have reached the levels.
    Reached(Reached),
    /// The client is subscribed. Said again once the order has come to a place that was not there.
    Subscribed {
        /// The place that is next.
        next: u64,
        /// The digest of the order up to that place, if it is known.
        digest: Option<u64>,
        /// Some positions before that place, from the oldest on.
        earlier: Vec<Position>,
        /// The member's view.
        view: u64,
        /// The level that messages must have reached.
        level: Level,
    },
    /// These places are gone here.
    Gap {
        /// The first.
        from: u64,
        /// The first that is not.
        to: u64,
    },
    /// Messages in a row.
    Messages(#[serde(borrow)] Vec<PublishedMessage<'m>>),
    /// How things stand.
    Answer(GroupAnswer),
    /// The member is there.
    Alive,
    /// A part of the application's state. What there is of it is whole with `Following`.
    State(#[serde(borrow)] Bytes<'m>),
    /// The client follows from this position on: what comes next has its place.
    Following {
        /// Where.
        position: Position,
        /// Some positions before that one, from the oldest on.
        earlier: Vec<Position>,
        /// The member's view.
        view: u64,
        /// It has been sent the state at this position, which may have no bytes.
        has_state: bool,
    },
    /// A view began.
    View(ViewBegun),
    /// The group has forgotten a client: what it said before, in its life up to here, it says no
    /// more.
    Forgotten(ClientId),
    /// A view has closed the subgroup: nothing comes behind what came before that view. The session
    /// ends.
    Closed,
    /// What the member's order is.
    Compared(Compared),
}

/// A view, as a follower is told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewBegun {
    /// Which.
    pub view: u64,
    /// Its members, of all subgroups.
    pub members: Vec<u32>,
    /// Those that have joined in it, also where a former process of the node was a member before.
    pub joined: Vec<u32>,
}

/// A message as a subscriber gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedMessage<'m> {
    /// Its place.
    pub place: u64,
    /// The view that it was delivered in.
    pub view: u64,
    /// Its place among the messages of that view, which may leave numbers out.
    pub place_in_view: u64,
    /// The member that sent it, for itself or for a client.
    pub sender: u32,
    /// The client that published it; none if the member did.
    pub client: Option<ClientId>,
    /// The bytes.
    #[serde(borrow)]
    pub payload: Bytes<'m>,
}

/// How things stand at a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupAnswer {
    /// The group.
    pub group: String,
    /// The subgroup.
    pub subgroup: String,
    /// The node that answers.
    pub node: u32,
    /// Its view.
    pub view: u64,
    /// The view's members.
    pub members: Vec<u32>,
    /// The first place that the member still has.
    pub first: u64,
    /// How many messages were delivered since the group began, and how many of them are durable.
    pub reached: Reached,
    /// Clients that the group remembers.
    pub clients: u64,
    /// The longest line, in bytes.
    pub line_max: u32,
}

/// Why a client was refused. What goes after "the member refused this client: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ClientRefusal {
    /// The group takes no clients.
    #[error("the group takes no clients; set clients = true in a subgroup of its group file")]
    NotAllowed,
    /// Another group is there.
    #[error("another group is there; look at the addresses")]
    OtherGroup,
    /// There is no such subgroup, or it takes no clients.
    #[error("the group has no such subgroup that takes clients; name one that does")]
    NoSubgroup,
    /// The member does not belong to the subgroup, or does not send in it.
    #[error("that member does not send in the subgroup; give the address of one that does")]
    NotHere,
    /// It is no member yet, or none any more.
    #[error("that node is no member now; try again, or give more addresses")]
    NotNow,
    /// Another client has the id.
    #[error("another client has this id; take another, or wait until its lease has ended")]
    IdTaken,
    /// The group has forgotten the client.
    #[error(
        "the lease has ended, and the group has forgotten this client: what was not acknowledged \
         may have been delivered; look, and publish the rest as a new client"
    )]
    LeaseOver,
    /// The group remembers too many clients that publish, or too many of the client's source.
    #[error(
        "the group remembers 4096 clients at most, and of one address or user no more than there \
         is room for others; let clients end properly, which are forgotten at once, or wait until \
         leases have ended (client_lease_ms)"
    )]
    TooMany,
    /// The member has too many clients, or too many of the client's source.
    #[error(
        "the member serves 1024 clients at most, and of one address or user no more than there is \
         room for others; give the addresses of more members, or end clients"
    )]
    MemberFull,
    /// The level that is wanted needs a log.
    #[error("the subgroup has no log, so that nothing is durable; ask for the level delivered")]
    NotLogged,
    /// It took nothing for too long, or was further behind than the member keeps messages.
    #[error("it was too slow, and was cut; read faster, or subscribe from the place that is next")]
    TooSlow,
}

impl ClientRefusal {
    /// Whether another member, or the same one later, may take the client.
    #[must_use]
    pub const fn is_for_now(self) -> bool {
        matches!(self, Self::NotHere | Self::NotNow | Self::MemberFull)
    }
}

/// A message as bytes.
#[must_use]
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Numbers and bytes into memory: nothing that can fail.
    postcard::to_stdvec(message).unwrap_or_default()
}

/// Bytes as a message; none if they are not one.
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
    fn what_is_said_is_heard_and_what_is_cut_or_longer_is_not() {
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

    /// Orders are told apart by each of their messages, wherever it stands.
    #[test]
    fn position_differs_with_any_message_before_it() {
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

    /// A length that was made up must not make anybody take memory for it.
    #[test]
    fn a_length_that_cannot_be_takes_no_memory() {
        let mut bytes = encode(&ClientRequest::Publish { first: 0, lines: Vec::new() });
        bytes.pop();
        bytes.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(decode::<ClientRequest<'_>>(&bytes), None);
    }
}
