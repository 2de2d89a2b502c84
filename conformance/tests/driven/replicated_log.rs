//! The code that the Python adapters of replicated logs share.

use std::process::Command;

use tempfile::TempDir;

const ADAPTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/adapters");

/// One incarnation of a member, which delivers up to a given position. It prints the position that
/// earlier incarnations reached.
const START: &str = "
import sys, types
import replicated_log
place = replicated_log.Place(types.SimpleNamespace(storage=sys.argv[1]))
place.keep(int(sys.argv[2]))
print(place.before)
";

/// The second incarnation is killed while it replays, and must not lower the first one's position.
pub fn kill_during_replay_does_not_lower_the_position() {
    let folder = TempDir::new().expect("a folder");
    for (delivers, before) in [("5", "-1"), ("2", "5"), ("7", "5"), ("0", "7")] {
        let started = Command::new("python3")
            .args(["-c", START])
            .arg(folder.path())
            .arg(delivers)
            .env("PYTHONPATH", ADAPTERS)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output();
        let output = match started {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return println!("SKIPPED: this test needs python3, and there is none");
            }
            started => started.expect("it starts"),
        };
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.trim(), before, "{}", String::from_utf8_lossy(&output.stderr));
    }
}
