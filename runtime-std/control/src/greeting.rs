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

impl<'g> Terms<'g> {
    fn own(&self) -> (Preamble, Option<&'g SharedKey>) {
        (Preamble::own(self.key.is_some()), self.key)
    }
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
    let mut channel = match preambles(terms.own(), stream, HandshakeEnd::Connecting, deadline)? {
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
    let mut channel = match preambles(terms.own(), stream, HandshakeEnd::Accepting, deadline)? {
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
    (own, key): (Preamble, Option<&SharedKey>),
    stream: Stream,
    end: HandshakeEnd,
    deadline: Deadline<'_>,
) -> Result<Result<Channel, Refusal>, ChannelError> {
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread::scope;
    use std::time::Duration;

    use super::super::deadline::NEVER;
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    type Begun = Result<Result<Channel, Refusal>, ChannelError>;

    fn begin(has_aes: bool, stream: UnixStream, end: HandshakeEnd) -> Begun {
        let (key, own) = (SharedKey::from_bytes([7; 32]), Preamble::with_aes(has_aes));
        preambles((own, Some(&key)), Stream::Unix(stream), end, Deadline::new(LONG, &NEVER))
    }

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().expect("sockets")
    }

    #[test]
    fn ends_with_different_processors_agree_on_a_cipher() {
        for (here, there) in [(true, true), (true, false), (false, true), (false, false)] {
            let (one, other) = pair();
            scope(|scope| {
                let answering = scope.spawn(move || begin(there, other, HandshakeEnd::Accepting));
                let connecting = begin(here, one, HandshakeEnd::Connecting);
                let mut here = connecting.expect("the same key").expect("the same version");
                let answering = answering.join().expect("no panic");
                let mut there = answering.expect("the same key").expect("the same version");
                let deadline = Deadline::new(LONG, &NEVER);
                here.send(b"to there", deadline).expect("it is there");
                assert_eq!(there.receive(deadline).expect("the same cipher"), b"to there");
                there.send(b"to here", deadline).expect("it is there");
                assert_eq!(here.receive(deadline).expect("the same cipher"), b"to here");
            });
        }
    }

    /// Passes on what an end sends, except that the processor in its preamble has no AES.
    fn pass_on(from: &UnixStream, to: &UnixStream, alters: bool) -> std::io::Result<()> {
        use std::io::{Read as _, Write as _, copy};
        let mut preamble = [0; PREAMBLE_BYTES];
        let (mut from, mut to) = (from, to);
        from.read_exact(&mut preamble)?;
        assert_eq!(preamble[11], 1);
        preamble[11] = u8::from(!alters);
        to.write_all(&preamble)?;
        copy(&mut from, &mut to)?;
        to.shutdown(std::net::Shutdown::Write)
    }

    /// Both ends prefer AES, and a relay between them wants the other cipher.
    #[test]
    fn altered_choice_of_cipher_is_refused() {
        for altered in [(true, false), (false, true), (true, true), (false, false)] {
            let ((one, near), (far, other)) = (pair(), pair());
            scope(|scope| {
                let answering = scope.spawn(move || begin(true, other, HandshakeEnd::Accepting));
                let connecting = scope.spawn(move || begin(true, one, HandshakeEnd::Connecting));
                let (near, far) = (&near, &far);
                // An end that refuses closes its socket, so a relay may fail.
                scope.spawn(move || pass_on(near, far, altered.0));
                scope.spawn(move || pass_on(far, near, altered.1));
                let ends = [answering, connecting].map(|end| end.join().expect("no panic"));
                for end in ends {
                    assert_eq!(end.is_err(), altered != (false, false), "{altered:?}: {end:?}");
                }
            });
        }
    }
}
