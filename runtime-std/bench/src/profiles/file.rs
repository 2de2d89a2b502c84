//! The format of a profile, and the profiles that this program brings.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::{Machine, nearest};
use crate::error::BenchError;

/// The profiles that this program brings, by name.
const PROFILES: &[(&str, &str)] = &[
    ("usual", include_str!("../../profiles/usual.toml")),
    ("spindle", include_str!("../../profiles/spindle.toml")),
    ("spindle-core", include_str!("../../profiles/spindle-core.toml")),
    ("fractus", include_str!("../../profiles/fractus.toml")),
    ("sierra", include_str!("../../profiles/sierra.toml")),
    ("stampede", include_str!("../../profiles/stampede.toml")),
    ("r320-fdr", include_str!("../../profiles/r320-fdr.toml")),
    ("r320-tcp", include_str!("../../profiles/r320-tcp.toml")),
    ("apt", include_str!("../../profiles/apt.toml")),
];

/// The longest chain of profiles of which one is the next one's base.
const BASES_MAX: usize = 8;

/// A parameter's value, and what is known of it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    pub(crate) value: u64,
    /// Where the value comes from.
    pub(crate) source: String,
    /// The true value is between the value divided by this and the value times this. Without it,
    /// that of the parameter's default.
    pub(crate) uncertainty: Option<f64>,
}

/// What a file says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    about: String,
    base: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<Spanned<String>, Setting>,
}

/// The names of the profiles that this program brings.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}

/// The machine of a profile that this program brings, or of a file: what looks like a path is one.
///
/// # Errors
/// [`BenchError::Arguments`].
pub(super) fn load(name: &str) -> Result<Machine, BenchError> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return brought(name, 0);
    }
    let text = std::fs::read_to_string(Path::new(name)).map_err(|error| {
        BenchError::Arguments(format!("cannot read the profile {name}: {error}"))
    })?;
    parse(name, &text, 0)
}

fn brought(name: &str, depth: usize) -> Result<Machine, BenchError> {
    match PROFILES.iter().find(|(other, _)| *other == name) {
        Some((name, text)) => parse(name, text, depth),
        None => Err(BenchError::Arguments(unknown(name))),
    }
}

/// That there is no such profile, and which one may be meant.
fn unknown(name: &str) -> String {
    let all = names().collect::<Vec<_>>().join(", ");
    let nearest = nearest(name, names())
        .map_or_else(String::new, |nearest| format!("the nearest is {nearest}; "));
    format!(
        "there is no profile '{name}': {nearest}there are {all}, and files: ./{name} or NAME.toml"
    )
}

/// Makes sense of a profile's text, behind so many profiles whose base is the next.
fn parse(name: &str, text: &str, depth: usize) -> Result<Machine, BenchError> {
    let wrong = |at: usize, what: &str| {
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        BenchError::Arguments(format!("profile {name}, line {line}: {what}"))
    };
    let contents: Contents = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        wrong(at, &error.message().trim_end().replace('\n', " "))
    })?;
    let mut machine = match &contents.base {
        None => Machine::of_defaults(name, &contents.about),
        Some(base) if depth >= BASES_MAX => {
            return Err(wrong(0, &format!("'{base}' is one base too many")));
        }
        Some(base) => brought(base, depth + 1)?,
    };
    machine.name = name.into();
    machine.about = in_one_line(&contents.about);
    for (parameter, mut setting) in contents.parameters {
        setting.source = in_one_line(&setting.source);
        let (at, parameter) = (parameter.span().start, parameter.into_inner());
        machine.set(&parameter, name, setting).map_err(|what| wrong(at, &what))?;
    }
    Ok(machine)
}

