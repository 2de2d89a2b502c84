//! Groups with fixed membership whose members are threads of this process.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use tempfile::TempDir;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, DescriptionBuilder, StartOptions};
use tramontane_runtime::shared_memory::Root;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// What each fabric is tested over.
pub const FABRICS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];

/// Where the members of one group meet.
pub struct Meeting {
    folder: TempDir,
    fabric: Carrier,
    listeners: Vec<TcpListener>,
}

impl Meeting {
    pub fn new(fabric: Carrier, nodes: u32) -> Self {
        let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let count = if fabric == Carrier::SharedMemory { 0 } else { nodes };
        let listeners = (0..count).map(listen).collect();
        Self { folder: tempfile::tempdir().expect("a folder"), fabric, listeners }
    }

    /// A group that meets here, each member in a thread of its own, which calls `body`.
    pub fn run<R: Send>(
        &self,
        builder: DescriptionBuilder,
        nodes: u32,
        body: impl Fn(u32, Description, StartOptions<'_>) -> R + Sync,
    ) -> Vec<R> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..nodes)
                .map(|node| {
                    let (description, options) =
                        (self.describe(builder.clone()), self.options(node));
                    let body = &body;
                    scope.spawn(move || body(node, description, options))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    pub fn describe(&self, builder: DescriptionBuilder) -> Description {
        let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
        let addresses: Vec<SocketAddr> = self.listeners.iter().map(address).collect();
        builder.fabric(self.fabric).addresses(&addresses).fixed().build().expect("a group")
    }

    pub fn options(&self, node: u32) -> StartOptions<'static> {
        let listener = self.listeners.get(usize::try_from(node).expect("small"));
        let listener = listener.map(|listener| {
            listener.try_clone().expect("a descriptor").try_into().expect("it listens")
        });
        StartOptions {
            root: Root::under(self.folder.path()),
            listener,
            time_limit: PATIENCE,
            ..StartOptions::new(node)
        }
    }
}
