//! Refusal of certain destinations. A copy into its own source would never end, because it would
//! copy what it has just unpacked. Two copies into one directory would disturb each other.

use std::fs;
use std::path::{Path, PathBuf};

use tramontane_local::exit::Failure;

/// Refuses a destination that is one of the copied directories, or inside one.
pub(super) fn refuse(files: &[PathBuf], places: &[PathBuf]) -> Result<(), Failure> {
    for file in files {
        // A link is copied as a link, and a file cannot contain a directory.
        if !fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_dir()) {
            continue;
        }
        let source = whole(file);
        if let Some(place) = places.iter().find(|place| whole(place).starts_with(&source)) {
            let what = format_args!(
                "{} is inside {}, which is being copied",
                place.display(),
                file.display()
            );
            return Err(Failure::usage(what, "copy to a directory outside it"));
        }
    }
    Ok(())
}

/// Refuses a destination that is given twice, even under different names.
pub(super) fn refuse_twice(places: &[PathBuf]) -> Result<(), Failure> {
    for (number, place) in places.iter().enumerate() {
        if let Some(other) = places[..number].iter().find(|other| whole(other) == whole(place)) {
            let what =
                format_args!("{} and {} are the same directory", other.display(), place.display());
            return Err(Failure::usage(what, "give each --to once"));
        }
    }
    Ok(())
}

/// Returns a path without symbolic links. Its last components need not exist yet.
fn whole(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let found = path.ancestors().find_map(|known| {
        let rest = path.strip_prefix(known).ok()?;
        Some(known.canonicalize().ok()?.join(rest))
    });
    found.unwrap_or(path)
}