/// A text that may be broken into lines in its file.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        parse("some", text, 0).expect_err("refused").to_string()
    }

    #[test]
    fn every_profile_that_is_brought_can_be_loaded() {
        for name in names() {
            let machine = load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(machine.name, name);
            assert!(!machine.about.is_empty(), "{name}");
            for row in &machine.rows {
                assert!(!row.source.contains("  "), "{name}: {}", row.name);
                assert_eq!(machine.profile.get(row.name), Some(row.value), "{name}: {}", row.name);
                assert!(!row.source.is_empty(), "{name}: {}", row.name);
            }
        }
    }

    #[test]
    fn a_profile_sets_what_it_says_and_takes_the_rest_from_its_base() {
        let text = "about = \"a\"\nbase = \"usual\"\n[parameters]\n\
                    post_ns = { value = 237, source = \"b\", uncertainty = 1.25 }\n\
                    look_ns = { value = 3, source = \"c\" }\n";
        let machine = parse("some", text, 0).expect("right");
        let usual = load("usual").expect("right");
        assert_eq!((machine.name.as_str(), machine.about.as_str()), ("some", "a"));
        assert_eq!((machine.profile.post_ns, machine.profile.look_ns), (237, 3));
        let differs = |name| machine.row(name) != usual.row(name);
        let changed = machine.rows.iter().filter(|row| differs(row.name)).map(|row| row.name);
        assert_eq!(changed.collect::<Vec<_>>(), ["post_ns", "look_ns"]);
        let row = machine.row("post_ns").expect("a row");
        assert_eq!(
            (row.uncertainty, row.set_by.as_str(), row.source.as_str()),
            (1.25, "some", "b")
        );
    }

    #[test]
    fn what_is_wrong_is_told_in_one_line_with_its_place() {
        let about = "about = \"a\"\n[parameters]\n";
        for (text, what) in [
            ("base = \"usual\"\n", "`about`"),
            ("about = \"a\"\nbasis = \"usual\"\n", "line 2: unknown field `basis`"),
            ("about = \"a\"\nbase = \"usuall\"\n", "the nearest is usual"),
            (&format!("{about}look_ns = 3\n"), "line 3: invalid type: integer `3`"),
            (&format!("{about}look_ns = {{ value = 3 }}\n"), "line 3: missing field `source`"),
            (
                &format!("{about}look_ns = {{ value = -3, source = \"b\" }}\n"),
                "line 3: invalid value: integer `-3`",
            ),
            (
                &format!("{about}\n\nlooks_ns = {{ value = 3, source = \"b\" }}\n"),
                "line 5: there is no parameter 'looks_ns': the nearest is look_ns,",
            ),
            (
                &format!("{about}look_ns = {{ value = 3, source = \"b\", uncertainty = 0.5 }}\n"),
                "line 3: the uncertainty of look_ns",
            ),
        ] {
            let told = told(text);
            assert!(told.contains(what), "{what}: {told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }

    #[test]
    fn bases_end() {
        let text = "about = \"a\"\nbase = \"usual\"\n";
        parse("some", text, BASES_MAX - 1).expect("one more");
        let told = parse("some", text, BASES_MAX).expect_err("too many").to_string();
        assert!(told.contains("one base too many"), "{told}");
    }

    #[test]
    fn names_are_profiles_and_paths_are_files() {
        let told = load("usuale").expect_err("no such profile").to_string();
        assert!(told.contains("'usuale': the nearest is usual;"), "{told}");
        let told = load("no/usual").expect_err("no such file").to_string();
        assert!(told.starts_with("cannot read the profile no/usual: "), "{told}");
        let told = load("usual.toml").expect_err("no such file").to_string();
        assert!(told.starts_with("cannot read the profile usual.toml: "), "{told}");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("own.toml");
        let path = path.to_str().expect("UTF-8");
        std::fs::write(path, "about = \"own\"").expect("written");
        assert_eq!(load(path).expect("right").about, "own");
    }

    #[test]
    fn source_of_several_lines_becomes_one_line() {
        let text = "about = \"a\"\nbase = \"usual\"\n[parameters]\n\
                    post_ns = { value = 237, source = \"\"\"\nline\n  line \"c\"\"\"\" }\n";
        let machine = parse("some", text, 0).expect("right");
        assert_eq!(machine.row("post_ns").expect("a row").source, "line line \"c\"");
    }
}
