//! The members that a client may use, and the client's route from one to the next.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_control::client_messages::{ClientRefusal, NAME_MAX, Target};
use tramontane_control::{
    Address, HostAddress, Identity, OpenSessionError, Purpose, QueuedSession, Refusal, SharedKey,
    incarnation, open_session,
};

use crate::error::{AddressError, ConnectError};

/// Time limit for one attempt at one address.
const ATTEMPT: Duration = Duration::from_secs(2);

/// The pause between two rounds through all addresses.
const ROUND_PAUSE: Duration = Duration::from_millis(50);

/// The default time limit for the first member to accept a client.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The members of a group that a client may connect to, and the client's name there.
#[derive(Clone, Debug)]
pub struct Members {
    addresses: Vec<Address>,
    key: Option<SharedKey>,
    allows_clear: bool,
    group: String,
    subgroup: String,
    name: String,
    pub(crate) time_limit: Duration,
}

impl Members {
    /// Returns members at these addresses, which are tried in this order.
    #[must_use]
    pub fn at(addresses: impl IntoIterator<Item = Address>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
            key: None,
            allows_clear: false,
            group: String::new(),
            subgroup: String::new(),
            name: String::new(),
            time_limit: TIME_LIMIT,
        }
    }

    /// Parses addresses such as `10.9.0.1:7000`, `alpha.example:7000`, or the path of a Unix
    /// socket, with or without the prefix `unix:`.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, AddressError> {
        let address = |text: &str| match text.strip_prefix("unix:") {
            Some(path) => Ok(Address::Unix(PathBuf::from(path))),
            None if text.contains('/') => Ok(Address::Unix(PathBuf::from(text))),
            None => match text.parse::<HostAddress>() {
                Ok(address) if address.is_destination() => Ok(Address::Tcp(address)),
                _ => Err(AddressError::Malformed(text.to_owned())),
            },
        };
        let members = Self::at(texts.into_iter().map(address).collect::<Result<Vec<_>, _>>()?);
        if members.addresses.is_empty() { Err(AddressError::None) } else { Ok(members) }
    }

    /// Sets the group's key.
    #[must_use]
    pub fn key(self, key: SharedKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Allows unencrypted connections to addresses on other machines.
    #[must_use]
    pub fn allow_clear(self) -> Self {
        Self { allows_clear: true, ..self }
    }

    /// Sets the group's name, so that a different group at an address is detected.
    #[must_use]
    pub fn group(self, group: &str) -> Self {
        Self { group: group.to_owned(), ..self }
    }

    /// Sets the subgroup. The default is the first one that accepts clients.
    #[must_use]
    pub fn subgroup(self, subgroup: &str) -> Self {
        Self { subgroup: subgroup.to_owned(), ..self }
    }

    /// Sets the client's name, which members use in their status and logs. At most 64 bytes.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Sets the time limit for a member to accept the client. The default is 10 s.
    #[must_use]
    pub fn time_limit(self, time_limit: Duration) -> Self {
        Self { time_limit, ..self }
    }

    /// Returns the names of the group, the subgroup and the client under which the client connects.
    pub(crate) fn target(&self) -> Target<'_> {
        Target { group: &self.group, subgroup: &self.subgroup, name: &self.name }
    }

    /// Checks for errors that can be found before any attempt.
    pub(crate) fn check(&self) -> Result<(), ConnectError> {
        if self.addresses.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        if self.name.len() > NAME_MAX || self.name.contains(char::is_control) {
            return Err(ConnectError::Name);
        }
        if self.key.is_some() || self.allows_clear {
            return Ok(());
        }
        let exposed = self.addresses.iter().find_map(|address| match address {
            Address::Tcp(at) if !address.is_local() => Some(at.clone()),
            _ => None,
        });
        exposed.map_or(Ok(()), |address| Err(ConnectError::KeyNeeded(address)))
    }
}

/// The result of an attempt to connect.
pub(crate) enum Attempt {
    Session(Box<QueuedSession>),
    /// The attempt failed, but the next address may succeed. `was_last` is true if all addresses
    /// have been tried.
    Failed {
        was_last: bool,
    },
}

/// A client's route from one member to the next.
#[derive(Debug)]
pub(crate) struct ClientRoute {
    members: Members,
    next: usize,
    /// The problem at the last address.
    why: String,
    /// The number of successive addresses at which retrying cannot help.
    hopeless: usize,
    /// Whether the last member had accepted the client.
    is_taken: bool,
    /// The time since when no member has accepted the client.
    since: Instant,
}

impl ClientRoute {
    pub(crate) fn new(members: Members) -> Self {
        let why = "no process is listening".to_owned();
        Self { members, next: 0, why, hopeless: 0, is_taken: false, since: Instant::now() }
    }

    pub(crate) const fn members(&self) -> &Members {
        &self.members
    }

