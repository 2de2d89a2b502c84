//! Processes that hold namespaces. A namespace here has no name, and disappears with the last
//! process in it.
//!
//! # Nothing is left behind
//! A holder exits when its input is closed, which the kernel ensures even if the driver is killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

/// The script of a holder. It reports that it is running, then waits until its input is closed.
const HOLD: &str = "echo here; read -r end";

/// A process that holds a namespace.
#[derive(Debug)]
pub(super) struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        // Both calls fail only if the process has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Holder {
    /// Starts a holder in the namespaces that this command creates.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(super) fn start(mut command: Vec<String>) -> Result<Self, String> {
        command.extend(["sh", "-c", HOLD].map(str::to_owned));
        Self::spawn(&command)
    }

    /// Starts a holder whose shell first runs a script. The script is the last word of the command,
    /// and these are its arguments.
    ///
    /// # Errors
    /// Fails with the error of the system.
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
            // Missing output is treated like an error.
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

    /// Returns the id of the holder's process.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }
}

/// Returns the words that run a command in a holder's namespaces of these kinds.
pub(super) fn enter(holder: &Holder, kinds: &[&str]) -> Vec<String> {
    let pid = holder.id().to_string();
    let words = ["nsenter", "--target", &pid].into_iter().chain(kinds.iter().copied());
    words.chain(["--"]).map(str::to_owned).collect()
}

/// Starts a command with pipes.
pub(super) fn spawn(words: &[String]) -> Result<Child, String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("no command".to_owned());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| format!("{program}: {error}"))
}

/// Returns the first line of a command's output, for people.
pub(super) fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .lines()
        .next()
        .unwrap_or("it exited without an error message")
        .to_owned()
}
