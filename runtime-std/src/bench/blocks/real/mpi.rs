//! Open MPI's `MPI_Bcast` beside block groups: a small program of the project's own, compiled when it is asked for.
//!
//! It is another program, which need not be there: then a note says how to get it.

use std::io::{self, ErrorKind};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The program that is compiled.
const SOURCE: &str = include_str!("broadcast.c");

/// As it stands beside the rows.
pub(super) const NAME: &str = "MPI_Bcast";

/// What to do where there is none.
pub(super) const MISSING: &str = "Open MPI is not installed; 'apt-get install openmpi-bin libopenmpi-dev' gives MPI_Bcast beside it";

/// More ranks than processors, which give way when they wait; blocks of memory shared, and nothing else.
const OPTIONS: [&str; 10] = [
    "--oversubscribe",
    "--mca",
    "pml",
    "ob1",
    "--mca",
    "btl",
    "vader,self",
    "--mca",
    "mpi_yield_when_idle",
    "1",
];

/// The compiled program.
#[derive(Debug)]
pub(super) struct Broadcast {
    folder: TempDir,
}

impl Broadcast {
    /// Compiles it; why there is none.
    pub(super) fn compile() -> Result<Self, String> {
        Self::try_compile().map_err(|error| match error.kind() {
            ErrorKind::NotFound => MISSING.to_owned(),
            _ => format!("MPI_Bcast was not measured: {error}"),
        })
    }

    fn try_compile() -> io::Result<Self> {
        let folder = TempDir::new()?;
        let source = folder.path().join("broadcast.c");
        std::fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("mpicc");
        compiler.args(["-O2", "-o"]).arg(folder.path().join("broadcast")).arg(&source);
        said(&compiler.stdin(Stdio::null()).output()?)?;
        // That the compiler is there does not say that the launcher is.
        said(&Command::new("mpirun.openmpi").arg("--version").stdin(Stdio::null()).output()?)?;
        Ok(Self { folder })
    }

    /// Nanoseconds of each measured message.
    pub(super) fn run(
        &self,
        ranks: usize,
        bytes: usize,
        warm_ups: u64,
        messages: u64,
    ) -> Result<Vec<u32>, String> {
        let mut command = Command::new("mpirun.openmpi");
        command
            .args(["-np", &ranks.to_string()])
            .args(OPTIONS)
            .arg(self.folder.path().join("broadcast"));
        command.args([bytes.to_string(), warm_ups.to_string(), messages.to_string()]);
        // In containers everybody is root.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let output = command.stdin(Stdio::null()).output().and_then(|output| said(&output));
        let text = output.map_err(|error| format!("MPI_Bcast was not measured: {error}"))?;
        times_of(&text, messages)
            .ok_or_else(|| "MPI_Bcast was not measured: it says something else".to_owned())
    }
}

/// What a program printed, if it succeeded.
fn said(output: &Output) -> io::Result<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let errors = text(&output.stderr);
    let last = errors
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it failed without a word");
    Err(io::Error::other(last.to_owned()))
}

fn times_of(text: &str, messages: u64) -> Option<Vec<u32>> {
    let times: Option<Vec<u32>> = text.lines().map(|line| line.trim().parse().ok()).collect();
    times.filter(|times| times.len() as u64 == messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_message_or_nothing() {
        assert_eq!(times_of("5\n70\n", 2), Some(vec![5, 70]));
        assert_eq!(times_of("5\n", 2), None);
        assert_eq!(times_of("5\nabort\n", 2), None);
    }
}
