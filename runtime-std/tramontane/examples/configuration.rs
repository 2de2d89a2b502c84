//! Settings with versions. Every member shows each change. Start it three times, with the arguments
//! 0, 1 and 2, and type NAME VERSION VALUE. A change of an old version is refused, so that nobody
//! overwrites a change that they have not seen. A new setting has version 0.

use std::collections::BTreeMap;
use std::time::Duration;

use tramontane::serde::{Deserialize, Serialize};
use tramontane::{Description, Replicated, StartOptions, StateMachine};

const PATIENCE: Duration = Duration::from_secs(10);

/// The version and value of each setting.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct ServiceSettings(BTreeMap<String, (u64, String)>);

#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct SettingsChange {
    name: String,
    /// The version that the change replaces.
    version: u64,
    value: String,
}

impl StateMachine for ServiceSettings {
    type Command = SettingsChange;
    /// The new version, or the present one if the change came too late.
    type Answer = Result<u64, u64>;

    fn apply(&mut self, change: SettingsChange) -> Result<u64, u64> {
        let present = self.0.get(&change.name).map_or(0, |(version, _)| *version);
        if change.version != present {
            return Err(present);
        }
        self.0.insert(change.name, (present + 1, change.value));
        Ok(present + 1)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).ok_or("which node: 0, 1 or 2?")?.parse()?;
    let group = Description::local("settings", 3, 100, 1024);
    let settings = Replicated::start(group, StartOptions::new(node), ServiceSettings::default())?;
    let watched = settings.clone();
    std::thread::spawn(move || {
        let mut shown = ServiceSettings::default();
        while let Ok(seen) = watched.query_local(ServiceSettings::clone) {
            for (name, (version, value)) in &seen.0 {
                if shown.0.get(name).is_none_or(|(before, _)| before < version) {
                    println!("{name} = {value} (version {version})");
                }
            }
            shown = seen;
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    for line in std::io::stdin().lines() {
        if let [name, version, value] = *line?.split_whitespace().collect::<Vec<_>>() {
            let (name, value) = (name.to_owned(), value.to_owned());
            let change = SettingsChange { name, version: version.parse()?, value };
            println!("{:?}", settings.propose(change).wait(PATIENCE)?);
        }
    }
    Ok(settings.leave(PATIENCE)?)
}
