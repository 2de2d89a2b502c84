//! Hostile bytes at the start of a connection, for a fuzzer, and for the tests below, which
//! generate them at random.

use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::ids::NodeId;

use super::deadline::Deadline;
use super::greeting::{Terms, accept_greeting, send_greeting};
use super::hello::{Hello, PREAMBLE_BYTES, Preamble, Purpose};
use super::identity::Identity;
use super::key::SharedKey;
use super::session::Session;
use super::stream::Stream;

/// Longer than any call here waits, because all bytes have arrived and the other end has closed the
/// connection.
const LONG: Duration = Duration::from_secs(10);

/// The number of bytes that a socket buffers without a reader.
const BYTES_MAX: usize = 32 << 10;

/// The maximum length of a message that is received after a greeting.
const SAID_MAX: u64 = 1000;

/// Feeds bytes to the connecting end of a greeting, to the accepting end, and then as the message
/// that follows it. The first byte says whether there is a key.
///
/// # Panics
/// Panics if bytes that are not a greeting are accepted, or a message exceeds the allowed length.
pub fn greeting(bytes: &[u8]) {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let key = (mode & 1 == 1).then(|| SharedKey::from_bytes([7; 32]));
    let bytes = &bytes[..bytes.len().min(BYTES_MAX)];
    let identity = Identity { node: NodeId(1), incarnation: 1, digest: 7 };
    let terms = Terms { hello: identity.hello(Purpose::Ask), clients_digest: 7, key: key.as_ref() };
    let never = AtomicBool::new(false);
    let (ours, _end) = saying(bytes);
    let heard = accept_greeting(terms, ours, Deadline::new(LONG, &never), |_| Ok(()));
    take(bytes, key.is_some(), heard.ok().and_then(Result::ok).map(|(_, channel)| channel));
    let (ours, _end) = saying(bytes);
    let heard = send_greeting(terms, ours, Deadline::new(LONG, &never));
    take(bytes, key.is_some(), heard.ok().and_then(Result::ok).map(|(_, channel)| channel));
    if let Some(hello) = Hello::decode(bytes) {
        assert_eq!(hello.encode(), bytes, "one hello has one form");
    }
}

/// Returns a connection whose other end has sent these bytes, and nothing more.
fn saying(bytes: &[u8]) -> (Stream, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().expect("sockets");
    theirs.write_all(bytes).expect("it holds them");
    theirs.shutdown(Shutdown::Write).expect("it is connected");
    (Stream::Unix(ours), theirs)
}

fn take(bytes: &[u8], is_keyed: bool, channel: Option<super::channel::Channel>) {
    let Some(channel) = channel else { return };
    assert!(!is_keyed, "nobody here has the key");
    let own = Preamble::own(is_keyed);
    let theirs = bytes.first_chunk::<PREAMBLE_BYTES>().and_then(Preamble::decode);
    assert_eq!(own.check(theirs), Ok(()), "these are no first words");
    let (mut session, mut said) = (Session::new(channel, None), Vec::new());
    let received = session.receive_stream(&mut said, SAID_MAX, LONG);
    assert!(said.len() as u64 <= SAID_MAX, "{} bytes: {received:?}", said.len());
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::channel::framed;
    use super::*;

    /// Returns the bytes sent by a client that is admitted.
    fn words() -> Vec<u8> {
        let identity = Identity { node: NodeId(2), incarnation: 2, digest: 7 };
        let hello = framed(&identity.hello(Purpose::Ask).encode()).expect("short");
        let (verdict, last) = (framed(&[0]).expect("short"), framed(b"\x01said").expect("short"));
        [&[0][..], &Preamble::own(false).encode(), &hello, &verdict, &last].concat()
    }

    #[test]
    fn greeting_target_accepts_a_valid_greeting() {
        // Otherwise, the attempts below would end at the first byte.
        let (ours, _end) = saying(&words()[1..]);
        let identity = Identity { node: NodeId(1), incarnation: 1, digest: 7 };
        let (terms, never) = (
            Terms { hello: identity.hello(Purpose::Ask), clients_digest: 7, key: None },
            AtomicBool::new(false),
        );
        let heard = accept_greeting(terms, ours, Deadline::new(LONG, &never), |_| Ok(()));
        assert!(heard.is_ok_and(|heard| heard.is_ok()));
        greeting(&words());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn random_greeting_bytes_never_panic(bytes in vec(any::<u8>(), 0..400)) {
            greeting(&bytes);
        }

        #[test]
        fn altered_greeting_never_panics(
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
            more in vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = words();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if more.len() % 3 == 0 {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes.extend(more);
            greeting(&bytes);
        }
    }
}
