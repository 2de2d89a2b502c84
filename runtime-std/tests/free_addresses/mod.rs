//! Free addresses for processes that listen themselves. Shared by the tests of this package and of
//! the commands.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns addresses at which no process currently listens, all of them different.
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Below the ports that the system assigns to connections, because a connection may take a port
    // that was free a moment ago.
    let address = || {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (std::process::id().wrapping_mul(499).wrapping_add(step) % 20_000);
        SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16))
    };
    let is_free = |address: &SocketAddr| TcpListener::bind(address).is_ok();
    std::iter::repeat_with(address).filter(is_free).take(count).collect()
}
