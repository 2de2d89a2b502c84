//! Locks with leases and fencing tokens. Start it three times, with the arguments 0, 1 and 2.
//!
//! A holder that is slower than its lease may still believe that it has the lock. So it shows its
//! token to the resource, which refuses tokens below the highest that it has seen.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tramontane::serde::{Deserialize, Serialize};
use tramontane::{Description, Replicated, StartOptions, StateMachine};

const PATIENCE: Duration = Duration::from_secs(10);

/// The locks by name: the token of the holder, and the end of its lease in ms since 1970.
#[derive(Default, Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Locks {
    last_token: u64,
    now_ms: u64,
    held: BTreeMap<String, (u64, u64)>,
}

/// Takes a free lock or, with the holder's token, extends its lease. A lease of 0 ms releases it.
#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Acquire {
    name: String,
    token: Option<u64>,
    lease_ms: u64,
    /// The proposer's clock, because all members must see the same one.
    now_ms: u64,
}

impl StateMachine for Locks {
    type Command = Acquire;
    /// The token, or why there is none.
    type Answer = Result<u64, String>;

    fn apply(&mut self, command: Acquire) -> Result<u64, String> {
        // Members' clocks differ, but the locks' clock never goes back.
        self.now_ms = self.now_ms.max(command.now_ms);
        let until_ms = self.now_ms + command.lease_ms;
        match (self.held.get_mut(&command.name), command.token) {
            (Some((holder, until)), Some(token)) if *holder == token => {
                *until = until_ms;
                Ok(token)
            }
            (_, Some(_)) => Err("another has taken it".to_owned()),
            (Some((_, until)), None) if *until > self.now_ms => {
                Err(format!("held for {} ms more", *until - self.now_ms))
            }
            (_, None) => {
                self.last_token += 1;
                self.held.insert(command.name, (self.last_token, until_ms));
                Ok(self.last_token)
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).ok_or("which node: 0, 1 or 2?")?.parse()?;
    let group = Description::local("locks", 3, 100, 1024);
    let locks = Replicated::start(group, StartOptions::new(node), Locks::default())?;
    for line in std::io::stdin().lines() {
        let now_ms = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
        let line = line?;
        let (name, token, lease_ms) = match *line.split_whitespace().collect::<Vec<_>>() {
            ["acquire", name] => (name.to_owned(), None, 10_000),
            ["renew", name, token] => (name.to_owned(), Some(token.parse()?), 10_000),
            ["release", name, token] => (name.to_owned(), Some(token.parse()?), 0),
            _ => continue,
        };
        println!("{:?}", locks.propose(Acquire { name, token, lease_ms, now_ms }).wait(PATIENCE)?);
    }
    Ok(locks.leave(PATIENCE)?)
}
