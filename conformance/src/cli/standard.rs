//! Standard input and output.

use std::io;
use std::path::Path;

use super::exit::Failure;

/// What came of writing to standard output. That its reader has closed it is no failure: the
/// exit status says the rest.
pub(super) fn check_written(outcome: io::Result<()>, what: &str) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome
            .map_err(|error| Failure::output(format_args!("{what} to standard output"), &error)),
    }
}

/// Whether a file's name stands for standard input or output.
pub(super) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}
