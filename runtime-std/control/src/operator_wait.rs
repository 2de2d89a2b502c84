//! The wait of operators for their answers while members meet.
//!
//! An operator that asks again and again costs its members a handshake each time. Without a wait,
//! many members on few processors would hardly meet while an operator watches them.

use std::time::{Duration, Instant};

use super::deadline::Deadline;

/// The wait as a multiple of the time that the operator's greeting took, so that operators that
/// wait for their answers take at most a fifth of the time each.
const OPERATOR_WAIT: u32 = 4;

/// The maximum wait, which is less than the time for which operators wait for an answer.
const OPERATOR_WAIT_MAX: Duration = Duration::from_secs(2);

/// Lets an operator wait for its answer, unless the meeting ends.
pub(super) fn keep_waiting(greeting: Duration, deadline: Deadline<'_>) {
    let wait = greeting.saturating_mul(OPERATOR_WAIT).min(OPERATOR_WAIT_MAX);
    let deadline = Deadline { until: Instant::now() + wait, ..deadline };
    while let Ok(slice) = deadline.slice() {
        std::thread::sleep(slice);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};
    use std::sync::atomic::{AtomicBool, Ordering};

    use tramontane_core::ids::{NodeId, Rank, ViewId};

    use super::*;
    use crate::address::Address;
    use crate::deadline::NEVER;
    use crate::greeting::{Terms, send_greeting};
    use crate::hello::Purpose;
    use crate::identity::Identity;
    use crate::listener::Listener;
    use crate::meeting_handler::MeetingHandler;
    use crate::mesh::Mesh;
    use crate::options::MeshOptions;
    use crate::session::Session;
    use crate::stream::Stream;

    const LONG: Duration = Duration::from_secs(60);
    const SLOW: Duration = Duration::from_millis(60);

    /// Sends operators one message.
    struct Answering;

    impl MeetingHandler for Answering {
        fn clients_digest(&self) -> u64 {
            7
        }

        fn waits_for(&self, _: &[NodeId]) {}

        fn takes_operators(&self) -> bool {
            true
        }

        fn receive(&self, mut session: Session) {
            session.send(b"forming", LONG).expect("the operator waits");
        }
    }

    /// Greets a member slowly, and returns the time from the middle of the greeting to the answer.
    fn ask(address: SocketAddr, node: NodeId) -> Duration {
        let stream = TcpStream::connect(address).expect("it listens");
        // The member begins to greet once it has sent its first byte.
        stream.peek(&mut [0]).expect("a first byte");
        std::thread::sleep(SLOW);
        let middle = Instant::now();
        let hello = Identity { node, incarnation: 1, digest: 7 }.hello(Purpose::Ask);
        let terms = Terms { hello, clients_digest: 7, key: None };
        let deadline = Deadline::new(LONG, &NEVER);
        let greeted = send_greeting(terms, Stream::Tcp(stream), deadline).expect("a greeting");
        let (_, mut channel) = greeted.expect("let in");
        assert_eq!(channel.receive(deadline).expect("an answer"), b"forming");
        middle.elapsed()
    }

    #[test]
    fn operators_wait_longer_than_their_greeting() {
        let members = [NodeId(1), NodeId(2)];
        let bound = || Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into());
        let (listener, other) = (bound().expect("a port"), bound().expect("a port"));
        let addresses = [listener.address().clone(), other.address().clone()];
        let Address::Tcp(address) = &addresses[0] else { panic!("a port") };
        let address = address.literal().expect("a number");
        let cancel = AtomicBool::new(false);
        let options = MeshOptions {
            own: Rank(0),
            members: &members,
            addresses: &addresses,
            listener: Some(listener),
            incarnation: None,
            view: ViewId(1),
            digest: 1,
            key: None,
            allow_clear: false,
            time_limit: LONG,
            cancel: &cancel,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(Mesh::join_with(options, &Answering).is_err(), "cancelled"));
            let waited = ask(address, NodeId(99));
            assert!(waited >= SLOW * OPERATOR_WAIT, "{waited:?}");
            // Another node is answered at once. A busy machine may delay one answer, but not all.
            let soon = (0..20).any(|_| ask(address, NodeId(2)) < SLOW * OPERATOR_WAIT);
            cancel.store(true, Ordering::Relaxed);
            assert!(soon);
        });
    }
}
