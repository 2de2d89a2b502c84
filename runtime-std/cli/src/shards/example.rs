//! Overlay files that explain every field: the three trees of the paper, for eight groups of three
//! replicas.

use tramontane_local::exit::Failure;
use tramontane_local::shard_trees::Tree;

/// The beginning of an overlay file, which precedes the groups.
const HEAD: &str = include_str!("example.toml");

/// Number of replicas per group.
const REPLICAS: u16 = 3;

/// Returns the overlay file of a tree.
fn file(tree: Tree) -> String {
    use std::fmt::Write as _;
    let mut text = HEAD.to_owned();
    for (index, parent) in tree.parents().into_iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "[[groups]]\nname = \"g{}\"\n", index + 1);
        if let Some(parent) = parent {
            let _ = writeln!(text, "parent = \"g{}\"", parent + 1);
        }
        let _ = write!(text, "replicas = {REPLICAS}\n\n");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Prints it.
pub(super) fn print(tree: Tree) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut output = std::io::stdout().lock();
    let written = output.write_all(file(tree).as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| Failure::output(&error))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use tramontane_runtime::shards::Description;

    #[test]
    fn example_overlay_files_match_the_defaults() {
        for tree in [Tree::Base, Tree::Breadth, Tree::Depth] {
            let text = file(tree);
            let parsed = Description::parse(Path::new("overlay.toml"), &text).expect("right");
            assert_eq!(parsed, Description::local("shards", &tree.parents(), REPLICAS));
        }
    }
}
