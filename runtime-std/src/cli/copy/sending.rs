//! The root's part: what is copied goes out as one archive, and each receiver says what became of it, and is told.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::group::{BUFFERS, CHUNK_BYTES, Job};
use super::hearing::Hearing;
use super::packing::Packing;
use super::receiving::LAST_WORD;
use super::report::Report;
use super::source::Source;
use super::stream::{GiveBack, Outgoing};
use super::talk::Word;
use super::telling::Telling;
use crate::blocks::{BlockNode, Buffer};
use crate::cli::exit::{Failure, Status};

/// Why a copy did not come to its end.
#[derive(Debug)]
pub(super) enum CopyError {
    /// Nobody has it.
    Nowhere(Failure),
    /// Some have it in its place. Nobody else knows better who.
    Partly(Failure),
}

impl CopyError {
    const fn failure(&self) -> &Failure {
        match self {
            Self::Nowhere(failure) | Self::Partly(failure) => failure,
        }
    }
}

impl From<Failure> for CopyError {
    fn from(failure: Failure) -> Self {
        Self::Nowhere(failure)
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Nowhere(failure) | CopyError::Partly(failure) => failure,
        }
    }
}

/// Copies to all other members. `cancel` ends the wait for them, `check` fails when the user wants the end.
pub(super) fn send(
    job: &Job,
    files: &[PathBuf],
    cancel: &AtomicBool,
    check: &dyn Fn() -> Result<(), Failure>,
) -> Result<Report, CopyError> {
    let source = Arc::new(Source::look(files, check)?);
    let node = job.join(cancel)?;
    let mut telling = Telling::open(job, &node)?;
    let hearing = Hearing::open(job, &node, check)?;
    telling.tell(&Word::Terms(job.terms()))?;
    let mut copying = Copying { job, node: &node, source: &source, telling, hearing };
    let copied = copying.copy();
    let word = match &copied {
        Ok(_) => Word::Placed,
        Err(error) => Word::failed(error.failure()),
    };
    // Who is stopped is not waited for any longer, and nobody is told anything later.
    let _ = copying.telling.tell(&word);
    copying.telling.close(LAST_WORD);
    copying.hearing.close(if copied.is_ok() { LAST_WORD } else { Duration::ZERO });
    let _ = node.close();
    copied
}

/// The root of a copy.
struct Copying<'c> {
    job: &'c Job,
    node: &'c BlockNode,
    source: &'c Arc<Source>,
    telling: Telling,
    hearing: Hearing<'c>,
}

impl Copying<'_> {
    fn copy(&mut self) -> Result<Report, CopyError> {
        let (give, free) = mpsc::channel();
        for _ in 0..BUFFERS {
            let _ =
                give.send(Buffer::to_send(self.node.store(), CHUNK_BYTES).map_err(Failure::from)?);
        }
        let group = Arc::new(self.job.data(self.node, GiveBack(give))?);
        let stop = Arc::new(AtomicBool::new(false));
        let started = Instant::now();
        let pace = Arc::clone(&self.hearing.pace);
        let stream = Outgoing::new(Arc::clone(&group), free, Arc::clone(&stop), pace);
        let packing = Packing::start(self.source, stream)?;
        let Self { source, telling, hearing, .. } = self;
        hearing.expect(source.manifest.bytes);
        if let Err(failure) = hearing.until(telling, &group, |_| packing.is_finished()) {
            // It may wait for a disk for ever, and is not waited for.
            stop.store(true, Ordering::Relaxed);
            return Err(failure.into());
        }
        let (bytes, checksum) = packing.end().map_err(|failure| match failure.status {
            // The copy ended below it, and it does not know why.
            Status::PeerLost => hearing.cause(&group),
            _ => failure,
        })?;
        hearing.until(telling, &group, Hearing::is_complete)?;
        hearing.compare(bytes, &checksum)?;
        // From here on the root's word alone counts, and that of each receiver: nothing more goes from one to the other.
        telling.tell(&Word::Agreed { checksum: checksum.clone() })?;
        hearing.all_placed(telling).map_err(CopyError::Partly)?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(Report { bytes, checksum, seconds, lines: hearing.lines(), places: Vec::new() })
    }
}
