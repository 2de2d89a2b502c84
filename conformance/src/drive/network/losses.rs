//! Random loss and delay of the packets that nodes send.
//!
//! Packets are lost after the node's link, at its port on the first bridge's side. A packet filter
//! in the node's own network would report the loss to the node.
//!
//! Netem delays packets, but few kernels for virtual machines have it. Without netem, a share of
//! the packets goes through a separate slow queue. Those packets wait for the packets before them
//! in that queue, and all other packets overtake them.

use super::Network;

/// The share of packets that goes through the slow queue, in percent.
const QUEUED_PERCENT: u64 = 20;

/// Number of bits that the slow queue passes during the delay. After a packet of this size, the
/// next packet waits for the whole delay.
const QUEUED_BITS: u64 = 8 * 250;

/// The way in which packets are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::drive) enum Slowness {
    /// Delays all packets, with netem.
    Netem,
    /// A share of the packets, by a slow queue.
    Queue,
}

impl Network {
    /// Drops `percent` of the packets that a node sends.
    ///
    /// # Errors
    /// Fails with the error of the system, for example if the system has no nftables.
    pub(in crate::drive) fn lose(&self, node: usize, percent: u64) -> Result<(), String> {
        let table = table(node);
        let rules = format!(
            "add table {table}\n\
             add chain {table} from {{ type filter hook ingress device port{node} priority 0; }}\n\
             add rule {table} from numgen random mod 100 < {percent} drop\n"
        );
        self.run(&self.hub, &["nft", "-f", "-"], &rules)
    }

    /// Ends the loss of a node's packets.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(in crate::drive) fn lose_no_more(&self, node: usize) -> Result<(), String> {
        self.run(&self.hub, &["nft", "-f", "-"], &format!("delete table {}\n", table(node)))
    }

    /// Delays the packets that a node sends, and returns the method.
    ///
    /// # Errors
    /// Fails with the system's error: netem, or HTB with nftables, is required.
    pub(in crate::drive) fn slow(&self, node: usize, delay_ms: u64) -> Result<Slowness, String> {
        let (delay, jitter) = (format!("{delay_ms}ms"), format!("{}ms", delay_ms / 2));
        let netem = ["netem", "delay", delay.as_str(), jitter.as_str()];
        let Err(lacking) =
            self.qdisc(node, &[&["add", "dev", "eth0", "root"], &netem[..]].concat())
        else {
            return Ok(Slowness::Netem);
        };
        match self.queue(node, delay_ms) {
            Ok(()) => Ok(Slowness::Queue),
            Err(why) => Err(format!("netem failed: {lacking}; the HTB queue also failed: {why}")),
        }
    }

    /// Ends the delay of a node's packets.
    ///
    /// # Errors
    /// The error of the system.
    pub(in crate::drive) fn steady(&self, node: usize, how: Slowness) -> Result<(), String> {
        if how == Slowness::Queue {
            // First, new packets no longer enter the slow queue.
            self.filter(node, "delete table ip slow\n")?;
        }
        self.qdisc(node, &["del", "dev", "eth0", "root"])
    }

    /// Adds a slow queue next to the usual one, for packets that the packet filter selects.
    fn queue(&self, node: usize, delay_ms: u64) -> Result<(), String> {
        let Some(holder) = self.nodes.get(node) else { return Ok(()) };
        let rate = format!("{}bit", QUEUED_BITS * 1000 / delay_ms.max(1));
        let commands = format!(
            "qdisc add dev eth0 root handle 1: htb default 1\n\
             class add dev eth0 parent 1: classid 1:1 htb rate 10gbit burst 100k quantum 60000\n\
             class add dev eth0 parent 1: classid 1:2 htb rate {rate} burst 250 quantum 1500\n\
             qdisc add dev eth0 parent 1:2 pfifo limit 1000\n"
        );
        let rules = format!(
            "add table ip slow\n\
             add chain ip slow out {{ type filter hook postrouting priority 0; }}\n\
             add rule ip slow out numgen random mod 100 < {QUEUED_PERCENT} meta priority set 1:2\n"
        );
        let made = self
            .run(holder, &["tc", "-batch", "-"], &commands)
            .and_then(|()| self.filter(node, &rules));
        if made.is_err() {
            // Removes the parts that exist. Removing a part that does not exist is also an error,
            // which is ignored.
            let _ = self.qdisc(node, &["del", "dev", "eth0", "root"]);
        }
        made
    }

    fn qdisc(&self, node: usize, arguments: &[&str]) -> Result<(), String> {
        let Some(holder) = self.nodes.get(node) else { return Ok(()) };
        self.run(holder, &[&["tc", "qdisc"], arguments].concat(), "")
    }

    /// Applies rules in a node's own packet filter.
    fn filter(&self, node: usize, rules: &str) -> Result<(), String> {
        let Some(holder) = self.nodes.get(node) else { return Ok(()) };
        self.run(holder, &["nft", "-f", "-"], rules)
    }
}

