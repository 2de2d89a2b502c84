//! Each line that is typed is a task for one of the members, or for another if that one is lost.
//! Start it three times, with the arguments 0, 1 and 2.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tramontane::serde::{Deserialize, Serialize};
use tramontane::{Description, Replicated, StartOptions, StateMachine};

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default, Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct TaskQueue {
    waiting: VecDeque<String>,
    taken: BTreeMap<u32, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
enum QueueCommand {
    Add(String),
    /// A worker has done its task, if it had one, and takes the next.
    Next(u32),
    GiveBack(Vec<u32>),
}

impl StateMachine for TaskQueue {
    type Command = QueueCommand;
    type Answer = Option<String>;

    fn apply(&mut self, command: QueueCommand) -> Option<String> {
        match command {
            QueueCommand::Add(task) => self.waiting.push_back(task),
            QueueCommand::Next(worker) => {
                self.taken.remove(&worker);
                let task = self.waiting.pop_front()?;
                self.taken.insert(worker, task.clone());
                return Some(task);
            }
            QueueCommand::GiveBack(workers) => {
                let lost = workers.iter().filter_map(|worker| self.taken.remove(worker));
                lost.for_each(|task| self.waiting.push_front(task));
            }
        }
        None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).ok_or("which node: 0, 1 or 2?")?.parse()?;
    let group = Description::local("queue", 3, 100, 1024);
    let queue = Replicated::start(group, StartOptions::new(node), TaskQueue::default())?;
    // An earlier process of this node may have taken some.
    queue.propose(QueueCommand::GiveBack(vec![node])).wait(PATIENCE)?;
    let adding = queue.clone();
    std::thread::spawn(move || {
        let tasks = std::io::stdin().lines().map_while(Result::ok);
        tasks.for_each(|task| drop(adding.propose(QueueCommand::Add(task))));
    });
    loop {
        let members = queue.status().members;
        let (lost, has_tasks) = queue.query_local(|queue| {
            let lost = queue.taken.keys().filter(|node| !members.contains(node));
            (lost.copied().collect::<Vec<_>>(), !queue.waiting.is_empty())
        })?;
        if !lost.is_empty() && members.contains(&node) {
            queue.propose(QueueCommand::GiveBack(lost)).wait(PATIENCE)?;
        } else if has_tasks {
            let mut next = queue.propose(QueueCommand::Next(node)).wait(PATIENCE)?;
            while let Some(task) = next {
                println!("node {node} does {task:?}");
                std::thread::sleep(Duration::from_secs(1));
                next = queue.propose(QueueCommand::Next(node)).wait(PATIENCE)?;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
