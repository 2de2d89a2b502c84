//! The identity of this node, and the addresses of the others' servers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;

use crate::protocol::Init;

/// Servers listen below the range of ports that kernels assign to connections.
const PORT_MIN: u16 = 20_000;

/// Maximum number of ports to try.
const PORTS: u16 = 12_000;

/// The distance between ports that a node tries, so that nodes try different ports.
const NODES_MAX: u16 = 64;

/// Interval between checks for a file that does not exist yet.
const PAUSE: Duration = Duration::from_millis(20);

/// A node of the run, numbered as openraft requires.
pub struct Node {
    /// The driver's `init` command.
    pub init: Init,
    /// The number of this node.
    pub id: u64,
}

impl Node {
    /// Creates the node that the driver describes.
    pub fn new(init: Init) -> Self {
        let id = number(&init, &init.node);
        Self { init, id }
    }

    /// Returns the numbers of the nodes that are now members of a group.
    pub fn present(&self) -> Vec<u64> {
        let is_member =
            |name: &String| self.init.groups.iter().any(|group| group.members.contains(name));
        let names = self.init.nodes.iter().map(|node| &node.node);
        names.filter(|name| is_member(name)).map(|name| number(&self.init, name)).collect()
    }

    /// Returns the groups of this node.
    pub fn groups(&self) -> Vec<String> {
        let own = self.init.groups.iter().filter(|group| group.members.contains(&self.init.node));
        own.map(|group| group.group.clone()).collect()
    }

    fn file(&self, id: u64) -> PathBuf {
        self.init.shared.join(format!("{id}.address"))
    }

    /// Listens at this node's previous address or at a new port, and publishes the address to all
    /// others.
    pub async fn listen(&self) -> io::Result<(TcpListener, String)> {
        let file = self.file(self.id);
        if let Ok(address) = std::fs::read_to_string(&file) {
            return Ok((TcpListener::bind(&address).await?, address));
        }
        let own = self.init.nodes.iter().find(|node| node.node == self.init.node);
        let host = own.map_or("127.0.0.1", |node| &node.address);
        let listener = self.bind(host).await?;
        let address = listener.local_addr()?.to_string();
        write_whole(&file, &address)?;
        Ok((listener, address))
    }

    async fn bind(&self, host: &str) -> io::Result<TcpListener> {
        let number = u16::try_from(self.id).unwrap_or_default() % NODES_MAX;
        let first = u16::try_from(std::process::id() % u32::from(PORTS)).unwrap_or_default();
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for step in 0..PORTS / NODES_MAX {
            let turn = (first / NODES_MAX + step) % (PORTS / NODES_MAX);
            let port = PORT_MIN + turn * NODES_MAX + number;
            match TcpListener::bind((host, port)).await {
                Ok(listener) => return Ok(listener),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Waits for the address of a server.
    pub async fn address(&self, id: u64) -> String {
        loop {
            if let Ok(address) = std::fs::read_to_string(self.file(id)) {
                return address;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn number(init: &Init, name: &str) -> u64 {
    let place = init.nodes.iter().position(|node| node.node == name);
    place.map_or(0, |place| place as u64 + 1)
}

/// Writes a file so that no reader sees it incomplete.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, path)
}
