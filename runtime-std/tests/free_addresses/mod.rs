//! Free addresses for processes that listen themselves. Shared by the tests of this package and of
//! the commands.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// Returns addresses at which no process currently listens, all of them different.
///
/// Each remains bound by this process until it ends, so that no connection is assigned its port.
/// Others can still listen there, because the socket that holds the port does not listen. A
/// listener that had only been closed again could block them: a process that another thread starts
/// inherits it until the new program runs.
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static HELD: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
    let address = || {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (std::process::id().wrapping_mul(499).wrapping_add(step) % 20_000);
        SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16))
    };
    let hold = |address: &SocketAddr| {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).ok()?;
        sockopt::set_socket_reuseaddr(&socket, true).ok()?;
        bind(&socket, address).ok()?;
        HELD.lock().expect("no panic").push(socket);
        Some(*address)
    };
    std::iter::repeat_with(address).filter_map(|address| hold(&address)).take(count).collect()
}
