//! Free addresses for processes that listen themselves.
//!
//! The tests of packages that do not depend on this one include this file.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// Below the ports that the system assigns to connections.
const LOWEST_PORT: u32 = 10_000;
const PORTS: u32 = 20_000;

/// Returns addresses of this machine at which no process currently listens, all of them different.
///
/// Each remains bound by this process until it ends, so that no connection is assigned its port.
/// Others can still listen there, because the socket that holds the port does not listen. A
/// listener that had only been closed again could block them: a process that another thread starts
/// inherits it until the new program runs.
///
/// # Errors
///
/// If the system refuses a socket, or all ports from 10,000 to 29,999 are in use.
pub fn free_addresses(count: usize) -> io::Result<Vec<SocketAddr>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static HELD: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
    let mut addresses = Vec::with_capacity(count);
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..PORTS {
        if addresses.len() == count {
            return Ok(addresses);
        }
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        // Different processes begin at different ports.
        let port = LOWEST_PORT + std::process::id().wrapping_mul(499).wrapping_add(step) % PORTS;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16));
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if bind(&socket, &address).is_ok() {
            held.push(socket);
            addresses.push(address);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}
