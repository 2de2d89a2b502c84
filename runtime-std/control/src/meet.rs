//! The meeting, in which a member connects to the members of lower rank, and accepts those of
//! higher rank.
//!
//! Each attempt runs on a separate thread; the caller's thread collects the members that arrive.
//! All threads end when all members have arrived, when one of them encounters an error that a retry
//! cannot fix, or at the time limit.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, Rank};

use super::address::Address;
use super::channel::Channel;
use super::connection_limit::{ConnectionLimit, GREETING_MAX, Permit, accept_connections};
use super::deadline::{ChannelError, Deadline, SLICE};
use super::error::MeshError;
use super::greeting::{Refused, Terms, accept_greeting, receive_verdict, send_greeting};
use super::handshake::HandshakeEnd;
use super::hello::{Hello, Purpose};
use super::identity::incarnation;
use super::key::SharedKey;
use super::listener::Listener;
use super::meeting_handler::MeetingHandler;
use super::operator_wait;
use super::options::MeshOptions;
use super::refusal::{Refusal, encode_verdict};
use super::session::Session;
use super::stream::Stream;

/// The pause between two attempts at one address.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The pause after an attempt that was answered by a different process.
const STRANGER_PAUSE: Duration = Duration::from_millis(200);

/// Time limit for a connection attempt. The kernel retries after one second.
const CONNECT_MAX: Duration = Duration::from_millis(2500);

/// The number of simultaneous greetings allowed in addition to twice the number of members.
const STRANGERS_MAX: usize = 8;

/// A member that has arrived.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) channel: Channel,
    pub(super) incarnation: u64,
}

/// The state shared by the threads.
struct Common<'m> {
    own: Rank,
    members: &'m [NodeId],
    addresses: &'m [Address],
    hello: Hello,
    key: Option<SharedKey>,
    until: Instant,
    stop: AtomicBool,
    limit: ConnectionLimit,
    handler: &'m dyn MeetingHandler,
}

impl Common<'_> {
    fn terms(&self) -> Terms<'_> {
        let clients_digest = self.handler.clients_digest();
        Terms { hello: self.hello, clients_digest, key: self.key.as_ref() }
    }

    fn deadline(&self) -> Deadline<'_> {
        Deadline { until: self.until, stop: &self.stop }
    }
}

/// The result of a thread.
enum Found {
    /// A member has arrived. The accepting end may still refuse it.
    Arrived { rank: Rank, hello: Hello, channel: Channel, end: HandshakeEnd },
    /// A connection has been refused.
    Refused { address: Address, refusal: Refusal },
    /// A different process answers at a member's address.
    Stranger { rank: Rank, refusal: Refusal },
    /// The meeting has failed.
    Failed(MeshError),
}

/// Meets all members, by rank; also returns the local incarnation.
pub(super) fn all<'m>(
    options: MeshOptions<'m>,
    until: Instant,
    handler: &'m dyn MeetingHandler,
) -> Result<(Vec<Option<Met>>, u64), MeshError> {
    let MeshOptions { own, members, addresses, listener, view, digest, key, cancel, .. } = options;
    let io = |action| move |source| MeshError::Io { action, source };
    let listener = match listener {
        Some(listener) => listener,
        None => listen(&addresses[own.index()])?,
    };
    listener.set_nonblocking().map_err(io("watch a socket"))?;
    let incarnation =
        options.incarnation.map_or_else(incarnation, Ok).map_err(io("get random numbers"))?;
    let hello =
        Hello { purpose: Purpose::Meet, view, digest, node: members[own.index()], incarnation };
    let places = 2 * members.len() + STRANGERS_MAX;
    let (stop, limit) = (AtomicBool::new(false), ConnectionLimit::new(places, places));
    let common = Common { own, members, addresses, hello, key, until, stop, limit, handler };
    let started = Instant::now();
    let (sender, receiver) = channel();
    let greet =
        |stream, address, permit: &Permit<'_>| greet(&common, stream, address, permit, &sender);
    let met = std::thread::scope(|scope| {
        let call = |rank| start_call(scope, &common, rank, &sender);
        let met = start_accepting(scope, &common, &listener, &greet)
            .and_then(|()| (0..own.0).map(Rank).try_for_each(call))
            .and_then(|()| collect(&common, &receiver, call, cancel, started));
        common.stop.store(true, Ordering::Relaxed);
        common.limit.close();
        met
    })?;
    Ok((met, incarnation))
}

fn listen(address: &Address) -> Result<Listener, MeshError> {
    Listener::bind(address).map_err(|source| match source.kind() {
        ErrorKind::AddrInUse => MeshError::AddressInUse { address: address.clone() },
        _ => MeshError::Listen { address: address.clone(), source },
    })
}

