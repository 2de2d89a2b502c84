//! A driven node: its commands and its answers.

use std::io::{self, BufRead as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use super::protocol::{Command, Line, tell};
use super::refusal::not_understood;
use tramontane_local::exit::Failure;
use tramontane_local::interrupt::Interrupts;

/// Interval between checks for signals and of the member's state.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// A node that can be asked to send.
pub(super) trait NodeUnderTest {
    /// Executes commands until the last one.
    fn serve(self: Box<Self>, commands: &Commands, interrupts: &Interrupts) -> Result<(), Failure>;
}

/// Announces that multicasts are accepted, and the claimed features.
pub(super) fn greet(features: &[&str]) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    answer(&Line::InitOk { name: "tramontane", version, features })
}

/// Answers a command that is invalid in this state.
pub(super) fn answer_unknown() -> Result<(), Failure> {
    let text = "this member cannot do that";
    answer(&Line::Error { code: "unsupported", definite: true, message: None, text })
}

pub(super) fn answer(answer: &Line<'_>) -> Result<(), Failure> {
    tell(answer).map_err(|error| Failure::output(&error))
}

/// Commands in order of arrival. The end of the input counts as a stop command.
pub(super) type Commands = Receiver<Result<Command, Failure>>;

/// Reads commands in a thread that is never joined, because a read cannot be cancelled.
pub(super) fn read_commands() -> Result<Commands, Failure> {
    let (sender, commands) = mpsc::channel();
    let read = move || {
        for line in io::stdin().lock().lines() {
            let command = line
                .map_err(|error| Failure::system("cannot read commands", &error))
                .and_then(|line| {
                    serde_json::from_str(&line)
                        .map_err(|error| not_understood(format_args!("{error}: {line}")))
                });
            if sender.send(command).is_err() {
                return;
            }
        }
        // The program may have ended already.
        let _ = sender.send(Ok(Command::Stop));
    };
    let spawned = std::thread::Builder::new().name("tramontane-read".into()).spawn(read);
    spawned.map_err(|error| Failure::system("cannot start a thread", &error))?;
    Ok(commands)
}

/// Returns the next command, or `None` if none arrives in time.
pub(super) fn next(
    commands: &Commands,
    interrupts: &Interrupts,
    patience: Duration,
) -> Result<Option<Result<Command, Failure>>, Failure> {
    interrupts.check()?;
    match commands.recv_timeout(patience) {
        Ok(command) => Ok(Some(command)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Ok(Some(Ok(Command::Stop))),
    }
}
