//! Networks that can be parted: a network namespace for each node, and one with two bridges between
//! them.
//!
//! Every node has a port at the first bridge. To part nodes is to move the ports of one side to the
//! second bridge, which is connected to nothing else; to heal is to move them back. No packet
//! filter is needed for that.
//!
//! # Nothing is left behind
//! The namespaces have no names. With the last process in it a namespace and its links are gone,
//! and what holds it ends with the driver.

use std::io::Write as _;

use super::holder::{self, Holder, first_line, spawn};

mod losses;

pub(super) use losses::Slowness;

/// A hardware address that no node has.
const NOBODY: &str = "02:00:00:00:00:01";

/// How namespaces are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// By a privileged user.
    Privileged,
    /// In a user namespace, in which this user may do everything.
    UserNamespace,
}

/// Everything that nodes' networks are.
#[derive(Debug)]
pub(super) struct Network {
    means: Means,
    hub: Holder,
    nodes: Vec<Holder>,
}

impl Network {
    /// Makes networks for so many nodes, all connected.
    ///
    /// # Errors
    /// Why this system, or this user, cannot have them.
    pub(super) fn build(nodes: usize) -> Result<Self, String> {
        match Self::build_by(Means::Privileged, nodes) {
            Ok(network) => Ok(network),
            Err(privileged) => Self::build_by(Means::UserNamespace, nodes)
                .map_err(|user| format!("{privileged}; and in a user namespace: {user}")),
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
                // All namespaces must belong to one user namespace, or no link could cross.
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
            // Without snooping, multicast goes everywhere, as on a plain switch.
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

    /// The address of a node.
    pub(super) fn address(node: usize) -> String {
        format!("10.113.0.{}", node + 1)
    }

    /// The command that runs another in a node's network.
    pub(super) fn within(&self, node: usize, command: &[String]) -> Vec<String> {
        let mut whole =
            self.nodes.get(node).map(|holder| self.enter(holder, true)).unwrap_or_default();
        if self.means == Means::UserNamespace {
            // A process that enters one is no longer bound to die with its parent.
            whole.extend(["setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned));
        }
        whole.extend_from_slice(command);
        whole
    }

    /// Cuts these nodes off from the others.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn part(&self, side: &[usize]) -> Result<(), String> {
        self.move_ports(side, "apart")
    }

    /// Connects them again.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn heal(&self, side: &[usize]) -> Result<(), String> {
        self.move_ports(side, "here")
    }

    /// Loses what one node sends to another. The other way stays as it is.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn cut(&self, from: usize, to: usize) -> Result<(), String> {
        let Some(holder) = self.nodes.get(from) else { return Ok(()) };
        // Frames for a hardware address that nobody has are lost without a word.
        let address = Self::address(to);
        let line = format!("neigh replace {address} lladdr {NOBODY} dev eth0 nud permanent\n");
        self.ip(holder, &line)
    }

    /// Lets it through again.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn mend(&self, from: usize, to: usize) -> Result<(), String> {
        let Some(holder) = self.nodes.get(from) else { return Ok(()) };
        self.ip(holder, &format!("neigh del {} dev eth0\n", Self::address(to)))
    }

    /// How nodes are parted, for people.
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

    /// The words that put a command into a namespace.
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

    /// Runs a program in a namespace, which reads this.
    fn run(&self, holder: &Holder, program: &[&str], input: &str) -> Result<(), String> {
        let name = program.first().copied().unwrap_or_default();
        let mut words = self.enter(holder, true);
        words.extend(program.iter().map(ToString::to_string));
        let mut child = spawn(&words)?;
        if let Some(mut stream) = child.stdin.take() {
            // If it does not read, its status says so.
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

    /// Tells the test below what to try.
    const VISIT: &str = "TRAMONTANE_TEST_VISIT";

    /// Not a test, but what [`reaches`] runs inside a namespace: a datagram to a port where nobody
    /// listens is answered at once if it arrives.
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

    /// Builds one, or says why not: not every system allows it.
    pub(super) fn built(means: Means, nodes: usize) -> Option<Network> {
        Network::build_by(means, nodes).map_err(|why| eprintln!("skipped: {why}")).ok()
    }

    #[test]
    fn nodes_reach_each_other_unless_they_are_parted() {
        for means in [Means::Privileged, Means::UserNamespace] {
            let Some(network) = built(means, 3) else { continue };
            assert!(reaches(&network, 0, 1) && reaches(&network, 2, 0), "{means:?}");
            network.part(&[2]).expect("it was allowed before");
            assert!(reaches(&network, 0, 1), "{means:?}: one side is not cut");
            assert!(
                !reaches(&network, 0, 2) && !reaches(&network, 2, 1),
                "{means:?}: the sides are"
            );
            network.heal(&[2]).expect("it was allowed before");
            assert!(reaches(&network, 0, 2), "{means:?}");
        }
    }

    #[test]
    fn a_link_is_cut_in_one_direction() {
        let Some(network) = built(Means::Privileged, 3) else { return };
        network.cut(0, 1).expect("neighbours can be told");
        // The answer to a datagram from the second would have to go the cut way.
        assert!(!reaches(&network, 0, 1) && !reaches(&network, 1, 0));
        assert!(reaches(&network, 0, 2) && reaches(&network, 2, 1), "other links are not cut");
        network.mend(0, 1).expect("neighbours can be told");
        assert!(reaches(&network, 0, 1) && reaches(&network, 1, 0));
    }

    #[test]
    fn nothing_is_left_when_it_is_dropped() {
        let Some(network) = built(Means::Privileged, 2) else { return };
        let pids: Vec<u32> =
            network.nodes.iter().chain([&network.hub]).map(|holder| holder.id()).collect();
        drop(network);
        assert!(pids.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()));
    }
}
