//! The first exchange on a connection, at both ends: preambles, the handshake if there is a key,
//! hellos and verdicts.

use super::channel::Channel;
use super::deadline::{ChannelError, Deadline};
use super::handshake::{HandshakeEnd, handshake};
use super::hello::{CipherKind, Hello, PREAMBLE_BYTES, Preamble, Purpose};
use super::key::SharedKey;
use super::refusal::{Refusal, decode_verdict, encode_verdict};
use super::stream::Stream;

/// The identity and key of one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'g> {
    pub(super) hello: Hello,
    /// The digest for clients whose purpose is not to meet.
    pub(super) clients_digest: u64,
    pub(super) key: Option<&'g SharedKey>,
}

/// A successful greeting: the other end's hello, and the channel to it.
type Greeted = (Hello, Channel);

/// The reason why the connecting end was refused, and the digest of the other end if it has sent
/// one.
pub(super) type Refused = (Refusal, Option<u64>);

/// Performs the connecting end of a greeting.
pub(super) fn send_greeting(
    terms: Terms<'_>,
    stream: Stream,
    deadline: Deadline<'_>,
) -> Result<Result<Greeted, Refused>, ChannelError> {
    let mut channel = match preambles(terms.key, stream, HandshakeEnd::Connecting, deadline)? {
        Ok(channel) => channel,
        Err(refusal) => return Ok(Err((refusal, None))),
    };
    channel.send(&terms.hello.encode(), deadline)?;
    let hello = Hello::decode(&channel.receive(deadline)?).ok_or(ChannelError::Malformed)?;
    let theirs = receive_verdict(&mut channel, deadline)?;
    let verdict = theirs.and_then(|()| terms.hello.check(&hello));
    channel.send(&[encode_verdict(verdict)], deadline)?;
    Ok(verdict.map(|()| (hello, channel)).map_err(|refusal| (refusal, Some(hello.digest))))
}

/// Performs the accepting end of a greeting. `judge` makes the decision. A refusal includes the
/// refused hello, if one has arrived.
pub(super) fn accept_greeting(
    terms: Terms<'_>,
    stream: Stream,
    deadline: Deadline<'_>,
    judge: impl FnOnce(&Hello) -> Result<(), Refusal>,
) -> Result<Result<Greeted, (Refusal, Option<Hello>)>, ChannelError> {
    let mut channel = match preambles(terms.key, stream, HandshakeEnd::Accepting, deadline)? {
        Ok(channel) => channel,
        Err(refusal) => return Ok(Err((refusal, None))),
    };
    let hello = Hello::decode(&channel.receive(deadline)?).ok_or(ChannelError::Malformed)?;
    let verdict = judge(&hello);
    // The answer repeats the other end's purpose.
    let digest =
        if hello.purpose == Purpose::Meet { terms.hello.digest } else { terms.clients_digest };
    let answer = Hello { purpose: hello.purpose, digest, ..terms.hello };
    channel.send(&answer.encode(), deadline)?;
    channel.send(&[encode_verdict(verdict)], deadline)?;
    let theirs = receive_verdict(&mut channel, deadline)?;
    Ok(match verdict.and(theirs) {
        Ok(()) => Ok((hello, channel)),
        Err(refusal) => Err((refusal, Some(hello))),
    })
}

/// Receives the other end's verdict.
pub(super) fn receive_verdict(
    channel: &mut Channel,
    deadline: Deadline<'_>,
) -> Result<Result<(), Refusal>, ChannelError> {
    decode_verdict(&channel.receive(deadline)?).ok_or(ChannelError::Malformed)
}

/// Exchanges preambles, and performs the handshake if there is a key.
fn preambles(
    key: Option<&SharedKey>,
    stream: Stream,
    end: HandshakeEnd,
    deadline: Deadline<'_>,
) -> Result<Result<Channel, Refusal>, ChannelError> {
    let own = Preamble::own(key.is_some());
    let mut theirs = [0; PREAMBLE_BYTES];
    stream.write_all(&own.encode(), deadline)?;
    stream.read_all(&mut theirs, deadline)?;
    let decoded = Preamble::decode(&theirs);
    if let Err(refusal) = own.check(decoded) {
        return Ok(Err(refusal));
    }
    let Some(key) = key else { return Ok(Ok(Channel::new(stream, None))) };
    let prologue = match end {
        HandshakeEnd::Connecting => [own.encode(), theirs].concat(),
        HandshakeEnd::Accepting => [theirs, own.encode()].concat(),
    };
    let kind = decoded.map_or(CipherKind::ChaChaPoly, |theirs| own.cipher(theirs));
    let cipher = handshake(&stream, (key, kind), &prologue, end, deadline)?;
    Ok(Ok(Channel::new(stream, Some(cipher))))
}
