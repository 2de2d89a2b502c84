//! A socket that listens, over TCP or a Unix socket.
//!
//! The file of a Unix socket outlives a killed process. The next process that listens under that
//! name replaces the file if no process answers. A lock on the folder prevents two processes from
//! doing so at the same time; it is held only while one of them checks and binds.
//!
//! Conversely, a listening process may outlive the file if someone cleans up the folder. The
//! process then listens on a new socket with the same name.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

use super::address::Address;
use super::deadline::{ChannelError, Deadline, NEVER};
use super::stream::{Stream, wait};

/// The maximum number of connections that the kernel queues until they are accepted.
const BACKLOG: i32 = 128;

/// The maximum time for which another process may hold the lock on a socket's folder.
const LOCK_MAX: Duration = Duration::from_secs(2);

/// The pause between two attempts to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A listening socket. The file of a Unix socket is removed with the last handle, by the process
/// that created it.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(Arc<RwLock<NamedSocket>>),
}

impl Listener {
    /// Listens at an address. The file of a Unix socket can be used only by this user (mode 600). A
    /// file whose owner has ended is replaced.
    ///
    /// # Errors
    /// Returns [`ErrorKind::AddrInUse`] if a process listens there, or the file is not a socket;
    /// otherwise, returns the system's error.
    pub fn bind(address: &Address) -> Result<Self> {
        match address {
            Address::Tcp(address) => {
                let listener: Self =
                    TcpListener::bind(address.resolve()?.as_slice())?.try_into()?;
                if listener.address.is_local() && !address.is_local() {
                    tracing::warn!(
                        "on this host, the name in {address} resolves to {}, to which no other \
                         host can connect; give the host's address, or correct /etc/hosts",
                        listener.address
                    );
                }
                Ok(listener)
            }
            Address::Unix(path) => {
                let until = Instant::now() + LOCK_MAX;
                let mut socket = NamedSocket::bind(path);
                // Someone may have removed the folder. Its owner creates it again.
                while Instant::now() < until
                    && socket.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
                {
                    std::thread::sleep(LOCK_PAUSE);
                    socket = NamedSocket::bind(path);
                }
                let socket = Arc::new(RwLock::new(socket?));
                Ok(Self { socket: Socket::Unix(socket), address: address.clone() })
            }
        }
    }

    /// Returns the address at which the socket listens. It includes the port that the system chose,
    /// if none was given.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns another handle to the same socket.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub fn try_clone(&self) -> Result<Self> {
        let socket = match &self.socket {
            Socket::Tcp(socket) => Socket::Tcp(socket.try_clone()?),
            Socket::Unix(socket) => Socket::Unix(Arc::clone(socket)),
        };
        Ok(Self { socket, address: self.address.clone() })
    }

    /// Makes a TCP socket non-blocking. A Unix socket always is.
    pub(super) fn set_nonblocking(&self) -> Result<()> {
        match &self.socket {
            Socket::Tcp(socket) => socket.set_nonblocking(true),
            Socket::Unix(_) => Ok(()),
        }
    }

    /// Waits for a connection, for at most `at_most`. If the file of a Unix socket is missing, the
    /// socket is first created again, provided that its folder exists.
    pub(super) fn wait(&self, at_most: Duration) {
        match &self.socket {
            Socket::Tcp(socket) => wait(socket, PollFlags::IN, at_most),
            Socket::Unix(named) => {
                let is_in_place = read(named).is_in_place();
                if !is_in_place {
                    let path = read(named).path.clone();
                    match NamedSocket::bind(&path) {
                        Ok(new) => *named.write().unwrap_or_else(PoisonError::into_inner) = new,
                        Err(error) => tracing::debug!(%error, "a socket lost its name"),
                    }
                }
                wait(&read(named).socket, PollFlags::IN, at_most);
            }
        }
    }

    /// Returns the next connection, and its address: for a Unix socket, that is the listener's own
    /// address.
    pub(super) fn accept(&self) -> Result<(Stream, Address)> {
        let (stream, address) = match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, address) = socket.accept()?;
                (Stream::Tcp(stream), address.into())
            }
            Socket::Unix(named) => {
                (Stream::Unix(read(named).socket.accept()?.0), self.address.clone())
            }
        };
        stream.set_up()?;
        Ok((stream, address))
    }
}

fn read(named: &RwLock<NamedSocket>) -> RwLockReadGuard<'_, NamedSocket> {
    named.read().unwrap_or_else(PoisonError::into_inner)
}

impl TryFrom<TcpListener> for Listener {
    type Error = Error;

    /// Wraps a socket that already listens.
    fn try_from(socket: TcpListener) -> Result<Self> {
        let address = socket.local_addr()?.into();
        Ok(Self { socket: Socket::Tcp(socket), address })
    }
}

/// The device and inode of a file. While the file exists, no other file has the same.
type FileIdentity = (u64, u64);

fn identity(metadata: &Metadata) -> FileIdentity {
    (metadata.dev(), metadata.ino())
}

/// A Unix socket and its file, which is removed together with the socket.
#[derive(Debug)]
struct NamedSocket {
    socket: UnixListener,
    path: PathBuf,
    made: FileIdentity,
    owner: u32,
}

impl NamedSocket {
    fn bind(path: &Path) -> Result<Self> {
        let _lock = lock_folder(path)?;
        let socket = match open(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_stale(path) => {
                match std::fs::remove_file(path) {
                    // Another process that removes dead sockets from the folder was faster.
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => open(path)?,
                }
            }
            opened => opened?,
        };
        let made = identity(&path.symlink_metadata()?);
        Ok(Self { socket, path: path.to_owned(), made, owner: std::process::id() })
    }

    /// Returns whether the file with that name is this socket's.
    fn is_in_place(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|metadata| identity(&metadata) == self.made)
    }
}

impl Drop for NamedSocket {
    fn drop(&mut self) {
        // A forked process has the same handle, and another process may have taken the name.
        if std::process::id() == self.owner && self.is_in_place() {
            // If the file remains, the next process that listens under that name replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the socket's mode, so it never exists with a different one.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Returns whether this is a socket on which no process listens.
fn is_stale(path: &Path) -> bool {
    if !path.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_socket()) {
        return false;
    }
    // One attempt is enough: if too many connections are already queued, a process is listening.
    match Stream::connect(&Address::Unix(path.to_owned()), Deadline::new(Duration::ZERO, &NEVER)) {
        Err(ChannelError::Io(error)) => error.kind() == ErrorKind::ConnectionRefused,
        _ => false,
    }
}

/// Keeps other processes from listening in the same folder in the meantime, because a socket that
/// is bound but not listening yet looks stale.
fn lock_folder(path: &Path) -> Result<File> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let (folder, until) = (File::open(folder)?, Instant::now() + LOCK_MAX);
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < until => {
                std::thread::sleep(LOCK_PAUSE)
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}
