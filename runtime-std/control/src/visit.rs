//! Going to the door of a running process.

use std::io::ErrorKind;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::ids::NodeId;

use super::address::Address;
use super::greeting::{Terms, introduce};
use super::hello::Purpose;
use super::identity::Identity;
use super::key::SharedKey;
use super::patience::{ChannelError, Patience};
use super::refusal::Refusal;
use super::stream::Stream;
use super::talk::Talk;

/// Why nobody let us in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VisitError {
    /// Nobody listens there, or whoever does went away before the first words were said. It may
    /// come (again).
    #[error("nobody is there; is it running? Start it, or try again later")]
    NotThere,
    /// The time was up before the first words were said.
    #[error("no answer in time; is it stopped? Allow more time, or look at the network")]
    TimeUp,
    /// The caller asked to stop.
    #[error("interrupted while visiting")]
    Cancelled,
    /// The door is not for us, or not now.
    #[error(
        "sent away: we came {0}; give all the same options, and come again when the group runs"
    )]
    Refused(Refusal),
    /// The other end goes by another digest.
    #[error("the other end has another configuration; give all the same one")]
    OtherConfiguration {
        /// That digest.
        digest: u64,
    },
    /// The other end has another key.
    #[error("the other end has another key; give all the same key file")]
    WrongKey,
    /// The other end sent what makes no sense.
    #[error(
        "the other end sent what this program does not understand; run the same one everywhere"
    )]
    Garbled,
    /// The system refused something else.
    #[error("cannot connect: {0}; look at the address")]
    Io(std::io::Error),
}

impl From<ChannelError> for VisitError {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Stopped => Self::Cancelled,
            ChannelError::TimeUp => Self::TimeUp,
            ChannelError::Closed => Self::NotThere,
            ChannelError::Garbled => Self::Garbled,
            ChannelError::WrongKey => Self::WrongKey,
            ChannelError::Io(error) => match error.kind() {
                ErrorKind::ConnectionRefused
                | ErrorKind::NotFound
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::TimedOut => Self::NotThere,
                _ => Self::Io(error),
            },
        }
    }
}

/// A door that let us in.
#[derive(Debug)]
pub struct Visited {
    /// Whose it is.
    pub node: NodeId,
    /// The life of its process.
    pub incarnation: u64,
    /// What to talk on.
    pub talk: Talk,
}

/// Goes to the door at an address, once: where nobody listens, that is said at once. Nothing of it
/// is kept if it fails. Without a key all is said in clear: see [`Address::is_local`].
///
/// # Errors
/// [`VisitError`]. To come for [`Purpose::Meet`] is for [`Mesh::join`](super::Mesh::join) alone:
/// [`ErrorKind::InvalidInput`].
pub fn visit(
    address: &Address,
    identity: &Identity,
    key: Option<&SharedKey>,
    purpose: Purpose,
    time_limit: Duration,
    cancel: &AtomicBool,
) -> Result<Visited, VisitError> {
    if purpose == Purpose::Meet {
        return Err(VisitError::Io(ErrorKind::InvalidInput.into()));
    }
    let patience = Patience::new(time_limit, cancel);
    let stream = Stream::connect(address, patience)?;
    let terms = Terms { hello: identity.hello(purpose), visitors_digest: identity.digest, key };
    let (hello, channel) =
        introduce(terms, stream, patience)?.map_err(|sent_away| match sent_away {
            (Refusal::Digest, Some(digest)) => VisitError::OtherConfiguration { digest },
            (refusal, _) => VisitError::Refused(refusal),
        })?;
    Ok(Visited { node: hello.node, incarnation: hello.incarnation, talk: Talk::new(channel, None) })
}
