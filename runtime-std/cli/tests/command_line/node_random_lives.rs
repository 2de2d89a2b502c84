//! Nodes are killed, leave, pause and start at random, often all at once, and their files in shared
//! memory are removed. In the end, all nodes are started, and restarted whenever they exit, until
//! all are members with the same lines.
//!
//! The seed determines the plan; its outcome also depends on the machine. A failure prints the
//! seed. `TRAMONTANE_SEED` is the first seed, and `TRAMONTANE_SEEDS` the number of seeds.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tramontane_fixtures::random::Random;

use crate::node_durable::{durable_lines, durable_node, logged_group};
use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::{LONG, random_seeds, wait_for};

const NODES: usize = 3;

/// Time within which all nodes must be members, while those that exit are restarted. It is shorter
/// than a node's wait for the others, because a stuck node exits after that wait, and its next
/// incarnation might succeed.
const RETURN_MAX: Duration = Duration::from_secs(40);

const PAUSES_MS: [u64; 6] = [0, 0, 20, 100, 300, 1000];

struct Lives {
    random: Random,
    group: GroupFile,
    is_logged: bool,
    nodes: [Option<Node>; NODES],
    /// The nodes that have been asked to leave, and may still be members.
    is_leaving: [bool; NODES],
    /// Number of lines written so far.
    written: usize,
    /// The lines that a node has reported as durable on a majority.
    durable: String,
}

impl Lives {
    fn new(seed: u64, is_logged: bool) -> Self {
        let mut random = Random::stream(seed, "lives");
        let carrier = Transport::ALL[random.index(Transport::ALL.len())];
        let group =
            if is_logged { logged_group(carrier, NODES) } else { GroupFile::of(carrier, NODES) };
        if random.chance(30) {
            // Idle senders pause, so that many views only change who sends.
            let head = if is_logged { "" } else { "[[subgroups]]\nname = \"lines\"\n" };
            group.write(&format!("{}{head}pause_senders_after_ms = 60\n", group.text()));
        }
        if random.chance(30) {
            // The other nodes admit the last one.
            group.write(&format!("initial = [0, 1]\n{}", group.text()));
        }
        Self {
            random,
            group,
            is_logged,
            nodes: [const { None }; NODES],
            is_leaving: [false; NODES],
            written: 0,
            durable: String::new(),
        }
    }

    fn start(&mut self, id: usize) {
        if self.is_up(id) {
            return;
        }
        self.is_leaving[id] = false;
        self.nodes[id] = Some(if self.is_logged {
            durable_node(&self.group, id, &[])
        } else {
            self.group.node(id, &["--new-group"])
        });
    }

    fn is_up(&mut self, id: usize) -> bool {
        self.nodes[id].as_mut().is_some_and(Node::is_running)
    }

    fn signal(&mut self, id: usize, signal: Signal) {
        if self.is_up(id)
            && let Some(node) = &self.nodes[id]
        {
            node.signal(signal);
            self.is_leaving[id] |= signal == Signal::TERM;
        }
    }

    fn write(&mut self) {
        for id in 0..NODES {
            if self.is_up(id)
                && let Some(node) = &mut self.nodes[id]
            {
                node.write(&lines(id, self.written..self.written + 3));
            }
        }
        self.written += 3;
    }

    /// A report counts even if its node has died since.
    fn note_durable(&mut self) {
        for (id, node) in self.nodes.iter().enumerate().filter(|_| self.is_logged) {
            let last = node.as_ref().and_then(|node| durable_lines(node).pop());
            let Some([_, majority, _]) = last else { continue };
            let count = usize::try_from(majority).expect("few");
            let log = self.group.log(id);
            let lines: String = log.split_inclusive('\n').take(count).collect();
            // The last line may be only partly written to the file.
            if !lines.ends_with('\n') {
                continue;
            }
            let (long, short) = if lines.len() > self.durable.len() {
                (&lines, &self.durable)
            } else {
                (&self.durable, &lines)
            };
            assert!(long.starts_with(short), "node {id} has {lines}not {}", self.durable);
            self.durable = long.clone();
        }
    }

