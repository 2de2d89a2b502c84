//! Opens a session with a running process.

use std::io::ErrorKind;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::ids::NodeId;

use super::address::Address;
use super::deadline::{ChannelError, Deadline};
use super::greeting::{Terms, send_greeting};
use super::hello::Purpose;
use super::identity::Identity;
use super::key::SharedKey;
use super::refusal::Refusal;
use super::session::Session;
use super::stream::Stream;

/// The reason why no session was opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenSessionError {
    /// No process listens there, or it ended before the greeting was complete. It may be restarted.
    #[error("no process is listening; start it, or try again later")]
    NotThere,
    /// The time limit passed before the greeting was complete.
    #[error("no answer arrived in time; allow more time, or check the process and the network")]
    TimeUp,
    /// The caller asked to stop.
    #[error("interrupted while connecting")]
    Cancelled,
    /// The server refused this process, permanently or for now.
    #[error("this process was refused: {why}; {}", .0.remedy(), why = .0)]
    Refused(Refusal),
    /// The other end has a different digest.
    #[error("the other end has a different configuration; give all processes the same one")]
    OtherConfiguration {
        /// The digest of the other end.
        digest: u64,
    },
    /// The other end has a different key.
    #[error("the other end uses a different key; give all processes the same key file")]
    WrongKey,
    /// The other end sent invalid data.
    #[error(
        "the other end sent data that this program does not understand; run the same version \
         everywhere"
    )]
    Malformed,
    /// Another error reported by the system.
    #[error("cannot connect: {0}; check the address")]
    Io(std::io::Error),
}

impl From<ChannelError> for OpenSessionError {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Stopped => Self::Cancelled,
            ChannelError::TimeUp => Self::TimeUp,
            ChannelError::Closed => Self::NotThere,
            ChannelError::Malformed => Self::Malformed,
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

/// A session that a server admitted.
#[derive(Debug)]
pub struct OpenedSession {
    /// The node at the other end.
    pub node: NodeId,
    /// The incarnation of the node's process.
    pub incarnation: u64,
    /// The session itself.
    pub session: Session,
}

/// Opens a session with the control server at an address. Makes only one attempt: if no process
/// listens, it fails at once. Without a key, all traffic is unencrypted: see [`Address::is_local`].
///
/// # Errors
/// Returns [`OpenSessionError`]. [`Purpose::Meet`] is reserved for
/// [`Mesh::join`](super::Mesh::join), and results in [`ErrorKind::InvalidInput`].
pub fn open_session(
    address: &Address,
    identity: &Identity,
    key: Option<&SharedKey>,
    purpose: Purpose,
    time_limit: Duration,
    cancel: &AtomicBool,
) -> Result<OpenedSession, OpenSessionError> {
    if purpose == Purpose::Meet {
        return Err(OpenSessionError::Io(ErrorKind::InvalidInput.into()));
    }
    let deadline = Deadline::new(time_limit, cancel);
    let stream = Stream::connect(address, deadline)?;
    let terms = Terms { hello: identity.hello(purpose), clients_digest: identity.digest, key };
    let (hello, channel) =
        send_greeting(terms, stream, deadline)?.map_err(|refused| match refused {
            (Refusal::Digest, Some(digest)) => OpenSessionError::OtherConfiguration { digest },
            (refusal, _) => OpenSessionError::Refused(refusal),
        })?;
    Ok(OpenedSession {
        node: hello.node,
        incarnation: hello.incarnation,
        session: Session::new(channel, None),
    })
}