/// Returns the name of the table that drops a node's packets.
fn table(node: usize) -> String {
    format!("netdev loss{node}")
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use tempfile::TempDir;

    use super::super::Means;
    use super::super::tests::built;
    use super::*;

    /// The variable that gives the test below its role: `send ADDRESS`, or `receive FILE`.
    const VISIT: &str = "TRAMONTANE_TEST_DATAGRAMS";

    const PORT: u16 = 9009;
    const SENT: u32 = 300;

    /// The silence after which no more datagrams are expected.
    const SILENCE: Duration = Duration::from_secs(2);

    /// This is not a test, but the program that [`passed`] runs inside a namespace.
    #[test]
    fn visitor() {
        let Ok(task) = std::env::var(VISIT) else { return };
        match task.split_once(' ').expect("a task and its object") {
            ("send", address) => send(address),
            (_, file) => receive(Path::new(file)),
        }
    }

    fn send(address: &str) {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        for number in 0..SENT {
            let mut datagram = [0; 500];
            datagram[..4].copy_from_slice(&number.to_le_bytes());
            socket.send_to(&datagram, (address, PORT)).expect("the sender is not told of losses");
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    fn receive(file: &Path) {
        let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("a socket");
        std::fs::write(file, "").expect("a file");
        socket.set_read_timeout(Some(SILENCE)).expect("a limit");
        let (mut numbers, mut datagram) = (Vec::new(), [0; 500]);
        while socket.recv(&mut datagram).is_ok() {
            numbers.push(u32::from_le_bytes(datagram[..4].try_into().expect("four bytes")));
        }
        let overtaken = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
        std::fs::write(file, format!("{} {overtaken}", numbers.len())).expect("a file");
    }

    fn start(network: &Network, node: usize, task: &str) -> Child {
        let program = std::env::current_exe().expect("this test").to_string_lossy().into_owned();
        let visitor = [program.as_str(), "drive::network::losses::tests::visitor", "--exact"];
        let words = network.within(node, &visitor.map(str::to_owned));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env(VISIT, task).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("nsenter was there before")
    }

    /// Returns the number of datagrams that arrive from the first node at the second, and the
    /// number of these that arrive after a later one.
    fn passed(network: &Network) -> (u32, u32) {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("count");
        let mut receiver = start(network, 1, &format!("receive {}", file.display()));
        while !file.exists() && receiver.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut sender = start(network, 0, &format!("send {}", Network::address(1)));
        assert!(sender.wait().expect("a child").success() && receiver.wait().is_ok());
        let text = std::fs::read_to_string(file).expect("what it counted");
        let (count, overtaken) = text.split_once(' ').expect("two numbers");
        (count.parse().expect("a number"), overtaken.parse().expect("a number"))
    }

    #[test]
    fn injected_packet_loss_is_not_reported_to_sender() {
        let Some(network) = built(Means::Privileged, 2) else { return };
        // The hosts look up each other's link address first, and all packets wait for the answer.
        assert_eq!(passed(&network), (SENT, 0));
        if let Err(why) = network.lose(0, 30) {
            return eprintln!("skipped: {why}");
        }
        let (count, _) = passed(&network);
        assert!((1..SENT).contains(&count), "{count} of {SENT}");
        network.lose_no_more(0).expect("it was there");
        assert_eq!(passed(&network), (SENT, 0));
    }

    #[test]
    fn delayed_packets_are_overtaken_by_later_ones() {
        let Some(network) = built(Means::Privileged, 2) else { return };
        let slowness = match network.slow(0, 20) {
            Ok(slowness) => slowness,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let (count, overtaken) = passed(&network);
        assert!(count == SENT && overtaken > 0, "{count} of {SENT}, {overtaken}: {slowness:?}");
        network.steady(0, slowness).expect("it was there");
        assert_eq!(passed(&network), (SENT, 0));
    }
}