    fn step(&mut self) {
        let id = self.random.index(NODES);
        match self.random.index(13) {
            12 => {
                self.group.place.clean();
            }
            0 | 1 => self.signal(id, Signal::KILL),
            2 => self.signal(id, Signal::TERM),
            3 => {
                let signal = [Signal::KILL, Signal::TERM][self.random.index(2)];
                (0..NODES).for_each(|id| self.signal(id, signal));
            }
            4 => {
                self.signal(id, Signal::STOP);
                std::thread::sleep(Duration::from_millis(200));
                self.signal(id, Signal::CONT);
            }
            5..=7 => self.write(),
            _ => self.start(id),
        }
        self.note_durable();
        let pause_ms = PAUSES_MS[self.random.index(PAUSES_MS.len())];
        std::thread::sleep(Duration::from_millis(pause_ms));
    }

    /// Starts all nodes that are down, until all are members.
    fn come_back(&mut self) {
        for id in 0..NODES {
            // Its end could otherwise follow the status that shows it as a member.
            let has_left = |lives: &mut Self| !lives.is_leaving[id] || !lives.is_up(id);
            wait_for("a node that leaves has ended", || has_left(self).then_some(()));
        }
        let until = Instant::now() + RETURN_MAX;
        loop {
            (0..NODES).for_each(|id| self.start(id));
            let status = self.group.run("status", &["--json"]);
            let status = serde_json::from_slice(&status.output).unwrap_or_default();
            if (0..NODES).all(|id| has_all_members(&status, id)) {
                return;
            }
            assert!(Instant::now() < until, "not all are members: {status}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// All nodes write, and all must receive the same lines.
    fn agree(&mut self) {
        self.write();
        let last = format!("{}-{}", NODES - 1, self.written - 1);
        let begin = Instant::now();
        let log = wait_for("all have the same lines", || {
            let logs: Vec<String> = (0..NODES).map(|id| self.group.log(id)).collect();
            let is_same = logs.iter().all(|log| *log == logs[0]);
            if begin.elapsed() > LONG - Duration::from_millis(500) {
                // The test is about to fail.
                let status = self.group.run("status", &["--json"]).output;
                eprintln!("{last} in {logs:#?}: {}", String::from_utf8_lossy(&status));
            }
            (is_same && logs[0].contains(&last)).then(|| logs[0].clone())
        });
        assert!(log.starts_with(&self.durable), "durable: {}\nall: {log}", self.durable);
    }
}

fn has_all_members(status: &serde_json::Value, id: usize) -> bool {
    let members = status["nodes"][id]["status"]["members"].as_array();
    members.is_some_and(|members| members.len() == NODES)
}

/// Returns the total number of bytes of durable lines, over all runs.
fn live(is_logged: bool, count: u64) -> usize {
    let mut durable_bytes = 0;
    for seed in random_seeds(count) {
        eprintln!("TRAMONTANE_SEED={seed}");
        let mut lives = Lives::new(seed, is_logged);
        (0..NODES).for_each(|id| lives.start(id));
        if is_logged && seed % 2 == 1 {
            // On a busy machine, nothing might otherwise be durable before the first kill.
            lives.write();
            wait_for("a durable line", || {
                lives.note_durable();
                (!lives.durable.is_empty()).then_some(())
            });
        }
        for _ in 0..lives.random.between(5, 25) {
            lives.step();
        }
        lives.come_back();
        lives.agree();
        if is_logged {
            // After all nodes have been members, all leave at once, so that no member is left to
            // start from.
            (0..NODES).for_each(|id| lives.signal(id, Signal::TERM));
            lives.nodes.iter_mut().flatten().for_each(Node::assert_left);
            lives.come_back();
            lives.agree();
        }
        durable_bytes += lives.durable.len();
    }
    durable_bytes
}

#[test]
fn nodes_with_random_restarts_return_to_one_group() {
    live(false, 4);
}

#[test]
fn random_restarts_lose_no_durable_line() {
    assert!(live(true, 3) > 0, "no life had durable lines");
}
