//! Standard input and output.

use std::io;
use std::path::Path;

use super::exit::Failure;

/// Checks the result of writing to standard output. A closed pipe is not a failure: the exit status
/// gives the result.
pub(super) fn check_written(outcome: io::Result<()>, what: &str) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome
            .map_err(|error| Failure::output(format_args!("{what} to standard output"), &error)),
    }
}

/// Returns whether a file's name means standard input or output.
pub(super) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}
