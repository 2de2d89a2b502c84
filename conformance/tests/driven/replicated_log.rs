//! What the adapters of replicated logs in Python share.

use std::process::Command;

use tempfile::TempDir;

const ADAPTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/adapters");

/// One start of a member that delivers up to a place. It prints where earlier starts came to.
const START: &str = "
import sys, types
import replicated_log
place = replicated_log.Place(types.SimpleNamespace(storage=sys.argv[1]))
place.keep(int(sys.argv[2]))
print(place.before)
";

/// The second start is killed while it replays: it has not delivered less than the first.
pub fn a_start_that_is_killed_while_it_replays_does_not_put_the_place_back() {
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
