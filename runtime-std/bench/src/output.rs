//! The targets of results. They are checked before anything is measured, because a bench may run
//! for an hour.

use std::path::{Path, PathBuf};

/// Parses a file to be written; its folder must exist.
pub(crate) fn file(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    if path.is_dir() {
        return Err("this is a folder; name a file in it".to_owned());
    }
    match path.parent().filter(|folder| *folder != Path::new("")) {
        Some(parent) if !parent.is_dir() => Err(missing(parent)),
        _ => Ok(path),
    }
}

/// Parses a folder for files to be written.
pub(crate) fn folder(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    if path.is_dir() { Ok(path) } else { Err(missing(&path)) }
}

fn missing(folder: &Path) -> String {
    format!("there is no folder {}; create it first", folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_output_folder_is_reported_before_the_run() {
        let folder_there = tempfile::tempdir().expect("a folder");
        let there = folder_there.path().to_str().expect("text");
        assert_eq!(folder(there), Ok(PathBuf::from(there)));
        assert_eq!(file("new.svg"), Ok(PathBuf::from("new.svg")), "in the current folder");
        assert!(file(&format!("{there}/new.svg")).is_ok());
        assert!(file(there).is_err_and(|why| why.contains("this is a folder")));
        let absent = format!("{there}/absent");
        for refused in [folder(&absent), file(&format!("{absent}/new.svg"))] {
            let why = refused.expect_err("it is not there");
            assert_eq!(why, format!("there is no folder {absent}; create it first"));
        }
    }
}
