//! Processes that hold namespaces: a namespace has no name here, and is gone with the last process
//! in it.
//!
//! # Nothing is left behind
//! A holder ends when its input does, which the kernel sees to however the driver ends.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

/// What a holder runs: it says when it is there, and waits for the end of its input.
const HOLD: &str = "echo here; read -r end";

/// A process that holds a namespace.
#[derive(Debug)]
pub(super) struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Holder {
    /// Starts one, in the namespaces that these words make.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn start(mut command: Vec<String>) -> Result<Self, String> {
        command.extend(["sh", "-c", HOLD].map(str::to_owned));
        Self::spawn(&command)
    }

    /// The same, where the last of the words is a script for a shell with these arguments, which
    /// comes first.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn start_after(
        mut command: Vec<String>,
        arguments: &[String],
    ) -> Result<Self, String> {
        if let Some(script) = command.last_mut() {
            *script = format!("{script}; {HOLD}");
        }
        command.push("holder".to_owned());
        command.extend_from_slice(arguments);
        Self::spawn(&command)
    }

    fn spawn(command: &[String]) -> Result<Self, String> {
        let mut holder = Self(spawn(command)?);
        let mut notice = String::new();
        if let Some(output) = holder.0.stdout.take() {
            // Nothing said is as good as an error.
            let _ = BufReader::new(output).read_line(&mut notice);
        }
        if notice == "here\n" {
            return Ok(holder);
        }
        let mut errors = Vec::new();
        if let Some(mut stream) = holder.0.stderr.take() {
            let _ = stream.read_to_end(&mut errors);
        }
        Err(first_line(&errors))
    }

    /// The number of its process.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }
}

/// The words that put a command into a holder's namespaces of these kinds.
pub(super) fn enter(holder: &Holder, kinds: &[&str]) -> Vec<String> {
    let pid = holder.id().to_string();
    let words = ["nsenter", "--target", &pid].into_iter().chain(kinds.iter().copied());
    words.chain(["--"]).map(str::to_owned).collect()
}

/// Starts a command of these words, with pipes.
pub(super) fn spawn(words: &[String]) -> Result<Child, String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("no command".to_owned());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| format!("{program}: {error}"))
}

/// The first line that a command said, for people.
pub(super) fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or("it ended without a word").to_owned()
}
