//! The faults of the members' network and disks.

use super::error::{DriveError, Ending};
use super::names::node_name;
use super::network::{Network, Slowness};
use super::stage::Stage;
use crate::history::FaultKind;

/// The current network and disk faults.
#[derive(Debug, Default)]
pub(super) struct Parting {
    /// The nodes that are cut off.
    side: Vec<usize>,
    /// The cut links, as pairs of source and destination.
    links: Vec<(usize, usize)>,
    /// The slow nodes, and how each is slowed down.
    slow: Vec<(usize, Slowness)>,
    /// The nodes that lose packets.
    lossy: Vec<usize>,
    /// The nodes whose disks are full.
    full: Vec<usize>,
}

impl Parting {
    /// Returns the nodes with a network fault that the history records.
    fn nodes(&self) -> Vec<usize> {
        let senders = self.links.iter().map(|(from, _)| *from);
        let slow = self.slow.iter().map(|(node, _)| *node);
        let lossy = self.lossy.iter().copied();
        let mut nodes: Vec<usize> =
            self.side.iter().copied().chain(senders).chain(slow).chain(lossy).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

/// Returns the error for a system call that failed while nodes were partitioned.
fn failed(what: String) -> DriveError {
    DriveError::system("cannot change the network between nodes", std::io::Error::other(what))
}

impl Stage<'_> {
    fn network(&self) -> Result<&Network, Ending> {
        let missing = || Ending::Unsupported("the nodes do not have separate networks".to_owned());
        self.network.as_ref().ok_or_else(missing)
    }

    /// Cuts these nodes off from the others.
    pub(super) fn part(&mut self, side: &[usize]) -> Result<(), Ending> {
        self.had_faults = true;
        self.network()?.part(side).map_err(failed)?;
        self.parting.side = side.to_vec();
        self.history_file.fault(FaultKind::Partition, side, self.clock.now_ns())?;
        Ok(())
    }

    /// Cuts links, each in one direction.
    pub(super) fn cut(&mut self, links: &[(usize, usize)]) -> Result<(), Ending> {
        self.had_faults = true;
        for &(from, to) in links {
            self.network()?.cut(from, to).map_err(failed)?;
            self.parting.links.push((from, to));
            let how = format!("one direction, to {}", node_name(to));
            let now_ns = self.clock.now_ns();
            self.history_file.fault_told(FaultKind::Partition, &[from], now_ns, Some(&how))?;
        }
        Ok(())
    }

    /// Delays the packets of a node, if the system supports that.
    pub(super) fn slow(&mut self, node: usize, delay_ms: u64) -> Result<(), Ending> {
        let slowness = match self.network()?.slow(node, delay_ms) {
            Ok(slowness) => slowness,
            Err(why) => {
                self.note(format!(
                    "nothing was delayed, because this system does not support it: {why}"
                ));
                return Ok(());
            }
        };
        self.parting.slow.push((node, slowness));
        let how = match slowness {
            Slowness::Netem => format!("packets delayed by {delay_ms} ms"),
            Slowness::Queue => format!("some packets delayed by at least {delay_ms} ms"),
        };
        self.tell_slow(node, &how)
    }

    /// Drops some packets of a node, if the system supports that.
    pub(super) fn lose(&mut self, node: usize, percent: u64) -> Result<(), Ending> {
        if let Err(why) = self.network()?.lose(node, percent) {
            self.note(format!("nothing was lost, because this system does not support it: {why}"));
            return Ok(());
        }
        self.parting.lossy.push(node);
        self.tell_slow(node, &format!("{percent} % of the packets lost"))
    }

    fn tell_slow(&mut self, node: usize, how: &str) -> Result<(), Ending> {
        self.had_faults = true;
        let now_ns = self.clock.now_ns();
        self.history_file.fault_told(FaultKind::Slow, &[node], now_ns, Some(how))?;
        Ok(())
    }

    /// Ends all network faults.
    pub(super) fn heal(&mut self) -> Result<(), Ending> {
        let full = std::mem::take(&mut self.parting.full);
        let parting = std::mem::replace(&mut self.parting, Parting { full, ..Parting::default() });
        let nodes = parting.nodes();
        if nodes.is_empty() {
            return Ok(());
        }
        nodes.iter().for_each(|node| self.members[*node].moved_on = false);
        self.history_file.fault(FaultKind::Heal, &nodes, self.clock.now_ns())?;
        let network = self.network()?;
        if !parting.side.is_empty() {
            network.heal(&parting.side).map_err(failed)?;
        }
        for (from, to) in parting.links {
            network.mend(from, to).map_err(failed)?;
        }
        for (node, slowness) in parting.slow {
            network.steady(node, slowness).map_err(failed)?;
        }
        for node in parting.lossy {
            network.lose_no_more(node).map_err(failed)?;
        }
        Ok(())
    }

    /// Fills a node's disk.
    pub(super) fn fill(&mut self, node: usize) -> Result<(), Ending> {
        let Some(disks) = &self.disks else {
            return Err(Ending::Unsupported("the nodes do not have separate disks".to_owned()));
        };
        disks.fill(node).map_err(|error| DriveError::system("cannot fill a disk", error))?;
        self.had_faults = true;
        self.parting.full.push(node);
        self.history_file.fault(FaultKind::Full, &[node], self.clock.now_ns())?;
        Ok(())
    }

    /// Makes room on the node's disk again, if it was filled.
    pub(super) fn make_room(&mut self, node: usize) -> Result<(), Ending> {
        let (Some(disks), true) = (&self.disks, self.parting.full.contains(&node)) else {
            return Ok(());
        };
        self.parting.full.retain(|full| *full != node);
        self.members[node].moved_on = false;
        self.history_file.fault(FaultKind::Room, &[node], self.clock.now_ns())?;
        disks
            .make_room(node)
            .map_err(|error| DriveError::system("cannot free space on a disk", error))?;
        Ok(())
    }

    /// Ends all lasting faults.
    pub(super) fn end_faults(&mut self) -> Result<(), Ending> {
        for node in 0..self.members.len() {
            self.resume(node)?;
            self.make_room(node)?;
        }
        self.heal()
    }
}
