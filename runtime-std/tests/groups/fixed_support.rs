//! Groups with fixed membership whose members are threads of this process.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, DescriptionBuilder, Running, StartOptions};
use tramontane_runtime::member::Stopped;
use tramontane_runtime::shared_memory::Root;

use crate::group_support::{PATIENCE, device};

/// Waits until a member has ended, and returns the reason.
pub fn await_end(running: &Running) -> Stopped {
    let start = Instant::now();
    loop {
        if let Some(stopped) = running.stopped() {
            return stopped;
        }
        assert!(start.elapsed() < PATIENCE, "it runs on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The place where the members of one group meet.
pub struct Meeting {
    folder: PathBuf,
    fabric: Carrier,
    pub listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    /// Removes the folder, if this meeting created it.
    _made: Option<TempDir>,
}

impl Meeting {
    pub fn new(fabric: Carrier, nodes: u32) -> Self {
        let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let count = if fabric == Carrier::SharedMemory { 0 } else { nodes };
        let listeners: Vec<TcpListener> = (0..count).map(listen).collect();
        let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
        let addresses = listeners.iter().map(address).collect();
        let made = tempfile::tempdir().expect("a folder");
        let folder = made.path().to_owned();
        Self { folder, fabric, listeners, addresses, _made: Some(made) }
    }

    /// Returns the argument with which another process can meet here. [`of_role`](Self::of_role)
    /// reads it.
    pub fn role(&self) -> String {
        let addresses = self.addresses.iter().map(ToString::to_string);
        let (folder, fabric) = (self.folder.display().to_string(), self.fabric.to_string());
        [folder, fabric].into_iter().chain(addresses).collect::<Vec<_>>().join(" ")
    }

    /// Returns the meeting of the process that has started this one to play a role.
    pub fn of_role(role: &str) -> Self {
        let mut words = role.split(' ');
        let folder = words.next().expect("a folder").into();
        let fabric = words.next().expect("a fabric").parse().expect("its name");
        let addresses: Vec<SocketAddr> =
            words.map(|address| address.parse().expect("an address")).collect();
        Self { folder, fabric, listeners: Vec::new(), addresses, _made: None }
    }

    /// Lets another process listen for a node.
    pub fn leave_listening_to_another(&mut self, node: u32) {
        if self.fabric != Carrier::SharedMemory {
            self.listeners.remove(usize::try_from(node).expect("small"));
        }
    }

    /// Runs a group that meets here. Each member has its own thread, which calls `body`.
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
        builder.fabric(self.fabric).addresses(&self.addresses).fixed().build().expect("a group")
    }

    pub fn options(&self, node: u32) -> StartOptions<'static> {
        let listener = self.listeners.get(usize::try_from(node).expect("small"));
        let listener = listener.map(|listener| {
            listener.try_clone().expect("a descriptor").try_into().expect("it listens")
        });
        StartOptions {
            root: Root::under(&self.folder),
            listener,
            time_limit: PATIENCE,
            device: device(),
            ..StartOptions::new(node)
        }
    }
}
