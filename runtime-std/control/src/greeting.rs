//! The first words on a connection, at both ends: preambles, the handshake if there is a key,
//! hellos and verdicts.

use super::channel::Channel;
use super::handshake::{End, shake};
use super::hello::{Hello, PREAMBLE_BYTES, Preamble, Purpose};
use super::key::SharedKey;
use super::patience::{ChannelError, Patience};
use super::refusal::{Refusal, decode_verdict, encode_verdict};
use super::stream::Stream;

/// What one end brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'g> {
    pub(super) hello: Hello,
    /// The digest that those go by who do not meet.
    pub(super) visitors_digest: u64,
    pub(super) key: Option<&'g SharedKey>,
}

/// Both consent: what the other end said, and what to talk on.
type Greeted = (Hello, Channel);

/// Why the connecting end was sent away, and the digest of the other end if it has said one.
pub(super) type SentAway = (Refusal, Option<u64>);

/// What the connecting end hears.
pub(super) fn introduce(
    terms: Terms<'_>,
    stream: Stream,
    patience: Patience<'_>,
) -> Result<Result<Greeted, SentAway>, ChannelError> {
    let mut channel = match preambles(terms.key, stream, End::Connecting, patience)? {
        Ok(channel) => channel,
        Err(refusal) => return Ok(Err((refusal, None))),
    };
    channel.send(&terms.hello.encode(), patience)?;
    let hello = Hello::decode(&channel.receive(patience)?).ok_or(ChannelError::Garbled)?;
    let theirs = receive_verdict(&mut channel, patience)?;
    let verdict = theirs.and_then(|()| terms.hello.check(&hello));
    channel.send(&[encode_verdict(verdict)], patience)?;
    Ok(verdict.map(|()| (hello, channel)).map_err(|refusal| (refusal, Some(hello.digest))))
}

/// What the accepting end hears, and lets `judge` decide on. With a refusal comes who was refused,
/// if it said so.
pub(super) fn hear(
    terms: Terms<'_>,
    stream: Stream,
    patience: Patience<'_>,
    judge: impl FnOnce(&Hello) -> Result<(), Refusal>,
) -> Result<Result<Greeted, (Refusal, Option<Hello>)>, ChannelError> {
    let mut channel = match preambles(terms.key, stream, End::Accepting, patience)? {
        Ok(channel) => channel,
        Err(refusal) => return Ok(Err((refusal, None))),
    };
    let hello = Hello::decode(&channel.receive(patience)?).ok_or(ChannelError::Garbled)?;
    let verdict = judge(&hello);
    // The answer is one to what the other end came for.
    let digest =
        if hello.purpose == Purpose::Meet { terms.hello.digest } else { terms.visitors_digest };
    let answer = Hello { purpose: hello.purpose, digest, ..terms.hello };
    channel.send(&answer.encode(), patience)?;
    channel.send(&[encode_verdict(verdict)], patience)?;
    let theirs = receive_verdict(&mut channel, patience)?;
    Ok(match verdict.and(theirs) {
        Ok(()) => Ok((hello, channel)),
        Err(refusal) => Err((refusal, Some(hello))),
    })
}

/// The other end's verdict.
pub(super) fn receive_verdict(
    channel: &mut Channel,
    patience: Patience<'_>,
) -> Result<Result<(), Refusal>, ChannelError> {
    decode_verdict(&channel.receive(patience)?).ok_or(ChannelError::Garbled)
}

/// Preambles, and the handshake if there is a key.
fn preambles(
    key: Option<&SharedKey>,
    stream: Stream,
    end: End,
    patience: Patience<'_>,
) -> Result<Result<Channel, Refusal>, ChannelError> {
    let own = Preamble::own(key.is_some());
    let mut theirs = [0; PREAMBLE_BYTES];
    stream.write_all(&own.encode(), patience)?;
    stream.read_all(&mut theirs, patience)?;
    if let Err(refusal) = own.check(Preamble::decode(&theirs)) {
        return Ok(Err(refusal));
    }
    let Some(key) = key else { return Ok(Ok(Channel::new(stream, None))) };
    let prologue = match end {
        End::Connecting => [own.encode(), theirs].concat(),
        End::Accepting => [theirs, own.encode()].concat(),
    };
    let cipher = shake(&stream, key, &prologue, end, patience)?;
    Ok(Ok(Channel::new(stream, Some(cipher))))
}
