//! The destinations of reports: files, folders and standard output.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::exit::{Failure, Status};
use super::standard::{check_written, is_standard};
use crate::report::{self, CaseStatus, Run};

/// The options for reports, shared by all commands.
#[derive(clap::Args, Debug)]
pub(super) struct ReportOptions {
    /// Write all results as JSON ("-" is standard output, as for the next two options)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write one HTML page, with diagrams of broken promises
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also let a program judge each history: it is started with the history's path, and writes a
    /// line for each violation, {"what": "a sentence", "lines": [12, 40]}
    #[arg(long = "check-program", value_name = "CMD")]
    check_programs: Vec<String>,
    /// Print only errors; the exit status gives the result
    #[arg(short, long)]
    quiet: bool,
}

/// A report's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Junit,
    Html,
}

impl Form {
    /// Returns the file's name in a report folder.
    const fn file_name(self) -> &'static str {
        match self {
            Self::Json => "results.json",
            Self::Junit => "junit.xml",
            Self::Html => "report.html",
        }
    }

    fn render(self, run: &Run) -> Result<String, Failure> {
        match self {
            Self::Json => Ok(report::json(run)),
            Self::Html => Ok(report::html(run)),
            Self::Junit => report::junit(run).map_err(|error| {
                Failure::new(
                    Status::Broken,
                    format_args!("cannot create the JUnit report: {error}"),
                    "please report this",
                )
            }),
        }
    }
}

/// The reports to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outputs {
    files: Vec<(Form, PathBuf)>,
    /// Whether standard output receives the report for people.
    text: bool,
    /// Whether only errors are printed.
    pub(super) quiet: bool,
}

impl ReportOptions {
    /// Runs the user's own check programs on the histories.
    pub(super) fn judge(&self, run: &mut Run) -> Result<(), Failure> {
        crate::program::judge(run, &self.check_programs).map_err(|error| {
            let what = format_args!("the check program's command cannot be parsed: {error}");
            Failure::new(Status::Usage, what, "quote it as in a shell")
        })
    }

    /// Returns the reports to write and their paths; `folder` receives the reports for which no
    /// file was named.
    pub(super) fn outputs(&self, folder: Option<&Path>) -> Result<Outputs, Failure> {
        let wanted =
            [(Form::Json, &self.json), (Form::Junit, &self.junit), (Form::Html, &self.html)];
        let file = |(form, named): (Form, &Option<PathBuf>)| {
            let path = named.clone().or_else(|| folder.map(|folder| folder.join(form.file_name())));
            path.map(|path| (form, path))
        };
        let files: Vec<(Form, PathBuf)> = wanted.into_iter().filter_map(file).collect();
        for (index, (_, path)) in files.iter().enumerate() {
            if files[..index].iter().any(|(_, other)| other == path) {
                let what = format_args!("two reports would be written to {}", path.display());
                return Err(Failure::new(Status::Usage, what, "name a different file for each"));
            }
        }
        // Producing the histories may take a long time, so a wrong path is reported before that.
        if folder.is_some() {
            self.named().try_for_each(can_be_made)?;
        }
        let text = !self.quiet && !files.iter().any(|(_, path)| is_standard(path));
        Ok(Outputs { files, text, quiet: self.quiet })
    }
}

impl ReportOptions {
    /// Iterates over the files that were named.
    fn named(&self) -> impl Iterator<Item = &Path> {
        [&self.json, &self.junit, &self.html].into_iter().flatten().map(PathBuf::as_path)
    }
}

/// Fails if the file's folder does not exist, or if the path is a folder.
fn can_be_made(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let wrong = if path.is_dir() {
        io::ErrorKind::IsADirectory
    } else if folder.is_some_and(|folder| !folder.is_dir()) {
        io::ErrorKind::NotFound
    } else {
        return Ok(());
    };
    Err(Failure::output(path.display(), &wrong.into()))
}

impl Outputs {
    /// Writes all reports, beginning with files, so that the files are complete even if the reader
    /// of standard output stops early. Returns the failures.
    pub(super) fn write(&self, run: &Run) -> Vec<Failure> {
        let files = self.files.iter().map(|(form, path)| write_file(*form, path, run));
        let mut failures: Vec<Failure> = files.filter_map(Result::err).collect();
        // If no history could be judged, the errors are enough. A driven run is reported even then,
        // because the reader needs to know which member failed in which scenario.
        let is_told = run.adapter.is_some()
            || run.cases.iter().any(|case| !matches!(case.status, CaseStatus::Broken(_)));
        if self.text && is_told {
            failures.extend(check_written(self.write_text(run), "the report").err());
        }
        failures
    }

    fn write_text(&self, run: &Run) -> io::Result<()> {
        // This stream strips styles if the output is not a terminal or NO_COLOR is set.
        let mut out = anstream::AutoStream::auto(io::stdout().lock());
        report::text(run, &mut out)?;
        let paths =
            self.files.iter().map(|(_, path)| report::printable(&path.to_string_lossy(), 400));
        let paths: Vec<String> = paths.collect();
        if !paths.is_empty() {
            writeln!(out, "written: {}", paths.join(", "))?;
        }
        out.flush()
    }
}

fn write_file(form: Form, path: &Path, run: &Run) -> Result<(), Failure> {
    let text = form.render(run)?;
    if is_standard(path) {
        let mut out = io::stdout().lock();
        return check_written(
            out.write_all(text.as_bytes()).and_then(|()| out.flush()),
            "the report",
        );
    }
    let written = File::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::output(path.display(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: Option<&str>, html: Option<&str>) -> ReportOptions {
        let path = |text: Option<&str>| text.map(PathBuf::from);
        let check_programs = Vec::new();
        ReportOptions {
            json: path(json),
            junit: None,
            html: path(html),
            check_programs,
            quiet: false,
        }
    }

    #[test]
    fn report_without_a_path_goes_to_output_folder() {
        let outputs = options(None, Some("x.html")).outputs(Some(Path::new("out"))).expect("fine");
        let names: Vec<&str> = outputs.files.iter().filter_map(|(_, path)| path.to_str()).collect();
        assert_eq!(names, ["out/results.json", "out/junit.xml", "x.html"]);
        assert!(outputs.text);
        assert!(options(None, None).outputs(None).expect("fine").files.is_empty());
    }

    #[test]
    fn standard_output_accepts_only_one_report() {
        assert!(!options(Some("-"), None).outputs(None).expect("fine").text);
        let failure = options(Some("-"), Some("-")).outputs(None).expect_err("two reports in one");
        assert_eq!(failure.status, Status::Usage);
    }
}
