//! A replicated map. Start it three times, with the arguments 0, 1 and 2, and type commands.

use std::collections::BTreeMap;
use std::time::Duration;

use tramontane::serde::{Deserialize, Serialize};
use tramontane::{Description, Replicated, StartOptions, StateMachine};

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default, Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Map(BTreeMap<String, String>);

impl StateMachine for Map {
    /// A key and its new value.
    type Command = (String, String);
    /// The previous value.
    type Answer = Option<String>;

    fn apply(&mut self, (key, value): (String, String)) -> Option<String> {
        self.0.insert(key, value)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).ok_or("which node: 0, 1 or 2?")?.parse()?;
    // Nodes 0, 1 and 2 on this machine; 100 slots per sender, commands of up to 1024 bytes.
    let group = Description::local("map", 3, 100, 1024);
    let map = Replicated::start(group, StartOptions::new(node), Map::default())?;
    for line in std::io::stdin().lines() {
        match *line?.split_whitespace().collect::<Vec<_>>() {
            ["put", key, value] => {
                let previous = map.propose((key.to_owned(), value.to_owned())).wait(PATIENCE)?;
                println!("{previous:?}");
            }
            ["get", key] => {
                let value = map.query_linearizable(|map| map.0.get(key).cloned()).wait(PATIENCE)?;
                println!("{value:?}");
            }
            _ => println!("put KEY VALUE, or get KEY"),
        }
    }
    map.leave(PATIENCE)?;
    Ok(())
}
