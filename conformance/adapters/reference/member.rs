//! A member. It takes the driver's commands on one thread, reads from the sequencer on a second,
//! and delivers on a third, so that a slow application delays nothing else.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::delivery::ReferenceDelivery;
use crate::greeting::Greeting;
use crate::mutants::{Mutation, Spoiler, lock};
use crate::protocol::{self, Command, Init, Line, halt, say};
use crate::sequencer;
use crate::step::Step;
use crate::storage::DeliveryFile;
use crate::wire::{self, Down, Membership, Up};

/// The member's side of its connection, with a count of posts.
pub struct Uplink {
    stream: Mutex<UnixStream>,
    posts: AtomicU64,
}

impl Uplink {
    /// Sends a message to the sequencer; returns whether it may have arrived.
    pub fn post(&self, up: &Up) -> bool {
        self.posts.fetch_add(1, Ordering::Relaxed);
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(wire::line(up).as_bytes()).is_ok()
    }
}

/// A member, as its commands see it.
struct ReferenceMember {
    init: Init,
    shards: bool,
    uplink: Arc<Uplink>,
    pause_ms: Arc<AtomicU64>,
    spoiler: Arc<Mutex<Spoiler>>,
}

/// Runs a member until the driver ends it.
pub fn run(shards: bool, mutation: Option<Mutation>) -> std::io::Result<()> {
    let mut input = BufReader::new(std::io::stdin());
    let init = hear_init(&mut input);
    let mutation = mutation.map(|mutation| mutation.settle(&init));
    let spoiler = Arc::new(Mutex::new(Spoiler::new(mutation.as_ref(), &init)));
    let (log, kept) = if shards {
        (None, Vec::new())
    } else {
        let (log, kept) = DeliveryFile::open(&init.storage)?;
        (Some(log), kept)
    };
    std::env::set_current_dir(&init.shared)?;
    let (uplink, downlink, state) = join(&init, shards, mutation.as_ref())?;
    let uplink = Arc::new(uplink);

    let pause_ms = Arc::new(AtomicU64::new(0));
    let own = groups_of(&init);
    let delivery =
        ReferenceDelivery::new(log, own.clone(), Arc::clone(&pause_ms), Arc::clone(&spoiler));
    let (steps, incoming) = channel();
    lock(&spoiler).connect(steps.clone());
    let greeting = match (own.is_empty(), shards) {
        (true, _) => Greeting::AtOnce,
        (false, false) => Greeting::WithFirstStep,
        (false, true) => Greeting::WhenCurrent,
    };
    std::thread::spawn(move || delivery.run(kept, greeting, &incoming));
    let listening = Arc::clone(&uplink);
    let listener = Arc::clone(&spoiler);
    std::thread::spawn(move || listen(downlink, state, &listening, (&steps, &listener)));
    if lock(&spoiler).chatters() {
        chatter(Arc::clone(&uplink));
    }
    ReferenceMember { init, shards, uplink, pause_ms, spoiler }.obey(input);
    halt("done", "")
}

/// Reads the first command, which the member needs to start.
fn hear_init(input: &mut impl BufRead) -> Init {
    match next_command(input) {
        Some(Command::Init(init)) if init.protocol == protocol::VERSION => init,
        Some(Command::Init(_)) => {
            let text = "only protocol 1 is known";
            say(&Line::Error { code: "unsupported", definite: true, message: None, text });
            halt("done", text);
        }
        _ => halt("done", "there was no init"),
    }
}

/// Returns the groups that this node is a member of.
fn groups_of(init: &Init) -> Vec<String> {
    let named = init.groups.iter().filter(|group| group.members.contains(&init.node));
    named.map(|group| group.group.clone()).collect()
}

/// Returns the groups of this node, each with all nodes that are or may become members.
fn memberships(init: &Init) -> Vec<Membership> {
    let named = init.groups.iter().filter(|group| group.members.contains(&init.node));
    let of = |group: &protocol::RunGroup| Membership {
        group: group.group.clone(),
        members: group.all_members.clone(),
    };
    named.map(of).collect()
}

/// Returns the next command. An invalid command is logged and skipped.
fn next_command(input: &mut impl BufRead) -> Option<Command> {
    loop {
        let mut text = String::new();
        if !input.read_line(&mut text).is_ok_and(|read| read > 0) {
            return None;
        }
        match serde_json::from_str(&text) {
            Ok(command) => return Some(command),
            Err(error) => eprintln!("skipping an invalid command: {}: {error}", text.trim_end()),
        }
    }
}

