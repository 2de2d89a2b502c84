//! How fast can one process's memory be copied into that of several others on this machine, and in which way?
//!
//! ```sh
//! cargo run --release -p tramontane-runtime --example block_copies -- 3 1,16,256
//! ```
//!
//! starts three receiving processes and shows, for objects of 1, 16 and 256 MiB, what all receivers together take in,
//! for each way to copy: the median of all rounds, and the least and the most. The ways take turns, so that what else the
//! machine does falls on all of them alike. A second table is of the processor time of the copies alone, which knows nothing
//! of what other programs took of the processors: GB/s of one processor. `own` is the limit: each receiver copies memory of its own, which nobody
//! shares. `fabric` is the real thing: one block to each receiver through `SharedMemory`.
//!
//! A third argument is the folder that the memory is in, a fourth the number of rounds.

mod control;
mod member;
mod ways;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use control::{Control, worked_ns};
use member::Member;
use ways::Way;

/// What is measured, the same in every process.
#[derive(Clone, Debug)]
struct Plan {
    receivers: u16,
    sizes: Vec<usize>,
    folder: PathBuf,
    rounds: usize,
}

impl Plan {
    fn from_arguments(arguments: &[String]) -> Option<Self> {
        let megabytes = arguments.get(1)?.split(',').map(|text| text.parse::<usize>().ok());
        Some(Self {
            receivers: arguments.first()?.parse().ok().filter(|count| *count > 0)?,
            sizes: megabytes.map(|size| Some(size? << 20)).collect::<Option<_>>()?,
            folder: arguments.get(2).map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from),
            rounds: arguments.get(3).map_or(Some(9), |text| text.parse().ok())?,
        })
    }

    fn largest(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(0)
    }

    /// Every case in order: which size, bytes, way; all rounds of a size one after the other, the ways in turn. The first
    /// round is to warm up.
    fn cases(&self) -> Vec<(usize, usize, Way)> {
        let mut cases = Vec::new();
        for (index, bytes) in self.sizes.iter().enumerate() {
            for _ in 0..=self.rounds {
                cases.extend(Way::all().into_iter().map(|way| (index, *bytes, way)));
            }
        }
        cases
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let receiver = std::env::var("BLOCK_COPIES_RECEIVER").ok().and_then(|text| text.parse::<u16>().ok());
    let Some(mut plan) = Plan::from_arguments(&arguments) else {
        eprintln!("say how many receivers, and the sizes in MiB: block_copies 3 1,16,256 [FOLDER [ROUNDS]]");
        std::process::exit(2);
    };
    if let Some(rank) = receiver {
        receive(&plan, rank);
        return;
    }
    let place = tempfile::TempDir::new_in(&plan.folder).expect("a folder for the memory");
    plan.folder = place.path().to_path_buf();
    let control = Control::make(&plan.folder);
    let children: Vec<Child> = (1..=plan.receivers).map(|rank| start(&plan, &arguments, rank)).collect();
    let figures = send(&plan, &control);
    for mut child in children {
        child.wait().expect("a receiver ends");
    }
    show(&plan, &figures);
}

fn start(plan: &Plan, arguments: &[String], rank: u16) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(&arguments[..2])
        .arg(&plan.folder)
        .arg(plan.rounds.to_string())
        .env("BLOCK_COPIES_RECEIVER", rank.to_string())
        .spawn()
        .expect("a receiver starts")
}

/// For each size and way, in the order of the rounds: bytes a nanosecond of all together, and of one processor.
type Figures = Vec<Vec<Vec<[f64; 2]>>>;

/// The sender's part.
fn send(plan: &Plan, control: &Control) -> Figures {
    let mut member = Member::new(plan, 0);
    let ways = Way::all();
    let mut figures = vec![vec![Vec::new(); ways.len()]; plan.sizes.len()];
    for (case, (size, bytes, way)) in plan.cases().into_iter().enumerate() {
        control.await_ready(case, plan.receivers);
        control.start(case);
        if way == Way::Fabric {
            member.send(bytes, plan.receivers);
        }
        let (taken_ns, copying_ns) = control.await_done(case, plan.receivers);
        let place = ways.iter().position(|other| *other == way).unwrap_or(0);
        let all = bytes as f64 * f64::from(plan.receivers);
        figures[size][place].push([all / taken_ns, all / copying_ns]);
    }
    figures
}

fn receive(plan: &Plan, rank: u16) {
    let control = Control::open(&plan.folder);
    let mut member = Member::new(plan, rank);
    for (case, (_, bytes, way)) in plan.cases().into_iter().enumerate() {
        if way == Way::Fabric {
            member.post(bytes);
        }
        control.ready(case, rank);
        control.await_start(case);
        control.began(rank);
        let before_ns = worked_ns();
        let mut waited_ns = 0;
        match way {
            Way::Fabric => member.receive(),
            Way::Raw { own, stores, block, together } => {
                let source = member.source(own);
                let block = block.min(bytes);
                for (index, at) in (0..bytes).step_by(block).enumerate() {
                    if together {
                        let waiting_ns = worked_ns();
                        control.await_blocks(case, index, plan.receivers);
                        waited_ns += worked_ns() - waiting_ns;
                    }
                    member.copy(&source, at, block.min(bytes - at), stores);
                    control.block_done(case, rank, index + 1);
                }
            }
        }
        control.done(case, rank, worked_ns() - before_ns - waited_ns);
    }
}

/// A table a measure, a line a way, a column a size; the first round of each is not counted.
fn show(plan: &Plan, figures: &Figures) {
    let folder = plan.folder.parent().unwrap_or(Path::new("/")).display();
    let (receivers, rounds) = (plan.receivers, plan.rounds);
    println!("{receivers} receivers, {rounds} rounds, in {folder}; median (least to most)");
    for (measure, title) in ["GB/s of all together", "GB/s of one processor"].into_iter().enumerate() {
        print!("\n{title:24}");
        for bytes in &plan.sizes {
            print!("{:>24}", format!("{} MiB", bytes >> 20));
        }
        println!();
        for (index, way) in Way::all().iter().enumerate() {
            print!("{:24}", way.to_string());
            for size in figures {
                let mut counted: Vec<f64> = size[index][1..].iter().map(|figure| figure[measure]).collect();
                counted.sort_by(f64::total_cmp);
                let (least, most) = (counted[0], counted[counted.len() - 1]);
                let text = format!("{:.2} ({least:.2} to {most:.2})", counted[counted.len() / 2]);
                print!("{text:>24}");
            }
            println!();
        }
    }
}
