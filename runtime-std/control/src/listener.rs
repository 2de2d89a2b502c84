//! A socket that listens, over TCP or a Unix socket.
//!
//! The file of a Unix socket outlives a process that is killed. It is replaced by the next one that
//! listens there, if nobody answers at it. Two that find it at once are told apart by a lock on its
//! folder, which is held only while one of them looks and binds.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

use super::address::Address;
use super::deadline::{ChannelError, Deadline, NEVER};
use super::stream::Stream;

/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 128;

/// How long another process may hold the lock on a socket's folder.
const LOCK_MAX: Duration = Duration::from_secs(2);

/// Between two attempts at the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A socket that listens. The file of a Unix socket is removed with the last handle, by the process
/// that made it.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    file: Option<Arc<SocketFile>>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens at an address. The file of a Unix socket can be used by this user alone (mode 600);
    /// one whose owner is dead is replaced.
    ///
    /// # Errors
    /// [`ErrorKind::AddrInUse`] if a process listens there, or the file is no socket; else the
    /// system's error.
    pub fn bind(address: &Address) -> Result<Self> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address)?.try_into(),
            Address::Unix(path) => Self::bind_unix(path),
        }
    }

    fn bind_unix(path: &Path) -> Result<Self> {
        let _lock = lock_folder(path)?;
        let socket = match open(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_stale(path) => {
                match std::fs::remove_file(path) {
                    // Another process that cleared the folder of dead sockets was faster.
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => open(path)?,
                }
            }
            opened => opened?,
        };
        let file = SocketFile {
            path: path.to_owned(),
            made: identity(&path.symlink_metadata()?),
            owner: std::process::id(),
        };
        let address = Address::Unix(path.to_owned());
        Ok(Self { socket: Socket::Unix(socket), address, file: Some(Arc::new(file)) })
    }

    /// Where it listens: with the port that the system chose, if it was asked to.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Another handle of the same socket.
    ///
    /// # Errors
    /// What the system says.
    pub fn try_clone(&self) -> Result<Self> {
        let socket = match &self.socket {
            Socket::Tcp(socket) => Socket::Tcp(socket.try_clone()?),
            Socket::Unix(socket) => Socket::Unix(socket.try_clone()?),
        };
        Ok(Self { socket, address: self.address.clone(), file: self.file.clone() })
    }

    pub(super) fn set_nonblocking(&self) -> Result<()> {
        match &self.socket {
            Socket::Tcp(socket) => socket.set_nonblocking(true),
            Socket::Unix(socket) => socket.set_nonblocking(true),
        }
    }

    /// The next connection, and its address: connections to a Unix socket have no address but that.
    pub(super) fn accept(&self) -> Result<(Stream, Address)> {
        let (stream, address) = match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, address) = socket.accept()?;
                (Stream::Tcp(stream), address.into())
            }
            Socket::Unix(socket) => (Stream::Unix(socket.accept()?.0), self.address.clone()),
        };
        stream.set_up()?;
        Ok((stream, address))
    }
}

impl TryFrom<TcpListener> for Listener {
    type Error = Error;

    /// A socket that listens already.
    fn try_from(socket: TcpListener) -> Result<Self> {
        let address = socket.local_addr()?.into();
        Ok(Self { socket: Socket::Tcp(socket), address, file: None })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Device and number of a file: no other has the same while it exists.
type FileIdentity = (u64, u64);

fn identity(metadata: &Metadata) -> FileIdentity {
    (metadata.dev(), metadata.ino())
}

/// The file of a Unix socket, to be removed.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    made: FileIdentity,
    owner: u32,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A forked process has the same handle, and another process may have taken the name.
        let is_own = std::process::id() == self.owner
            && self.path.symlink_metadata().is_ok_and(|metadata| identity(&metadata) == self.made);
        if is_own {
            // A file that stays is replaced by the next process that listens there.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The file takes the socket's mode, and is never there with another one.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Whether this is a socket that no process listens at.
fn is_stale(path: &Path) -> bool {
    if !path.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_socket()) {
        return false;
    }
    // One attempt: where too many wait already, a process listens.
    match Stream::connect(&Address::Unix(path.to_owned()), Deadline::new(Duration::ZERO, &NEVER)) {
        Err(ChannelError::Io(error)) => error.kind() == ErrorKind::ConnectionRefused,
        _ => false,
    }
}

/// Keeps others from listening in the same folder meanwhile: a socket that is bound and does not
/// listen yet looks stale.
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