fn start_accepting<'s, 'e: 's, G>(
    scope: &'s Scope<'s, 'e>,
    common: &'e Common<'_>,
    listener: &'e Listener,
    greet: &'e G,
) -> Result<(), MeshError>
where
    G: Fn(Stream, Address, &Permit<'e>) + Sync,
{
    std::thread::Builder::new()
        .name("tramontane-listen".into())
        .spawn_scoped(scope, move || accept_connections(scope, listener, &common.limit, greet))
        .map_err(no_thread)?;
    Ok(())
}

/// Starts calling a member until it has arrived.
fn start_call<'s, 'e: 's>(
    scope: &'s Scope<'s, 'e>,
    common: &'e Common<'_>,
    rank: Rank,
    sender: &Sender<Found>,
) -> Result<(), MeshError> {
    let sender = sender.clone();
    std::thread::Builder::new()
        .name("tramontane-meet".into())
        .spawn_scoped(scope, move || reach(common, rank, &sender))
        .map_err(no_thread)?;
    Ok(())
}

fn no_thread(source: std::io::Error) -> MeshError {
    MeshError::Io { action: "start a thread", source }
}

/// Collects members until none is missing. `call` starts calling one of them.
fn collect(
    common: &Common<'_>,
    receiver: &Receiver<Found>,
    call: impl Fn(Rank) -> Result<(), MeshError>,
    cancel: &AtomicBool,
    started: Instant,
) -> Result<Vec<Option<Met>>, MeshError> {
    let mut arrived: Vec<Option<Met>> = common.members.iter().map(|_| None).collect();
    let mut came = vec![false; common.members.len()];
    let mut refused = None;
    let mut strangers: Vec<(Rank, Refusal)> = Vec::new();
    loop {
        // A member that arrived and has since left is missing again, and may return.
        for (rank, place) in (0..).map(Rank).zip(&mut arrived) {
            let is_gone = place.take_if(|met| !met.channel.stream().is_open()).is_some();
            if is_gone && rank < common.own {
                call(rank)?;
            }
        }
        if arrived.iter().flatten().count() + 1 >= common.members.len() {
            break;
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(MeshError::Cancelled);
        }
        common.handler.waits_for(&absent(common, &arrived));
        let left = common.until.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(SLICE)) {
            Ok(Found::Arrived { rank, hello, channel, end }) => {
                match admit(common, &arrived, rank, &hello, channel, end) {
                    Ok(channel) => {
                        arrived[rank.index()] =
                            Some(Met { channel, incarnation: hello.incarnation });
                        came[rank.index()] = true;
                    }
                    Err(Some(refusal)) => {
                        refused = Some((common.addresses[rank.index()].clone(), refusal))
                    }
                    // The member has left in the meantime, and may return.
                    Err(None) => {}
                }
            }
            Ok(Found::Refused { address, refusal }) => {
                tracing::info!(%address, %refusal, "a connection was refused");
                refused = Some((address, refusal));
            }
            Ok(Found::Stranger { rank, refusal }) => {
                if !strangers.contains(&(rank, refusal)) {
                    let (peer, address) =
                        (common.members[rank.index()], &common.addresses[rank.index()]);
                    common.handler.met_stranger(peer, address, refusal);
                    strangers.retain(|(known, _)| *known != rank);
                    strangers.push((rank, refusal));
                }
            }
            Ok(Found::Failed(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            Err(_) => {
                if let Some((rank, refusal)) =
                    strangers.iter().find(|(rank, _)| arrived[rank.index()].is_none())
                {
                    let (peer, address) =
                        (common.members[rank.index()], &common.addresses[rank.index()]);
                    return Err(refusal_error(common, (*refusal, None), peer, address));
                }
                let missing = missing(common, &arrived, &came);
                return Err(MeshError::Missing { missing, waited: started.elapsed(), refused });
            }
        }
    }
    Ok(arrived)
}

/// Returns the members that have not arrived.
fn absent(common: &Common<'_>, arrived: &[Option<Met>]) -> Vec<NodeId> {
    let places = common.members.iter().zip(arrived).enumerate();
    let absent = places.filter(|(index, (_, met))| met.is_none() && *index != common.own.index());
    absent.map(|(_, (node, _))| *node).collect()
}

/// Returns the members to report as missing. A member that arrived and left gave up because of
/// another member, so only members that never arrived are named, if there are any.
fn missing(common: &Common<'_>, arrived: &[Option<Met>], came: &[bool]) -> Vec<NodeId> {
    let is_missing = |index: &usize| arrived[*index].is_none() && *index != common.own.index();
    let mut missing: Vec<usize> = (0..arrived.len()).filter(is_missing).collect();
    if missing.iter().any(|index| !came[*index]) {
        missing.retain(|index| !came[*index]);
    }
    missing.into_iter().map(|index| common.members[index]).collect()
}

/// Admits a member that arrived. A member that connected to this one waits for the verdict.
fn admit(
    common: &Common<'_>,
    arrived: &[Option<Met>],
    rank: Rank,
    hello: &Hello,
    mut channel: Channel,
    end: HandshakeEnd,
) -> Result<Channel, Option<Refusal>> {
    if end == HandshakeEnd::Connecting {
        return Ok(channel);
    }
    let before = arrived[rank.index()].as_ref();
    let is_taken = before
        .is_some_and(|met| met.incarnation != hello.incarnation && met.channel.stream().is_open());
    let verdict = if is_taken { Err(Refusal::DuplicateId) } else { Ok(()) };
    let told = channel.send(&[encode_verdict(verdict)], common.deadline().within(GREETING_MAX));
    match (verdict, told) {
        (Ok(()), Ok(())) => Ok(channel),
        (Ok(()), Err(_)) => Err(None),
        (Err(refusal), _) => Err(Some(refusal)),
    }
}

/// Connects to one member repeatedly until it has arrived.
///
/// A refusal from a process that has not proved that it has the key may come from any process, so
/// it does not end the meeting.
fn reach(common: &Common<'_>, rank: Rank, sender: &Sender<Found>) {
    let (peer, address) = (common.members[rank.index()], &common.addresses[rank.index()]);
    let mut is_told = false;
    while let Ok(slice) = common.deadline().slice() {
        let found = match attempt(common, address) {
            Ok(Ok((hello, channel))) if hello.node == peer => {
                Found::Arrived { rank, hello, channel, end: HandshakeEnd::Connecting }
            }
            Ok(Ok(_)) => {
                Found::Failed(MeshError::WrongPeer { expected: peer, address: address.clone() })
            }
            Err(ChannelError::Stopped) => return,
            Ok(Err((Refusal::Busy, _))) => {
                std::thread::sleep(RETRY_PAUSE.min(slice));
                continue;
            }
            Ok(Err((refusal @ (Refusal::Version | Refusal::KeyMode), _))) => {
                if !met_stranger(common, rank, refusal, slice, sender) {
                    return;
                }
                continue;
            }
            Err(ChannelError::WrongKey) => {
                if !met_stranger(common, rank, Refusal::Key, slice, sender) {
                    return;
                }
                continue;
            }
            Ok(Err(refused)) => Found::Failed(refusal_error(common, refused, peer, address)),
            Err(error) => {
                // Any error other than a refused connection, for example a name without an address.
                let is_other =
                    matches!(&error, ChannelError::Io(why) if why.kind() == ErrorKind::Other);
                if is_other && !std::mem::replace(&mut is_told, true) {
                    tracing::warn!("node {peer} cannot be reached yet: {error}; check its address");
                }
                tracing::debug!(%peer, %address, %error, "has not arrived yet");
                // A refused connection fails at once, so wait, but not beyond the time limit.
                std::thread::sleep(RETRY_PAUSE.min(slice));
                continue;
            }
        };
        // The caller has stopped, and needs no result.
        let _ = sender.send(found);
        return;
    }
}

/// Reports a different process at a member's address, and waits briefly. Returns false if the
/// caller has stopped, or if the process must be the member itself, because the socket is a file
/// that no other process can create.
fn met_stranger(
    common: &Common<'_>,
    rank: Rank,
    refusal: Refusal,
    slice: Duration,
    sender: &Sender<Found>,
) -> bool {
    let (peer, address) = (common.members[rank.index()], &common.addresses[rank.index()]);
    if let Address::Unix(_) = address {
        let _ = sender.send(Found::Failed(refusal_error(common, (refusal, None), peer, address)));
        return false;
    }
    std::thread::sleep(STRANGER_PAUSE.min(slice));
    sender.send(Found::Stranger { rank, refusal }).is_ok()
}

/// Makes one attempt to meet the process at an address.
fn attempt(
    common: &Common<'_>,
    address: &Address,
) -> Result<Result<(Hello, Channel), Refused>, ChannelError> {
    let stream = Stream::connect(address, common.deadline().within(CONNECT_MAX))?;
    let deadline = common.deadline().within(GREETING_MAX);
    let (hello, mut channel) = match send_greeting(common.terms(), stream, deadline)? {
        Ok(greeted) => greeted,
        Err(refused) => return Ok(Err(refused)),
    };
    // The last verdict says whether another process has this id.
    let last = receive_verdict(&mut channel, deadline)?;
    Ok(last.map(|()| (hello, channel)).map_err(|refusal| (refusal, None)))
}

/// Returns the error that a refusal causes at the refused member.
fn refusal_error(
    common: &Common<'_>,
    (refusal, digest): Refused,
    peer: NodeId,
    address: &Address,
) -> MeshError {
    let address = address.clone();
    match refusal {
        Refusal::Digest => MeshError::WrongDigest { peer, digest: digest.unwrap_or_default() },
        Refusal::View => MeshError::WrongView { peer },
        Refusal::DuplicateId => MeshError::DuplicateId { id: common.hello.node, address },
        Refusal::NotAMember => MeshError::WrongPeer { expected: peer, address },
        Refusal::Version => MeshError::WrongVersion { address },
        Refusal::KeyMode => MeshError::KeyMode { peer, address },
        Refusal::Key => MeshError::WrongKey { peer, address },
        Refusal::Running => MeshError::Running { peer },
        // A member that meets never receives these refusals.
        Refusal::NotRunning | Refusal::Busy => MeshError::Malformed { peer },
    }
}

/// Performs the accepting end of a greeting.
fn greet(
    common: &Common<'_>,
    stream: Stream,
    address: Address,
    permit: &Permit<'_>,
    sender: &Sender<Found>,
) {
    let stop: &Arc<AtomicBool> = permit.stop();
    let began = Instant::now();
    let deadline = Deadline { until: common.until, stop }.within(GREETING_MAX);
    let judge = |hello: &Hello| judge(common, hello, permit);
    let found = match accept_greeting(common.terms(), stream, deadline, judge) {
        Ok(Ok((hello, channel))) if hello.purpose == Purpose::Ask => {
            // Nodes also ask, but seldom enough.
            if rank_of(common, hello.node).is_none() {
                operator_wait::keep_waiting(began.elapsed(), deadline);
            }
            return common.handler.receive(Session::new(channel, Some(Arc::clone(stop))));
        }
        Ok(Ok((hello, channel))) => match rank_of(common, hello.node) {
            Some(rank) => Found::Arrived { rank, hello, channel, end: HandshakeEnd::Accepting },
            None => Found::Refused { address, refusal: Refusal::NotAMember },
        },
        Ok(Err((refusal, Some(hello)))) if is_hopeless(common, refusal, &hello) => Found::Failed(
            refusal_error(common, (refusal, Some(hello.digest)), hello.node, &address),
        ),
        Ok(Err((refusal, _))) => Found::Refused { address, refusal },
        Err(ChannelError::WrongKey) => Found::Refused { address, refusal: Refusal::Key },
        Err(error) => {
            return tracing::debug!(%address, %error, "a connection ended before it was accepted");
        }
    };
    // The caller has stopped, and needs no result.
    let _ = sender.send(found);
}

/// Returns whether a member came to meet with an incompatible configuration, so that waiting does
/// not help.
fn is_hopeless(common: &Common<'_>, refusal: Refusal, hello: &Hello) -> bool {
    hello.purpose == Purpose::Meet
        && matches!(refusal, Refusal::Digest | Refusal::View)
        && common.members.contains(&hello.node)
}

fn judge(common: &Common<'_>, hello: &Hello, permit: &Permit<'_>) -> Result<(), Refusal> {
    if hello.purpose == Purpose::Client {
        return Err(Refusal::NotRunning);
    }
    if hello.purpose != Purpose::Meet {
        if hello.digest != common.handler.clients_digest() {
            return Err(Refusal::Digest);
        }
        if hello.purpose != Purpose::Ask || !common.handler.takes_operators() {
            return Err(Refusal::NotRunning);
        }
        // Some slots are reserved for members that meet.
        return if permit.become_known(common.members.len()) { Ok(()) } else { Err(Refusal::Busy) };
    }
    let rank = rank_of(common, hello.node);
    if rank == Some(common.own) {
        return Err(Refusal::DuplicateId);
    }
    // This comes before the rank, because another view has other members.
    common.hello.check(hello)?;
    if rank.is_none_or(|rank| rank < common.own) {
        return Err(Refusal::NotAMember);
    }
    if permit.become_known(0) { Ok(()) } else { Err(Refusal::Busy) }
}

fn rank_of(common: &Common<'_>, node: NodeId) -> Option<Rank> {
    let rank = common.members.iter().position(|id| *id == node)?;
    u16::try_from(rank).ok().map(Rank)
}
