//! The exchange of descriptors between processes, by datagrams to a socket in the group's folder.
//!
//! Each process has one socket, to which others send, but on which nothing is answered. A datagram
//! is in its receiver's queue when the send returns. So anything that the sender later writes to
//! its own memory may refer to a descriptor that it has already sent.
//!
//! No call blocks. If a queue is full, for any reason, the send is retried later.

use std::ffi::CStr;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, recv,
    recvmsg, sendmsg, socket_with,
};
use tramontane_core::fabric::Region;
use tramontane_core::ids::{NodeId, ViewId};

use super::folder::Folder;

/// The maximum number of descriptors in one datagram.
const FILES_MAX: usize = 2;

const MAGIC: u64 = u64::from_le_bytes(*b"tramfds\x02");

/// The number of words in a message, each of 8 bytes, little-endian.
const WORDS: usize = 6;

/// The item to which a descriptor belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The row of a view, with descriptors of the row and of its owner's doorbell.
    Row { view: ViewId, digest: u64 },
    /// Block memory from which blocks are sent in a view: one descriptor.
    Block { view: ViewId, serial: u64 },
    /// A region, which is part of all views of the two processes: one descriptor.
    Region { region: Region, serial: u64 },
    /// A queue of writes to the receiver's regions in a view: one descriptor.
    Queue { view: ViewId, serial: u64 },
}

impl Subject {
    /// Returns the number that the header of the memory contains.
    pub(super) fn number(self) -> u64 {
        self.to_words()[2]
    }

    /// Returns the kind, the view or region, and the number.
    fn to_words(self) -> [u64; 3] {
        match self {
            Self::Row { view, digest } => [1, view.0, digest],
            Self::Block { view, serial } => [2, view.0, serial],
            Self::Region { region, serial } => [3, u64::from(region.0), serial],
            Self::Queue { view, serial } => [4, view.0, serial],
        }
    }

    fn from_words([kind, of, number]: [u64; 3]) -> Option<Self> {
        let (view, serial) = (ViewId(of), number);
        Some(match kind {
            1 => Self::Row { view, digest: number },
            2 => Self::Block { view, serial },
            3 => Self::Region { region: Region(u16::try_from(of).ok()?), serial },
            4 => Self::Queue { view, serial },
            _ => return None,
        })
    }
}

/// The message sent together with descriptors, which names their owner and subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DescriptorMessage {
    pub(super) node: NodeId,
    pub(super) incarnation: u64,
    pub(super) subject: Subject,
}

impl DescriptorMessage {
    fn to_bytes(self) -> [u8; 8 * WORDS] {
        let Self { node, incarnation, subject } = self;
        let [kind, of, number] = subject.to_words();
        let words = [MAGIC, u64::from(node.get()), incarnation, kind, of, number];
        let mut bytes = [0; 8 * WORDS];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let words: [_; WORDS] = words.try_into().ok()?;
        let [magic, node, incarnation, kind, of, number] = words.map(u64::from_le_bytes);
        let subject = Subject::from_words([kind, of, number])?;
        let node = NodeId(u32::try_from(node).ok()?);
        (magic == MAGIC).then_some(Self { node, incarnation, subject })
    }
}

/// The contents of one datagram.
#[derive(Debug)]
pub(super) struct Datagram {
    /// `None` if the message is not valid.
    pub(super) message: Option<DescriptorMessage>,
    /// `None` for descriptors that were not sent.
    pub(super) files: [Option<OwnedFd>; FILES_MAX],
}

/// Returns a non-blocking datagram socket.
fn datagrams() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
}

/// A connection to another process's socket. It stays valid when the socket loses its name.
#[derive(Debug)]
pub(super) struct WayTo(OwnedFd);

impl WayTo {
    /// Connects to the socket with the given name.
    pub(super) fn open(folder: &Folder, name: &CStr) -> rustix::io::Result<Self> {
        let socket = datagrams()?;
        connect(&socket, &address(folder, name)?)?;
        Ok(Self(socket))
    }

    /// Sends descriptors. Returns false if they must be sent again later, because the process is
    /// not running or its queue is full.
    pub(super) fn send(
        &self,
        message: DescriptorMessage,
        files: &[BorrowedFd<'_>],
    ) -> rustix::io::Result<bool> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(Errno::INVAL);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(&self.0, &[IoSlice::new(&message.to_bytes())], &mut control, flags) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::TOOMANYREFS) => Ok(false),
            Err(Errno::NOTCONN | Errno::CONNREFUSED | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// A process's socket for descriptors.
#[derive(Debug)]
pub(super) struct DescriptorSocket(OwnedFd);

impl DescriptorSocket {
    /// Creates the socket under the given name in the folder.
    pub(super) fn bind(folder: &Folder, name: &CStr) -> rustix::io::Result<Self> {
        let socket = datagrams()?;
        bind(&socket, &address(folder, name)?)?;
        Ok(Self(socket))
    }

    /// Returns the next datagram, if there is one. Only one call may run at a time.
    pub(super) fn receive(&self) -> rustix::io::Result<Option<Datagram>> {
        if let Err(errno) = recv(&self.0, &mut [0_u8; 1][..], RecvFlags::PEEK) {
            return if errno == Errno::AGAIN { Ok(None) } else { Err(errno) };
        }
        // If no descriptor is free, this process would lose what is sent to it. In that case, the
        // datagram stays in the queue.
        let spare = (fcntl_dupfd_cloexec(&self.0, 0)?, fcntl_dupfd_cloexec(&self.0, 0)?);
        drop(spare);
        // The buffer has room for a longer message, so that a message of the wrong length is not
        // truncated to the right one.
        let mut bytes = [0; 8 * WORDS + 8];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let came = recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
        let sent = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let mut files = [None, None];
        for (place, file) in files.iter_mut().zip(sent.flatten()) {
            *place = Some(file);
        }
        let message = bytes.get(..came.bytes).and_then(DescriptorMessage::from_bytes);
        Ok(Some(Datagram { message, files }))
    }
}

/// Returns the address of a socket in the folder, by way of `/proc` if its path is too long for a
/// socket address.
fn address(folder: &Folder, name: &CStr) -> rustix::io::Result<SocketAddrUnix> {
    let name = name.to_string_lossy();
    SocketAddrUnix::new(folder.path().join(name.as_ref())).or_else(|_| {
        SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", folder.as_fd().as_raw_fd()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_descriptor_messages_are_decoded() {
        let view = ViewId(u64::MAX);
        for subject in [
            Subject::Row { view, digest: 7 },
            Subject::Block { view, serial: 1 },
            Subject::Region { region: Region(u16::MAX), serial: 2 },
            Subject::Queue { view, serial: u64::MAX },
        ] {
            let message = DescriptorMessage { node: NodeId(u32::MAX), incarnation: 5, subject };
            let bytes = message.to_bytes();
            assert_eq!(DescriptorMessage::from_bytes(&bytes), Some(message));
            assert_eq!(DescriptorMessage::from_bytes(&bytes[1..]), None);
            assert_eq!(DescriptorMessage::from_bytes(&[&bytes[..], &[0; 8]].concat()), None);
            for place in [0, 12, 24] {
                let mut wrong = bytes;
                wrong[place] ^= 0x40;
                assert_eq!(DescriptorMessage::from_bytes(&wrong), None, "byte {place}");
            }
        }
        assert_eq!(DescriptorMessage::from_bytes(&[]), None);
    }
}
