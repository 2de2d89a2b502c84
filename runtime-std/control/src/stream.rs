//! A connected socket, over TCP or a Unix socket.
//!
//! No call here waits longer than its [`Deadline`], because each uses non-blocking calls and waits
//! in slices. So the socket needs no timeouts, and has none when its owner changes.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with, sockopt,
};

use super::address::{Address, HostAddress};
use super::deadline::{ChannelError, Deadline};

/// The pause between two attempts at a Unix socket whose queue is full.
const CROWDED_PAUSE: Duration = Duration::from_millis(5);

/// The pause between two probes of an idle connection.
const PROBE_PAUSE: Duration = Duration::from_secs(10);

/// The number of unanswered probes after which the other host counts as lost.
const PROBES: u32 = 3;

/// One end of a connection. The socket is blocking, and sends without delay.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects with one attempt. If no process listens, it fails at once.
    pub(super) fn connect(address: &Address, deadline: Deadline<'_>) -> Result<Self, ChannelError> {
        let stream = match address {
            Address::Tcp(address) => Self::Tcp(connect_host(address, deadline)?),
            Address::Unix(path) => Self::Unix(connect_unix(path, deadline)?),
        };
        stream.set_up()?;
        Ok(stream)
    }

    /// Sets the socket's options: a small message must not wait for another one, a wait for a host
    /// without power must end, and a socket that is passed on must be blocking.
    pub(super) fn set_up(&self) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                keep_alive(stream, PROBE_PAUSE, PROBES)
            }
            Self::Unix(stream) => stream.set_nonblocking(false),
        }
    }

    /// Returns another handle to the same socket.
    pub(super) fn try_clone(&self) -> std::io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
        })
    }

    /// Ends one or both directions, for all handles of the socket.
    pub(super) fn shutdown(&self, how: Shutdown) {
        // This fails if the connection has already ended, which is the desired state.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        };
    }

    /// Reads the available bytes without waiting. Zero bytes mean the end.
    pub(super) fn read_now(&self, into: &mut [u8]) -> Result<usize, Errno> {
        recv(self, into, RecvFlags::DONTWAIT).map(|(count, _)| count)
    }

    /// Writes as many bytes as the kernel accepts, without waiting.
    pub(super) fn write_now(&self, from: &[u8]) -> Result<usize, Errno> {
        send(self, from, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
    }

    /// Reads at least one byte.
    pub(super) fn read(
        &self,
        into: &mut [u8],
        deadline: Deadline<'_>,
    ) -> Result<usize, ChannelError> {
        loop {
            let slice = deadline.slice()?;
            match self.read_now(into) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN | Errno::INTR) => wait(self, PollFlags::IN, slice),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Fills the whole buffer.
    pub(super) fn read_all(
        &self,
        into: &mut [u8],
        deadline: Deadline<'_>,
    ) -> Result<(), ChannelError> {
        let mut done = 0;
        while done < into.len() {
            done += self.read(&mut into[done..], deadline)?;
        }
        Ok(())
    }

    /// Writes the whole buffer.
    pub(super) fn write_all(
        &self,
        from: &[u8],
        deadline: Deadline<'_>,
    ) -> Result<(), ChannelError> {
        let mut done = 0;
        while done < from.len() {
            let slice = deadline.slice()?;
            match self.write_now(&from[done..]) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(count) => done += count,
                Err(Errno::AGAIN | Errno::INTR) => wait(self, PollFlags::OUT, slice),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Returns whether the other end seems to be connected, without consuming any data.
    pub(super) fn is_open(&self) -> bool {
        match recv(self, &mut [0_u8; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK) {
            Ok((count, _)) => count > 0,
            Err(errno) => matches!(errno, Errno::AGAIN | Errno::INTR),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Tcp(stream) => stream.into(),
            Stream::Unix(stream) => stream.into(),
        }
    }
}

/// Makes the kernel probe an idle connection after each pause, and end the connection after
/// `probes` unanswered probes.
pub(super) fn keep_alive(stream: &TcpStream, pause: Duration, probes: u32) -> std::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, pause)?;
    sockopt::set_tcp_keepintvl(stream, pause)?;
    sockopt::set_tcp_keepcnt(stream, probes)?;
    Ok(())
}

/// Waits until the socket is ready or the slice has passed. The caller retries in either case.
pub(super) fn wait(socket: impl AsFd, flags: PollFlags, slice: Duration) {
    let timeout = Timespec::try_from(slice).ok();
    // If the wait is interrupted, it is merely shorter.
    let _ = poll(&mut [PollFd::new(&socket, flags)], timeout.as_ref());
}

fn unconnected(family: AddressFamily) -> Result<OwnedFd, Errno> {
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Connects to the first address of a host at which a process listens.
fn connect_host(host: &HostAddress, deadline: Deadline<'_>) -> Result<TcpStream, ChannelError> {
    if let Some(address) = host.literal() {
        return connect_tcp(address, deadline);
    }
    let found = look_up(host, deadline)?;
    let (mut left, mut last) = (u32::try_from(found.len()).unwrap_or(u32::MAX), None);
    for address in found {
        // An unreachable address leaves time for the others.
        let share = deadline.until.saturating_duration_since(Instant::now()) / left.max(1);
        match connect_tcp(address, deadline.within(share)) {
            Ok(stream) => return Ok(stream),
            Err(ChannelError::Stopped) => return Err(ChannelError::Stopped),
            Err(error) => last = Some(error),
        }
        left -= 1;
    }
    Err(last.unwrap_or(ChannelError::Closed))
}

/// Returns the addresses of a host. The system's call has no time limit and may wait for a name
/// server, so it is made by a separate thread, which ends by itself.
fn look_up(host: &HostAddress, deadline: Deadline<'_>) -> Result<Vec<SocketAddr>, ChannelError> {
    let (sender, receiver) = channel();
    let host = host.clone();
    // A caller that has given up needs no answer.
    let look = move || drop(sender.send(host.resolve()));
    std::thread::Builder::new().name("tramontane-name".into()).spawn(look)?;
    loop {
        match receiver.recv_timeout(deadline.slice()?) {
            Ok(found) => return found.map_err(ChannelError::Io),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ChannelError::Closed),
        }
    }
}

fn connect_tcp(address: SocketAddr, deadline: Deadline<'_>) -> Result<TcpStream, ChannelError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = unconnected(family)?;
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => await_connected(&socket, deadline)?,
        Err(errno) => return Err(errno.into()),
    }
    let stream = TcpStream::from(socket);
    // If no process listens on the port and the kernel has assigned the same port to this socket,
    // the socket has connected to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(Errno::CONNREFUSED.into());
    }
    Ok(stream)
}

fn await_connected(socket: &OwnedFd, deadline: Deadline<'_>) -> Result<(), ChannelError> {
    loop {
        let timeout = Timespec::try_from(deadline.slice()?).ok();
        let mut descriptors = [PollFd::new(socket, PollFlags::OUT)];
        if poll(&mut descriptors, timeout.as_ref()).is_ok_and(|ready| ready > 0) {
            return Ok(sockopt::socket_error(socket)??);
        }
    }
}

fn connect_unix(path: &Path, deadline: Deadline<'_>) -> Result<UnixStream, ChannelError> {
    let (socket, address) = (unconnected(AddressFamily::UNIX)?, SocketAddrUnix::new(path)?);
    loop {
        match connect(&socket, &address) {
            Ok(()) => return Ok(UnixStream::from(socket)),
            Err(Errno::AGAIN | Errno::INTR) => {
                std::thread::sleep(deadline.slice()?.min(CROWDED_PAUSE))
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}
