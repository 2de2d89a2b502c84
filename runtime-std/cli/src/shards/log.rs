//! The application of a replica started from the command line: a log with one line per delivered
//! message.
//!
//! ```text
//! PLACE GROUPS CLIENT/INCARNATION/NUMBER TEXT
//! ```

use std::io::{self, Cursor, Read, Write as _};
use std::sync::mpsc::Sender;

use tramontane_runtime::shards::{Delivered, Destinations, Places, ShardApplication};

use crate::log_file::{NO_FILE, SharedLogFile, begin_without_file, kept_text};
use tramontane_local::lines::add_message;
use tramontane_local::output::{Output, print_notice};

/// The destination of lines.
enum Sink {
    File(SharedLogFile),
    Printed(Output),
    Nowhere,
}

/// The application.
pub(super) struct Log {
    places: Places,
    sink: Sink,
    line: Vec<u8>,
    /// Whether the file belongs to the group yet.
    is_begun: bool,
    /// Receives the error when a line cannot be written.
    failed: Sender<io::Error>,
}

impl Log {
    /// Creates the application, which writes to a file, prints, or does neither.
    pub(super) fn new(
        places: Places,
        file: Option<SharedLogFile>,
        output: Option<Output>,
        failed: Sender<io::Error>,
    ) -> Self {
        let sink = match (file, output) {
            (Some(file), _) => Sink::File(file),
            (None, Some(output)) => Sink::Printed(output),
            (None, None) => Sink::Nowhere,
        };
        Self { places, sink, line: Vec::new(), is_begun: false, failed }
    }

    /// Marks the file as the group's. If the group has formed anew, the file of an earlier process
    /// is kept.
    fn begin(&mut self) -> io::Result<()> {
        if let (Sink::File(file), false) = (&self.sink, self.is_begun) {
            let kept = file.begin()?;
            kept.iter().for_each(|kept| print_notice(&kept_text(kept)));
        }
        self.is_begun = true;
        Ok(())
    }

    /// The main thread ends this process, and may already be doing so.
    fn fail(&self, error: io::Error) {
        let _ = self.failed.send(error);
    }

    /// Formats a message as a line.
    fn format(&mut self, message: &Delivered<'_>) {
        let Delivered { place, id, destinations, payload } = message;
        self.line.clear();
        let groups = names(&self.places, *destinations);
        let (client, incarnation, number) = (id.client, id.incarnation, id.number);
        // Writing to a vector cannot fail.
        let _ = write!(self.line, "{place} {groups} {client}/{incarnation}/{number} ");
        add_message(payload, &mut self.line);
    }
}

/// Returns the names of groups as a list: `g1,g3`.
pub(super) fn names(places: &Places, destinations: Destinations) -> String {
    let names: Vec<&str> = destinations.iter().map(|group| places.group_name(group)).collect();
    names.join(",")
}

impl ShardApplication for Log {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        if matches!(self.sink, Sink::Nowhere) {
            return 0;
        }
        self.format(message);
        let begun = self.begin();
        match &self.sink {
            Sink::File(file) => {
                if let Err(error) = begun.and_then(|()| file.append(&self.line)) {
                    self.fail(error);
                }
            }
            Sink::Printed(output) => {
                output.put_each([&self.line], |line, bytes| bytes.extend_from_slice(line));
            }
            Sink::Nowhere => {}
        }
        0
    }

    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        let begun = self.begin();
        let Sink::File(file) = &self.sink else { return Box::new(Cursor::new(NO_FILE)) };
        begun.and_then(|()| file.snapshot()).unwrap_or_else(|error| {
            self.fail(io::Error::new(error.kind(), error.to_string()));
            Box::new(Unreadable(Some(error)))
        })
    }

    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let Sink::File(file) = &self.sink else {
            begin_without_file(state)?;
            return io::copy(state, &mut io::sink()).map(|_| ());
        };
        file.restore(state)?;
        self.is_begun = false;
        self.begin()
    }
}

/// The error for a state that cannot be read.
struct Unreadable(Option<io::Error>);

impl Read for Unreadable {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
