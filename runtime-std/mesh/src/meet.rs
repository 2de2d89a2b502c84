//! Meeting: connecting to the members of lower rank, and accepting those of higher rank.
//!
//! Each attempt has a thread of its own for as long as it lasts; the caller's thread collects who arrived. All
//! of them end when everybody is there, when one finds what cannot be mended, or when the time is up.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::rand::{GetRandomFlags, getrandom};
use tramontane_core::ids::{NodeId, Rank};

use super::MeshOptions;
use super::channel::{Channel, ChannelError, End, Patience, read_all, write_all};
use super::error::{MeshError, Refusal};
use super::hello::{Hello, PREAMBLE_BYTES, Preamble, decode_verdict, encode_verdict};
use super::key::SharedKey;

/// How long one attempt may take, from the first byte to the last verdict.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);

/// Between two attempts at one address.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// How often threads and caller look whether they should stop.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Connections beyond twice the members that may be in their first words at once.
const STRANGERS_MAX: usize = 8;

/// What the threads share.
struct Common<'m> {
    own: Rank,
    members: &'m [NodeId],
    addresses: &'m [SocketAddr],
    hello: Hello,
    key: Option<SharedKey>,
    until: Instant,
    stop: AtomicBool,
    accepting: AtomicUsize,
}

/// What a thread found.
enum Found {
    /// A member is there. Whoever accepts may still send it away.
    Arrived { rank: Rank, hello: Hello, channel: Channel, end: End },
    /// Somebody was sent away.
    Refused { address: SocketAddr, refusal: Refusal },
    /// Nobody need wait any longer.
    Failed(MeshError),
}

/// Meets everybody; gives the connections by rank.
pub(super) fn all(options: MeshOptions<'_>, until: Instant) -> Result<Vec<Option<Channel>>, MeshError> {
    let MeshOptions { own, members, addresses, listener, view, digest, key, cancel, .. } = options;
    let listener = match listener {
        Some(listener) => listener,
        None => listen(addresses[own.index()])?,
    };
    let hello = Hello { view, digest, node: members[own.index()], incarnation: incarnation()? };
    let (stop, accepting) = (AtomicBool::new(false), AtomicUsize::new(0));
    let common = Common { own, members, addresses, hello, key, until, stop, accepting };
    let started = Instant::now();
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let met = start(scope, &common, &listener, &sender)
            .and_then(|()| collect(&common, &receiver, cancel, started));
        common.stop.store(true, Ordering::Relaxed);
        met
    })
}

fn listen(address: SocketAddr) -> Result<TcpListener, MeshError> {
    TcpListener::bind(address).map_err(|source| match source.kind() {
        ErrorKind::AddrInUse => MeshError::AddressInUse { address },
        _ => MeshError::Listen { address, source },
    })
}

fn incarnation() -> Result<u64, MeshError> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|errno| MeshError::Io { action: "get random numbers", source: errno.into() })?;
    Ok(u64::from_ne_bytes(bytes))
}

fn start<'s, 'e: 's>(
    scope: &'s Scope<'s, 'e>,
    common: &'e Common<'_>,
    listener: &'e TcpListener,
    sender: &Sender<Found>,
) -> Result<(), MeshError> {
    let failed = |source| MeshError::Io { action: "start a thread", source };
    for rank in (0..common.own.0).map(Rank) {
        let sender = sender.clone();
        std::thread::Builder::new()
            .name("tramontane-meet".into())
            .spawn_scoped(scope, move || reach(common, rank, &sender))
            .map_err(failed)?;
    }
    let sender = sender.clone();
    std::thread::Builder::new()
        .name("tramontane-listen".into())
        .spawn_scoped(scope, move || welcome(scope, common, listener, &sender))
        .map_err(failed)?;
    Ok(())
}

