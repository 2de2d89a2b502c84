//! Overlay files that explain every field: the three trees of the paper, for eight groups of three.

use clap::ValueEnum;

use crate::exit::Failure;

/// Everything but the groups.
const HEAD: &str = include_str!("example.toml");

/// Replicas of each group.
const REPLICAS: u16 = 3;

/// The trees of TRAM, section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tree {
    /// Each group has up to two children
    Base,
    /// All groups are children of the first
    Breadth,
    /// Each group is the child of the one before
    Depth,
}

impl Tree {
    /// The parent of each of eight groups, by index.
    pub(crate) const fn parents(self) -> [Option<usize>; 8] {
        match self {
            Self::Base => [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), Some(3)],
            Self::Breadth => [None, Some(0), Some(0), Some(0), Some(0), Some(0), Some(0), Some(0)],
            Self::Depth => [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)],
        }
    }
}

/// The file of a tree.
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
    fn the_examples_are_what_a_program_gets_by_default() {
        for tree in [Tree::Base, Tree::Breadth, Tree::Depth] {
            let text = file(tree);
            let parsed = Description::parse(Path::new("overlay.toml"), &text).expect("right");
            assert_eq!(parsed, Description::local("shards", &tree.parents(), REPLICAS));
        }
    }
}