    /// Tries to connect to the next address.
    pub(crate) fn attempt(&mut self, stop: &AtomicBool) -> Attempt {
        let Members { addresses, key, .. } = &self.members;
        let Some(address) = addresses.get(self.next) else {
            return Attempt::Failed { was_last: true };
        };
        self.next = (self.next + 1) % addresses.len();
        self.is_taken = false;
        let was_last = self.next == 0;
        let incarnation = incarnation().unwrap_or_default();
        let identity = Identity { node: Identity::NO_MEMBER, incarnation, digest: 0 };
        let opened = open_session(address, &identity, key.as_ref(), Purpose::Client, ATTEMPT, stop);
        match opened.map(|opened| opened.session.into_queued()) {
            Ok(Some(session)) => return Attempt::Session(Box::new(session)),
            Ok(None) => {}
            Err(error) => {
                self.hopeless = if is_hopeless(&error) { self.hopeless + 1 } else { 0 };
                self.why = format!("{address}: {error}");
            }
        }
        Attempt::Failed { was_last }
    }

    /// Records that a member refused the client for now.
    pub(crate) fn refused(&mut self, why: ClientRefusal) {
        self.why = why.to_string();
        self.hopeless = 0;
    }

    /// Records that a member did not do what it was asked to do.
    pub(crate) fn failed(&mut self, why: &str) {
        why.clone_into(&mut self.why);
        self.hopeless = 0;
    }

    /// Records the loss of a member. Pauses if it had not accepted the client, as a process that is
    /// starting does not.
    pub(crate) fn lost(&mut self, why: &str) {
        self.failed(why);
        if std::mem::take(&mut self.is_taken) {
            self.since = Instant::now();
        } else {
            self.pause();
        }
    }

    /// Records that a member has accepted the client.
    pub(crate) fn taken(&mut self) {
        self.is_taken = true;
        self.since = Instant::now();
    }

    /// Returns the problem if retrying cannot help at any address, because each has a process with
    /// a different key or program.
    pub(crate) fn is_hopeless(&self) -> Option<&str> {
        (self.hopeless >= self.members.addresses.len()).then_some(&self.why)
    }

    /// Returns the time since a member last accepted the client, in whole milliseconds, and the
    /// problem at the last address.
    pub(crate) fn waited(&self) -> (Duration, &str) {
        let waited_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        (Duration::from_millis(waited_ms), &self.why)
    }

    /// Waits before all addresses are tried again.
    pub(crate) fn pause(&self) {
        std::thread::sleep(ROUND_PAUSE);
    }
}

const fn is_hopeless(error: &OpenSessionError) -> bool {
    use Refusal as R;
    matches!(
        error,
        OpenSessionError::WrongKey
            | OpenSessionError::Malformed
            | OpenSessionError::Refused(R::Version | R::KeyMode | R::Key)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_errors_name_the_text() {
        let members =
            Members::parse(["10.9.0.1:7000", "Alpha:7000", "unix:door-1", "/dev/shm/g/door-2"]);
        let addresses: Vec<String> =
            members.expect("addresses").addresses.iter().map(ToString::to_string).collect();
        assert_eq!(
            addresses,
            ["10.9.0.1:7000", "alpha:7000", "unix:door-1", "unix:/dev/shm/g/door-2"]
        );
        assert!(matches!(Members::parse([]), Err(AddressError::None)));
        for text in ["host", "0.0.0.0:7000", "host:0"] {
            let error = Members::parse([text]).expect_err("no address").to_string();
            assert!(error.contains(" is not a member's address; give HOST:PORT"), "{error}");
        }
    }

    /// A process that is starting answers the handshake, and then ends the connection.
    #[test]
    fn starting_member_does_not_extend_wait() {
        let mut route = ClientRoute::new(Members::parse(["127.0.0.1:7000"]).expect("an address"));
        route.lost("the connection was reset");
        assert!(route.waited().0 >= ROUND_PAUSE);
        route.taken();
        std::thread::sleep(ROUND_PAUSE);
        let begin = Instant::now();
        route.lost("the connection was reset");
        assert!(route.waited().0 <= begin.elapsed());
    }

    #[test]
    fn unencrypted_connections_need_permission() {
        let members = |text| Members::parse([text]).expect("an address");
        assert!(matches!(members("10.9.0.1:7000").check(), Err(ConnectError::KeyNeeded(_))));
        for good in [
            members("127.0.0.1:7000"),
            members("unix:door-1"),
            members("10.9.0.1:7000").allow_clear(),
            members("10.9.0.1:7000").key(SharedKey::from_bytes([7; 32])),
        ] {
            assert!(good.check().is_ok());
            assert!(matches!(good.clone().name("a\nb").check(), Err(ConnectError::Name)));
            assert!(matches!(good.name(&"x".repeat(65)).check(), Err(ConnectError::Name)));
        }
        assert!(matches!(Members::at([]).check(), Err(ConnectError::NoAddress)));
    }
}
