//! A process that sends what no correct member sends: descriptors that it has created itself.

// Each test program uses only some of these helpers.
#![allow(dead_code)]

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketType, sendmsg_addr, socket,
};

use tramontane_core::ids::Rank;
use tramontane_core::layout::Layout;

/// All seals of a member's memory.
pub const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE).union(SealFlags::SEAL);

/// The seals of a doorbell.
pub const BELL_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// The size of a memory's header, in bytes.
pub const HEADER: usize = 4096;

/// Returns the length in bytes of the memory of a row. The row is followed by region lanes, three
/// cache lines per member.
pub fn row_file_bytes(layout: &Layout<'_>, rank: u16) -> usize {
    HEADER + layout.row_bytes(Rank(rank)) + layout.members() * 192
}

/// Creates memory with the given content.
pub fn memory(content: &[u8], seals: SealFlags) -> OwnedFd {
    let file = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let file = file.expect("a memfd");
    assert_eq!(rustix::io::pwrite(&file, content, 0), Ok(content.len()));
    if !seals.is_empty() {
        fcntl_add_seals(&file, seals).expect("sealed");
    }
    file
}

/// Returns the content of memory with this signature, followed by zeros.
pub fn signed(node: u32, incarnation: u64, number: u64, bytes: usize) -> Vec<u8> {
    let magic = u64::from_le_bytes(*b"tramrow\x02");
    let mut content = [magic, u64::from(node), incarnation, number].map(u64::to_le_bytes).concat();
    content.resize(bytes, 0);
    content
}

/// The contents of a message.
#[derive(Clone, Copy)]
pub struct Said {
    pub node: u32,
    pub incarnation: u64,
    /// The kind: 1 for a row, 2 for block memory, 3 for a region, 4 for a write queue.
    pub kind: u64,
    /// The view or the region.
    pub view: u64,
    /// A row's digest, or the serial number of block memory.
    pub number: u64,
}

/// Sends descriptors to a node of the group in that folder.
pub fn send(group: &Path, to: u32, said: Said, files: &[&OwnedFd]) {
    let Said { node, incarnation, kind, view, number } = said;
    let magic = u64::from_le_bytes(*b"tramfds\x02");
    let words = [magic, u64::from(node), incarnation, kind, view, number];
    send_bytes(group, to, &words.map(u64::to_le_bytes).concat(), files);
}

/// Sends arbitrary bytes.
pub fn send_bytes(group: &Path, to: u32, bytes: &[u8], files: &[&OwnedFd]) {
    let files: Vec<BorrowedFd<'_>> = files.iter().map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
    }
    let address = SocketAddrUnix::new(group.join(format!("memory-{to}"))).expect("an address");
    let from = socket(AddressFamily::UNIX, SocketType::DGRAM, None).expect("a socket");
    let bytes = [IoSlice::new(bytes)];
    sendmsg_addr(&from, &address, &bytes, &mut control, SendFlags::NOSIGNAL).expect("sent");
}
