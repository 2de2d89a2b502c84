//! What a run is to do.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shards::{Description, Replicas};

use crate::exit::Failure;

/// A run of the demo.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) overlay: Description,
    pub(super) clients: u16,
    pub(super) duration: Duration,
    pub(super) kill_interval: Duration,
    /// Transfers a second, of all clients.
    pub(super) rate: f64,
    pub(super) seed: u64,
    /// Where histories go.
    pub(super) folder: PathBuf,
    pub(super) join_timeout: Duration,
}

/// Gives each replica a port of its own.
pub(super) fn take_ports(overlay: &mut Description) -> Result<(), Failure> {
    overlay.fabric = Carrier::Tcp;
    // All at once, so that no two are the same.
    let mut held = Vec::new();
    for group in &mut overlay.groups {
        let mut addresses = Vec::new();
        for _ in 0..group.replicas.count() {
            let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
            let taken = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
            let (address, listener) =
                taken.map_err(|error| Failure::system("cannot listen on the loopback", &error))?;
            addresses.push(address);
            held.push(listener);
        }
        group.replicas = Replicas::Addresses(addresses);
    }
    Ok(())
}