/// Connects to the sequencer and waits until it has admitted the member.
fn join(
    init: &Init,
    shards: bool,
    mutation: Option<&Mutation>,
) -> std::io::Result<(Uplink, BufReader<UnixStream>, u64)> {
    let deadline = Instant::now() + Duration::from_millis(init.limits.deadline_ms);
    loop {
        let stream = sequencer::connect(deadline, shards, mutation)?;
        let mut downlink = BufReader::new(stream.try_clone()?);
        let uplink = Uplink { stream: Mutex::new(stream), posts: AtomicU64::new(0) };
        let (node, pid) = (init.node.clone(), std::process::id());
        uplink.post(&Up::Hello { node, pid, groups: memberships(init) });
        // A sequencer that was about to end does not answer.
        if let Some(Down::Welcome { state }) = wire::next(&mut downlink) {
            return Ok((uplink, downlink, state));
        }
    }
}

/// Reads from the sequencer: acknowledges entries, and passes them on once they are stable. Entries
/// up to `state` were ordered before the member joined.
fn listen(
    mut downlink: BufReader<UnixStream>,
    state: u64,
    uplink: &Uplink,
    (steps, spoiler): (&Sender<Step>, &Mutex<Spoiler>),
) {
    let mut unstable = std::collections::VecDeque::new();
    let (mut have, mut acknowledged) = (0, 0);
    while let Some(down) = wire::next(&mut downlink) {
        match down {
            Down::Welcome { .. } => {}
            Down::Current => drop(steps.send(Step::Current)),
            Down::Leads { group, term } => drop(steps.send(Step::Leads { group, term })),
            Down::Entry { number, entry } => {
                have = number.max(have);
                unstable.push_back((number, entry));
            }
            Down::Stable { upto } => {
                let stable = unstable.iter().take_while(|(number, _)| *number <= upto).count();
                for (number, entry) in unstable.drain(..stable) {
                    let known = number <= state;
                    let _ = steps.send(if known { Step::State(entry) } else { Step::Entry(entry) });
                }
            }
            Down::Taken { message } => {
                if lock(spoiler).answers() {
                    say(&Line::Ok { message: Some(&message) });
                }
            }
            Down::Lost { message } => {
                let text = "its groups have no members";
                say(&Line::Error {
                    code: "no-members",
                    definite: false,
                    message: Some(&message),
                    text,
                });
            }
            Down::Halt { text } => {
                let delay = lock(spoiler).halt_delay();
                std::thread::sleep(delay);
                let _ = steps.send(Step::Halt(text));
            }
        }
        // Entries that arrive together get one acknowledgement.
        if downlink.buffer().is_empty() && have > acknowledged {
            acknowledged = have;
            uplink.post(&Up::Have { upto: have });
        }
    }
    let _ = steps.send(Step::Halt("the sequencer is gone".to_owned()));
}

impl ReferenceMember {
    /// Executes the driver's commands until `stop` or the end of standard input.
    fn obey(&self, mut input: impl BufRead) {
        while let Some(command) = next_command(&mut input) {
            match command {
                Command::Multicast { message, groups, bytes } => {
                    self.multicast(message, groups, bytes)
                }
                Command::Pause { ms } => {
                    self.pause_ms.fetch_add(ms, Ordering::Relaxed);
                    say(&Line::Ok { message: None });
                }
                Command::Leave if !self.shards => {
                    if lock(&self.spoiler).leaves() {
                        self.uplink.post(&Up::Leave);
                    }
                }
                Command::Stats => {
                    say(&Line::Stats { posts: self.uplink.posts.load(Ordering::Relaxed) })
                }
                Command::Stop => break,
                Command::Init(_) | Command::Leave | Command::Unknown => {
                    let text = "no such command here";
                    say(&Line::Error { code: "unsupported", definite: true, message: None, text });
                }
            }
        }
        let delay = lock(&self.spoiler).stopping();
        std::thread::sleep(delay);
        self.uplink.post(&Up::Stop);
    }

    /// Sends a message. Its `ok` is sent when it is stable, so the driver's window bounds the
    /// messages in flight.
    fn multicast(&self, message: String, groups: Vec<String>, bytes: usize) {
        let Init { node, groups: known, .. } = &self.init;
        let may_send = |name: &String| {
            known.iter().any(|group| group.group == *name && group.senders.contains(node))
        };
        if groups.is_empty() || !groups.iter().all(may_send) {
            let text = "not a sender of these groups";
            say(&Line::Error {
                code: "not-a-sender",
                definite: true,
                message: Some(&message),
                text,
            });
            return;
        }
        let payload = protocol::payload(&message, bytes);
        let sent = Up::Send { message: message.clone(), groups, payload };
        let (spoiled, delay) = {
            let mut spoiler = lock(&self.spoiler);
            (spoiler.sends(sent), spoiler.send_delay())
        };
        std::thread::sleep(delay);
        if !spoiled.iter().all(|up| self.uplink.post(up)) {
            let text = "the sequencer is gone";
            say(&Line::Error { code: "gone", definite: false, message: Some(&message), text });
        }
    }
}

/// MUTANT `chatter`: posts needless messages.
fn chatter(uplink: Arc<Uplink>) {
    std::thread::spawn(move || {
        while uplink.post(&Up::Have { upto: 0 }) {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}
