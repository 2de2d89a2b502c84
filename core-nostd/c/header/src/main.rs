//! Writes `include/tramontane.h` from the library's sources. With `--check` it writes nothing, and
//! fails if the header differs.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let header = folder.join("include/tramontane.h");
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml"));
    let mut builder = cbindgen::Builder::new();
    match config {
        Ok(config) => builder = builder.with_config(config),
        Err(error) => return failed(&error),
    }
    // The library's modules are found from here.
    builder = builder.with_src(folder.join("library/src/lib.rs"));
    let mut text = Vec::new();
    match builder.generate() {
        Ok(bindings) => bindings.write(&mut text),
        Err(error) => return failed(&error.to_string()),
    }
    if std::env::args().any(|word| word == "--check") {
        return match std::fs::read(&header) {
            Ok(present) if present == text => ExitCode::SUCCESS,
            _ => {
                failed("include/tramontane.h is out of date; run this without --check to write it")
            }
        };
    }
    match std::fs::write(&header, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}
