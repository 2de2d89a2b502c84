//! The application of a replica that is started from the command line: a log of what was delivered,
//! a line for each message.
//!
//! ```text
//! PLACE GROUPS CLIENT/INCARNATION/NUMBER TEXT
//! ```

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::mpsc::Sender;

use tramontane_runtime::shards::{Delivered, Destinations, Places, Replica};

use crate::output::Output;

/// Where lines go.
enum Sink {
    File(File),
    Printed(Output),
    Nowhere,
}

/// The application.
pub(super) struct Log {
    places: Places,
    sink: Sink,
    line: Vec<u8>,
    /// Told once a line cannot be written.
    failed: Sender<io::Error>,
}

impl Log {
    /// In a file that is made anew.
    pub(super) fn in_file(
        places: Places,
        path: &Path,
        failed: Sender<io::Error>,
    ) -> io::Result<Self> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Self { places, sink: Sink::File(file), line: Vec::new(), failed })
    }

    /// Printed, if there is an output.
    pub(super) fn printed(
        places: Places,
        output: Option<Output>,
        failed: Sender<io::Error>,
    ) -> Self {
        let sink = output.map_or(Sink::Nowhere, Sink::Printed);
        Self { places, sink, line: Vec::new(), failed }
    }

    /// Formats a message as a line. What would end the line is written as a space.
    fn format(&mut self, message: &Delivered<'_>) {
        let Delivered { place, id, destinations, payload } = message;
        self.line.clear();
        let groups = names(&self.places, *destinations);
        let (client, incarnation, number) = (id.client, id.incarnation, id.number);
        // Writing to a vector cannot fail.
        let _ = write!(self.line, "{place} {groups} {client}/{incarnation}/{number} ");
        let printable = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
        self.line.extend(payload.iter().map(printable));
        self.line.push(b'\n');
    }
}

/// The names of groups, as in a list: `g1,g3`.
pub(super) fn names(places: &Places, destinations: Destinations) -> String {
    let names: Vec<&str> = destinations.iter().map(|group| places.group_name(group)).collect();
    names.join(",")
}

impl Replica for Log {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        if matches!(self.sink, Sink::Nowhere) {
            return 0;
        }
        self.format(message);
        let Self { sink, line, failed, .. } = self;
        match sink {
            Sink::File(file) => {
                if let Err(error) = file.write_all(line) {
                    // The main thread ends this process, and may be at it.
                    let _ = failed.send(error);
                }
            }
            Sink::Printed(output) => {
                output.put_each([&*line], |line, bytes| bytes.extend_from_slice(line));
            }
            Sink::Nowhere => {}
        }
        0
    }

    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        let Sink::File(file) = &mut self.sink else { return Box::new(io::empty()) };
        match copy_of(file) {
            Ok(bytes) => Box::new(io::Cursor::new(bytes)),
            Err(error) => {
                let _ = self.failed.send(io::Error::new(error.kind(), error.to_string()));
                Box::new(Unreadable(Some(error)))
            }
        }
    }

    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        match &mut self.sink {
            Sink::File(file) => {
                file.set_len(0)?;
                file.seek(SeekFrom::Start(0))?;
                io::copy(state, file).map(|_| ())
            }
            Sink::Printed(_) | Sink::Nowhere => io::copy(state, &mut io::sink()).map(|_| ()),
        }
    }
}

/// All bytes of a file, which is written at its end afterwards.
fn copy_of(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A state that cannot be read.
struct Unreadable(Option<io::Error>);

impl Read for Unreadable {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Why a log cannot be made.
pub(super) fn cannot_open(path: &Path, error: &io::Error) -> crate::exit::Failure {
    let what = format_args!("cannot write {}: {error}", path.display());
    crate::exit::Failure::usage(what, "take another --log")
}
