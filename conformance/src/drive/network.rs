//! Networks that can be partitioned: one network namespace per node, and one with two bridges that
//! connect them.
//!
//! Every node has a port on the first bridge. A partition moves the ports of one side to the second
//! bridge, which has no other connections; healing moves them back. No packet filter is needed.
//!
//! # Nothing is left behind
//! The namespaces have no names. A namespace and its links disappear with the last process in it,
//! and the holders end with the driver.

use std::io::Write as _;

use super::holder::{self, Holder, first_line, spawn};

mod losses;

pub(super) use losses::Slowness;

/// A hardware address that no node has.
const NOBODY: &str = "02:00:00:00:00:01";

/// The way in which namespaces are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// A privileged user creates them.
    Privileged,
    /// A user namespace gives this user all privileges.
    UserNamespace,
}

/// The networks of all nodes.
#[derive(Debug)]
pub(super) struct Network {
    means: Means,
    hub: Holder,
    nodes: Vec<Holder>,
}

impl Network {
    /// Builds networks for `nodes` nodes, all connected.
    ///
    /// # Errors
    /// Fails with the reason why this system or user cannot create them.
    pub(super) fn build(nodes: usize) -> Result<Self, String> {
        match Self::build_by(Means::Privileged, nodes) {
            Ok(network) => Ok(network),
            Err(privileged) => Self::build_by(Means::UserNamespace, nodes)
                .map_err(|user| format!("{privileged}; in a user namespace: {user}")),
        }
    }

    fn build_by(means: Means, nodes: usize) -> Result<Self, String> {
        let unshare: &[&str] = match means {
            Means::Privileged => &["unshare", "--net"],
            Means::UserNamespace => &["unshare", "--user", "--map-root-user", "--net"],
        };
        let hub = Holder::start(unshare.iter().map(ToString::to_string).collect())?;
        let mut network = Self { means, hub, nodes: Vec::new() };
        for _ in 0..nodes {
            let mut command = match means {
                Means::Privileged => Vec::new(),
                // All namespaces must belong to one user namespace, because links cannot cross user
                // namespaces.
                Means::UserNamespace => network.enter(&network.hub, false),
            };
            command.extend(["unshare", "--net"].map(str::to_owned));
            network.nodes.push(Holder::start(command)?);
        }
        network.connect()?;
        Ok(network)
    }

    fn connect(&self) -> Result<(), String> {
        let mut hub = String::new();
        for bridge in ["here", "apart"] {
            // Without snooping, multicast is flooded, as on a plain switch.
            hub +=
                &format!("link add {bridge} type bridge mcast_snooping 0\nlink set {bridge} up\n");
        }
        for (node, holder) in self.nodes.iter().enumerate() {
            let pid = holder.id();
            hub += &format!("link add port{node} type veth peer name eth0 netns {pid}\n");
            hub += &format!("link set port{node} master here up\n");
        }
        self.ip(&self.hub, &hub)?;
        for (node, holder) in self.nodes.iter().enumerate() {
            let address = Self::address(node);
            let setup =
                format!("link set lo up\naddress add {address}/24 dev eth0\nlink set eth0 up\n");
            self.ip(holder, &setup)?;
        }
        Ok(())
    }

    /// Returns the address of a node.
    pub(super) fn address(node: usize) -> String {
        format!("10.113.0.{}", node + 1)
    }

    /// Returns the command that runs another command in a node's network.
    pub(super) fn within(&self, node: usize, command: &[String]) -> Vec<String> {
        let mut whole =
            self.nodes.get(node).map(|holder| self.enter(holder, true)).unwrap_or_default();
        if self.means == Means::UserNamespace {
            // Entering a namespace clears the parent-death signal, so it is set again.
            whole.extend(["setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned));
        }
        whole.extend_from_slice(command);
        whole
    }

    /// Cuts these nodes off from the others.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(super) fn part(&self, side: &[usize]) -> Result<(), String> {
        self.move_ports(side, "apart")
    }

    /// Reconnects these nodes.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(super) fn heal(&self, side: &[usize]) -> Result<(), String> {
        self.move_ports(side, "here")
    }

