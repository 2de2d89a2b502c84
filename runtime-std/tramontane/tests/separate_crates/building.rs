//! Builds a page's program as a separate crate, from its text, with exactly the dependencies that
//! the page lists, and runs it in three terminals.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A time limit longer than any step here takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Returns the block of the page that begins with this text.
#[track_caller]
pub fn block<'p>(page: &'p str, begin: &str) -> &'p str {
    let (_, rest) = page.split_once(begin).expect("it is on the page");
    rest.split_once("\n```").expect("it has an end").0
}

/// Returns the profiles of the workspace, so that what it has already built is reused.
fn profiles(workspace: &Path) -> String {
    let manifest = std::fs::read_to_string(workspace.join("Cargo.toml")).expect("a manifest");
    let profiles = manifest.find("[profile.").expect("a profile");
    manifest[profiles..].to_owned()
}

/// Builds the first program of a page in a folder. Returns the program's path.
pub fn built(page: &str, name: &str, folder: &Path) -> PathBuf {
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a folder");
    let (theirs, ours) =
        ("\"tramontane/runtime-std/tramontane\"", workspace.join("runtime-std/tramontane"));
    let dependencies = block(page, "```toml\n[dependencies]");
    assert!(dependencies.contains(theirs), "{dependencies}");
    let dependencies = dependencies.replace(theirs, &format!("{ours:?}"));
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]{dependencies}\n\n\
         [workspace]\n\n{}",
        profiles(&workspace)
    );
    std::fs::create_dir(folder.join("src")).expect("a folder");
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("a file");
    std::fs::write(folder.join("src/main.rs"), block(page, "```rust,no_run\n")).expect("a file");
    // The same versions as in the workspace, so that nothing is downloaded.
    std::fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock")).expect("a file");
    // The workspace's own target folder, in which most of the example is already built.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder").to_owned();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--offline"]).current_dir(folder).env("CARGO_TARGET_DIR", &target);
    // The flags of this test must not apply to the example.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(name);
    }
    let said = command.output().expect("cargo");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    target.join("debug").join(name)
}

/// Builds this crate's example. Returns the program's path.
pub fn built_example(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder").to_owned();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--offline", "-p", "tramontane", "--example", name]);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", &target);
    let said = command.output().expect("cargo");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    target.join("debug/examples").join(name)
}

/// Writes a line, and returns the program's answer.
pub fn ask(terminal: &mut Terminal, line: &str) -> String {
    let before = terminal.shown().lines().count();
    terminal.write(line);
    wait_for(line, || terminal.shown().lines().count() > before);
    terminal.shown().lines().last().unwrap_or_default().to_owned()
}

/// One of the three terminals.
pub struct Terminal {
    pub child: Child,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    pub fn start(program: &Path, root: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).env("TRAMONTANE_SHM_DIR", root);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let shown = Arc::<Mutex<String>>::default();
        let (output, into) = (child.stdout.take().expect("piped"), Arc::clone(&shown));
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                into.lock().expect("nobody panics").push_str(&(line + "\n"));
            }
        });
        Self { child, shown }
    }

    /// Starts a program whose argument is its node id.
    pub fn node(program: &Path, root: &Path, node: usize) -> Self {
        Self::start(program, root, &[&node.to_string()])
    }

    pub fn write(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        input.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    /// Ends the input. The program then ends by itself.
    pub fn finish(&mut self) {
        drop(self.child.stdin.take());
        wait_for("its end", || self.child.try_wait().expect("a status").is_some());
        assert!(self.child.wait().expect("a status").success());
    }

    pub fn shown(&self) -> String {
        self.shown.lock().expect("nobody panics").clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}
