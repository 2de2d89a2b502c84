//! Two processes that act as two partitions, and the supervisor that starts and restarts them.
//!
//! `tramontane-partition pair MESSAGES RESTARTS` starts both partitions. RESTARTS times during the
//! run, it kills one of them and restarts it with empty memory. At the end it compares the results
//! of both.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use tramontane_core::ids::Time;
use tramontane_partition::group::WhichPartition;
use tramontane_partition::shim::apex::{ApexPorts, PortNames};
use tramontane_partition::shim::linux::Linux;
use tramontane_partition::{Partition, PartitionStorage, Phase};

/// Time that a pair may take in total.
const PAIR_TIMEOUT: Duration = Duration::from_secs(120);

/// Time from one step of a partition to the next.
const PERIOD: Duration = Duration::from_micros(200);

static STORAGE: PartitionStorage = PartitionStorage::new();

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["pair", messages, restarts] => number(messages).zip(number(restarts)).map(pair),
        ["run", channel, incarnation, messages, folder] => {
            let channel = if *channel == "A" { WhichPartition::A } else { WhichPartition::B };
            number(incarnation).zip(number(messages)).map(|(incarnation, messages)| {
                run(channel, incarnation as u32, messages, PathBuf::from(folder))
            })
        }
        _ => None,
    };
    match done {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(why)) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("usage: tramontane-partition pair MESSAGES RESTARTS");
            ExitCode::from(2)
        }
    }
}

fn number(word: &str) -> Option<u64> {
    word.parse().ok()
}

/// Runs one incarnation of a partition until it is killed or its parent exits.
fn run(
    own: WhichPartition,
    incarnation: u32,
    messages: u64,
    folder: PathBuf,
) -> Result<(), String> {
    Linux::use_folder(folder);
    let mut ports = ApexPorts::<Linux>::create(&PortNames::of(own))
        .map_err(|error| format!("cannot create the ports: {error:?}"))?;
    let rows = STORAGE.rows();
    let mut partition = Partition::new(own, incarnation, &STORAGE, &rows, messages / 2);
    let (began, parent) = (Instant::now(), std::os::unix::process::parent_id());
    let (mut phase, mut told) = (None, u64::MAX);
    while std::os::unix::process::parent_id() == parent {
        let now = Time(began.elapsed().as_nanos() as u64);
        let after = partition.step(now, &mut ports);
        if phase.replace(after) != Some(after) {
            println!("phase {after:?}");
        }
        if let Phase::Stopped(why) = after {
            return Err(format!("stopped: {why:?}"));
        }
        let count = partition.orders().count();
        if told != count {
            told = count;
            println!("count {count} {:016x}", partition.orders().digest());
        }
        thread::sleep(PERIOD);
    }
    Ok(())
}

/// A running incarnation.
struct RunningIncarnation {
    child: Child,
    incarnation: u32,
}

impl Drop for RunningIncarnation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A partition, its incarnation, and a line of its output.
type Said = (WhichPartition, u32, String);

fn start(
    own: WhichPartition,
    incarnation: u32,
    messages: u64,
    folder: &Path,
    said: &Sender<Said>,
) -> Result<RunningIncarnation, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let channel = if own == WhichPartition::A { "A" } else { "B" };
    let mut child = Command::new(program)
        .args(["run", channel, &incarnation.to_string(), &messages.to_string()])
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let said = said.clone();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if said.send((own, incarnation, line)).is_err() {
                break;
            }
        }
    });
    Ok(RunningIncarnation { child, incarnation })
}

fn pair((messages, restarts): (u64, u64)) -> Result<(), String> {
    let folder = env::temp_dir().join(format!("tramontane-partition-{}", process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let result = supervise(messages, restarts, &folder);
    let _ = fs::remove_dir_all(&folder);
    result
}

fn supervise(messages: u64, restarts: u64, folder: &Path) -> Result<(), String> {
    let (sender, said) = mpsc::channel();
    let mut lives = [
        start(WhichPartition::A, 1, messages, folder, &sender)?,
        start(WhichPartition::B, 1, messages, folder, &sender)?,
    ];
    let mut done = [None, None];
    let mut killed = 0;
    let began = Instant::now();
    while done.iter().any(Option::is_none) {
        let (own, count, digest) = next_count(&said, &lives, began)?;
        // The partitions are killed in turn, at points spread over the run.
        let place = messages * (killed + 1) / (restarts + 1);
        let victim = if killed % 2 == 0 { WhichPartition::A } else { WhichPartition::B };
        if killed < restarts && own == victim && count >= place {
            killed += 1;
            let incarnation = lives[victim.index()].incarnation + 1;
            println!("{victim:?} is killed after {count} messages");
            drop(lives[victim.index()].child.kill());
            drop(lives[victim.index()].child.wait());
            lives[victim.index()] = start(victim, incarnation, messages, folder, &sender)?;
            done[victim.index()] = None;
        } else if count == messages {
            done[own.index()] = Some(digest);
        }
    }
    let [Some(a), Some(b)] = done else { return Err("the partitions did not finish".into()) };
    if a != b {
        return Err(format!("after {messages} messages the partitions disagree: {a} and {b}"));
    }
    println!("{messages} messages at both in one order, {killed} restarts: digest {a}");
    Ok(())
}

/// Returns the next count that one of the current incarnations prints.
fn next_count(
    said: &Receiver<Said>,
    lives: &[RunningIncarnation; 2],
    began: Instant,
) -> Result<(WhichPartition, u64, String), String> {
    loop {
        let left = PAIR_TIMEOUT.saturating_sub(began.elapsed());
        let (own, incarnation, line) = said
            .recv_timeout(left)
            .map_err(|_| "the partitions did not finish in time".to_string())?;
        if lives[own.index()].incarnation != incarnation {
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["count", count, digest] => {
                let count = number(count).ok_or("a count is not a number")?;
                return Ok((own, count, (*digest).to_string()));
            }
            _ => println!("{own:?}, incarnation {incarnation}: {line}"),
        }
    }
}