    /// Drops packets from one node to another. The opposite direction is unaffected.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(super) fn cut(&self, from: usize, to: usize) -> Result<(), String> {
        let Some(holder) = self.nodes.get(from) else { return Ok(()) };
        // Frames to an unused hardware address are dropped silently.
        let address = Self::address(to);
        let line = format!("neigh replace {address} lladdr {NOBODY} dev eth0 nud permanent\n");
        self.ip(holder, &line)
    }

    /// Lets packets from one node to another through again.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(super) fn mend(&self, from: usize, to: usize) -> Result<(), String> {
        let Some(holder) = self.nodes.get(from) else { return Ok(()) };
        self.ip(holder, &format!("neigh del {} dev eth0\n", Self::address(to)))
    }

    /// Describes how nodes are partitioned, for people.
    pub(super) fn means(&self) -> &'static str {
        match self.means {
            Means::Privileged => "network namespaces, whose ports are moved between two bridges",
            Means::UserNamespace => {
                "network namespaces in a user namespace, whose ports are moved between two bridges"
            }
        }
    }

    fn move_ports(&self, side: &[usize], bridge: &str) -> Result<(), String> {
        let lines = side.iter().map(|node| format!("link set port{node} master {bridge}\n"));
        self.ip(&self.hub, &lines.collect::<String>())
    }

    /// Returns the words that run a command in a namespace.
    fn enter(&self, holder: &Holder, net: bool) -> Vec<String> {
        let mut kinds = Vec::new();
        if self.means == Means::UserNamespace {
            kinds.extend(["--user", "--preserve-credentials"]);
        }
        if net {
            kinds.push("--net");
        }
        holder::enter(holder, &kinds)
    }

    /// Runs commands of `ip` in a namespace.
    fn ip(&self, holder: &Holder, commands: &str) -> Result<(), String> {
        self.run(holder, &["ip", "-batch", "-"], commands)
    }

    /// Runs a program in a namespace, with `input` as its standard input.
    fn run(&self, holder: &Holder, program: &[&str], input: &str) -> Result<(), String> {
        let name = program.first().copied().unwrap_or_default();
        let mut words = self.enter(holder, true);
        words.extend(program.iter().map(ToString::to_string));
        let mut child = spawn(&words)?;
        if let Some(mut stream) = child.stdin.take() {
            // If the program does not read its input, its exit status reveals this.
            let _ = stream.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(|error| format!("{name}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{name}: {}", first_line(&output.stderr)))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Environment variable with the address that the test below contacts.
    const VISIT: &str = "TRAMONTANE_TEST_VISIT";

    /// This is not a test, but the program that [`reaches`] runs inside a namespace: a datagram to
    /// an unused port is refused at once if it arrives.
    #[test]
    fn visitor() {
        let Ok(address) = std::env::var(VISIT) else { return };
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("a limit");
        socket.connect((address.as_str(), 9)).expect("an address");
        let refused = (0..5).any(|_| {
            let answer = socket.send(b"hello").and_then(|_| socket.recv(&mut [0; 8]));
            matches!(answer, Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused)
        });
        assert!(refused, "nobody there");
    }

    fn reaches(network: &Network, from: usize, to: usize) -> bool {
        let program = std::env::current_exe().expect("this test").to_string_lossy().into_owned();
        let visitor =
            [program.as_str(), "drive::network::tests::visitor", "--exact"].map(str::to_owned);
        let words = network.within(from, &visitor);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env(VISIT, Network::address(to)).stdout(Stdio::null());
        command.stderr(Stdio::null()).status().expect("nsenter was there before").success()
    }

    /// Returns whether the address can be reached. On a busy machine, some datagrams or answers are
    /// late.
    fn can_reach(network: &Network, from: usize, to: usize) -> bool {
        (0..20).any(|_| reaches(network, from, to))
    }

    /// Builds a network, or prints why the system does not allow it.
    pub(super) fn built(means: Means, nodes: usize) -> Option<Network> {
        Network::build_by(means, nodes).map_err(|why| eprintln!("skipped: {why}")).ok()
    }

    #[test]
    fn partition_separates_connected_nodes() {
        for means in [Means::Privileged, Means::UserNamespace] {
            let Some(network) = built(means, 3) else { continue };
            assert!(can_reach(&network, 0, 1) && can_reach(&network, 2, 0), "{means:?}");
            network.part(&[2]).expect("it was allowed before");
            assert!(can_reach(&network, 0, 1), "{means:?}: one side is not cut");
            assert!(
                !reaches(&network, 0, 2) && !reaches(&network, 2, 1),
                "{means:?}: the sides are"
            );
            network.heal(&[2]).expect("it was allowed before");
            assert!(can_reach(&network, 0, 2), "{means:?}");
        }
    }

    #[test]
    fn network_link_can_be_blocked_in_one_direction() {
        let Some(network) = built(Means::Privileged, 3) else { return };
        network.cut(0, 1).expect("neighbours can be told");
        // The answer to a datagram from the second node would have to use the cut direction.
        assert!(!reaches(&network, 0, 1) && !reaches(&network, 1, 0));
        assert!(can_reach(&network, 0, 2) && can_reach(&network, 2, 1), "other links are not cut");
        network.mend(0, 1).expect("neighbours can be told");
        assert!(can_reach(&network, 0, 1) && can_reach(&network, 1, 0));
    }

    #[test]
    fn dropped_network_leaves_no_processes() {
        let Some(network) = built(Means::Privileged, 2) else { return };
        let pids: Vec<u32> =
            network.nodes.iter().chain([&network.hub]).map(|holder| holder.id()).collect();
        drop(network);
        assert!(pids.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()));
    }
}