/// Collects who arrives, until nobody is missing.
fn collect(
    common: &Common<'_>,
    receiver: &Receiver<Found>,
    cancel: &AtomicBool,
    started: Instant,
) -> Result<Vec<Option<Channel>>, MeshError> {
    let mut arrived: Vec<Option<(Hello, Channel)>> = common.members.iter().map(|_| None).collect();
    let mut came = vec![false; common.members.len()];
    let mut refused = None;
    loop {
        // Who came and gave up since is still missing, and may come again.
        for place in &mut arrived {
            place.take_if(|(_, channel)| !channel.is_open());
        }
        if arrived.iter().flatten().count() + 1 >= common.members.len() {
            break;
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(MeshError::Cancelled);
        }
        let left = common.until.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(LOOK_PAUSE)) {
            Ok(Found::Arrived { rank, hello, channel, end }) => {
                match admit(common, &arrived, rank, &hello, channel, end) {
                    Ok(channel) => {
                        arrived[rank.index()] = Some((hello, channel));
                        came[rank.index()] = true;
                    }
                    Err(Some(refusal)) => refused = Some((common.addresses[rank.index()], refusal)),
                    // It went meanwhile, and may come again.
                    Err(None) => {}
                }
            }
            Ok(Found::Refused { address, refusal }) => {
                tracing::info!(%address, %refusal, "somebody came and was sent away");
                refused = Some((address, refusal));
            }
            Ok(Found::Failed(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            Err(_) => {
                let missing = missing(common, &arrived, &came);
                return Err(MeshError::Missing { missing, waited: started.elapsed(), refused });
            }
        }
    }
    Ok(arrived.into_iter().map(|place| place.map(|(_, channel)| channel)).collect())
}

/// Who is to be named as missing. Who came and went gave up for the sake of somebody else, who is the one to
/// look for; unless there is nobody else.
fn missing(common: &Common<'_>, arrived: &[Option<(Hello, Channel)>], came: &[bool]) -> Vec<NodeId> {
    let is_missing = |index: &usize| arrived[*index].is_none() && *index != common.own.index();
    let mut missing: Vec<usize> = (0..arrived.len()).filter(is_missing).collect();
    if missing.iter().any(|index| !came[*index]) {
        missing.retain(|index| !came[*index]);
    }
    missing.into_iter().map(|index| common.members[index]).collect()
}

/// Takes in one who arrived: who connected is told the verdict, and waits for it.
fn admit(
    common: &Common<'_>,
    arrived: &[Option<(Hello, Channel)>],
    rank: Rank,
    hello: &Hello,
    mut channel: Channel,
    end: End,
) -> Result<Channel, Option<Refusal>> {
    if end == End::Connecting {
        return Ok(channel);
    }
    let before = arrived[rank.index()].as_ref();
    let is_taken =
        before.is_some_and(|(before, channel)| before.incarnation != hello.incarnation && channel.is_open());
    let verdict = if is_taken { Err(Refusal::DuplicateId) } else { Ok(()) };
    let patience = Patience { until: common.until, stop: &common.stop }.within(ATTEMPT_MAX);
    let told = channel.send(&[encode_verdict(verdict)], patience);
    match (verdict, told) {
        (Ok(()), Ok(())) => Ok(channel),
        (Ok(()), Err(_)) => Err(None),
        (Err(refusal), _) => Err(Some(refusal)),
    }
}

/// Connects to one member, again and again until it is there.
fn reach(common: &Common<'_>, rank: Rank, sender: &Sender<Found>) {
    let (peer, address) = (common.members[rank.index()], common.addresses[rank.index()]);
    let patience = Patience { until: common.until, stop: &common.stop };
    while let Ok(slice) = patience.slice() {
        let attempt = TcpStream::connect_timeout(&address, slice.max(LOOK_PAUSE))
            .map_err(ChannelError::from)
            .and_then(|stream| introduce(common, stream, patience.within(ATTEMPT_MAX)));
        let found = match attempt {
            Ok(Ok((hello, channel))) if hello.node == peer => {
                Found::Arrived { rank, hello, channel, end: End::Connecting }
            }
            Ok(Ok(_)) => Found::Failed(MeshError::WrongPeer { expected: peer, address }),
            Ok(Err(refusal)) => Found::Failed(refusal_error(common, refusal, peer, address)),
            Err(ChannelError::WrongKey) => Found::Failed(MeshError::WrongKey { peer, address }),
            Err(ChannelError::Stopped) => return,
            Err(error) => {
                tracing::debug!(%peer, %address, %error, "not there yet");
                // A refused connection comes back at once: wait, but not past the end.
                std::thread::sleep(RETRY_PAUSE.min(slice));
                continue;
            }
        };
        // The caller went away: nobody need know.
        let _ = sender.send(found);
        return;
    }
}

/// What a refusal means for the one who connected.
fn refusal_error(common: &Common<'_>, refusal: Refusal, peer: NodeId, address: SocketAddr) -> MeshError {
    match refusal {
        Refusal::Digest => MeshError::WrongDigest { peer },
        Refusal::View => MeshError::WrongView { peer },
        Refusal::DuplicateId => MeshError::DuplicateId { id: common.hello.node, address },
        Refusal::NotAMember => MeshError::WrongPeer { expected: peer, address },
        Refusal::Version => MeshError::WrongVersion { address },
        Refusal::KeyMode => MeshError::KeyMode { peer, address },
        Refusal::Key => MeshError::WrongKey { peer, address },
    }
}

/// The connecting end of the first words.
fn introduce(
    common: &Common<'_>,
    stream: TcpStream,
    patience: Patience<'_>,
) -> Result<Result<(Hello, Channel), Refusal>, ChannelError> {
    let mut channel = match preambles(common, stream, End::Connecting, patience)? {
        Ok(channel) => channel,
        Err(refusal) => return Ok(Err(refusal)),
    };
    channel.send(&common.hello.encode(), patience)?;
    let hello = Hello::decode(&channel.receive(patience)?).ok_or(ChannelError::Garbled)?;
    let theirs = decode_verdict(&channel.receive(patience)?).ok_or(ChannelError::Garbled)?;
    let verdict = theirs.and_then(|()| common.hello.check(&hello));
    channel.send(&[encode_verdict(verdict)], patience)?;
    if let Err(refusal) = verdict {
        return Ok(Err(refusal));
    }
    // The last word: whether another process came with this id.
    let last = decode_verdict(&channel.receive(patience)?).ok_or(ChannelError::Garbled)?;
    Ok(last.map(|()| (hello, channel)))
}

/// Preambles, and the handshake if there is a key.
fn preambles(
    common: &Common<'_>,
    stream: TcpStream,
    end: End,
    patience: Patience<'_>,
) -> Result<Result<Channel, Refusal>, ChannelError> {
    // A small message must not wait for another one.
    stream.set_nodelay(true)?;
    let own = Preamble::own(common.key.is_some());
    let mut theirs = [0; PREAMBLE_BYTES];
    write_all(&stream, &own.encode(), patience)?;
    read_all(&stream, &mut theirs, patience)?;
    if let Err(refusal) = own.check(Preamble::decode(&theirs)) {
        return Ok(Err(refusal));
    }
    let Some(key) = &common.key else { return Ok(Ok(Channel::clear(stream))) };
    let prologue = match end {
        End::Connecting => [own.encode(), theirs].concat(),
        End::Accepting => [theirs, own.encode()].concat(),
    };
    Channel::keyed(stream, key, &prologue, end, patience).map(Ok)
}

/// Accepts whoever comes, until told to stop.
fn welcome<'s, 'e: 's>(
    scope: &'s Scope<'s, 'e>,
    common: &'e Common<'_>,
    listener: &TcpListener,
    sender: &Sender<Found>,
) {
    let patience = Patience { until: common.until, stop: &common.stop };
    if let Err(source) = listener.set_nonblocking(true) {
        let _ = sender.send(Found::Failed(MeshError::Io { action: "watch a socket", source }));
        return;
    }
    let pause = Timespec { tv_sec: 0, tv_nsec: LOOK_PAUSE.subsec_nanos().into() };
    while patience.slice().is_ok() {
        let mut descriptors = [PollFd::new(listener, PollFlags::IN)];
        // An interrupted wait is a short one.
        let _ = poll(&mut descriptors, Some(&pause));
        let Ok((stream, address)) = listener.accept() else { continue };
        let most = 2 * common.members.len() + STRANGERS_MAX;
        if common.accepting.fetch_add(1, Ordering::Relaxed) >= most || stream.set_nonblocking(false).is_err()
        {
            common.accepting.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let sender = sender.clone();
        let spawned =
            std::thread::Builder::new().name("tramontane-greet".into()).spawn_scoped(scope, move || {
                greet(common, stream, address, &sender);
                common.accepting.fetch_sub(1, Ordering::Relaxed);
            });
        if spawned.is_err() {
            common.accepting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The accepting end of the first words.
fn greet(common: &Common<'_>, stream: TcpStream, address: SocketAddr, sender: &Sender<Found>) {
    let patience = Patience { until: common.until, stop: &common.stop }.within(ATTEMPT_MAX);
    let found = match listen_to(common, stream, patience) {
        Ok(Ok((rank, hello, channel))) => Found::Arrived { rank, hello, channel, end: End::Accepting },
        Ok(Err((refusal, Some(peer)))) if matches!(refusal, Refusal::Digest | Refusal::View) => {
            // A member, and wrong: waiting for it does not help.
            Found::Failed(refusal_error(common, refusal, peer, address))
        }
        Ok(Err((refusal, _))) => Found::Refused { address, refusal },
        Err(ChannelError::WrongKey) => Found::Refused { address, refusal: Refusal::Key },
        Err(error) => return tracing::debug!(%address, %error, "somebody came and went"),
    };
    // The caller went away: nobody need know.
    let _ = sender.send(found);
}

type Heard = Result<(Rank, Hello, Channel), (Refusal, Option<NodeId>)>;

fn listen_to(common: &Common<'_>, stream: TcpStream, patience: Patience<'_>) -> Result<Heard, ChannelError> {
    let mut channel = match preambles(common, stream, End::Accepting, patience)? {
        Ok(channel) => channel,
        Err(refusal) => return Ok(Err((refusal, None))),
    };
    let hello = Hello::decode(&channel.receive(patience)?).ok_or(ChannelError::Garbled)?;
    let rank = common.members.iter().position(|id| *id == hello.node);
    let rank = rank.and_then(|rank| u16::try_from(rank).ok()).map(Rank);
    let verdict = match rank {
        Some(rank) if rank == common.own => Err(Refusal::DuplicateId),
        Some(rank) if rank > common.own => common.hello.check(&hello),
        _ => Err(Refusal::NotAMember),
    };
    channel.send(&common.hello.encode(), patience)?;
    channel.send(&[encode_verdict(verdict)], patience)?;
    let theirs = decode_verdict(&channel.receive(patience)?).ok_or(ChannelError::Garbled)?;
    let peer = rank.map(|_| hello.node);
    match (verdict.and(theirs), rank) {
        (Ok(()), Some(rank)) => Ok(Ok((rank, hello, channel))),
        (Err(refusal), _) => Ok(Err((refusal, peer))),
        (Ok(()), None) => Ok(Err((Refusal::NotAMember, None))),
    }
}
