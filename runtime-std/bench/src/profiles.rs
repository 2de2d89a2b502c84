//! Profiles: the machines that the simulator models.
//!
//! A profile is a file in `profiles/`. Its `base` names another profile, which provides the values
//! that the file does not set; without a base, the defaults apply. Each value has a source, and an
//! uncertainty factor if it differs from the default's.
//!
//! ```text
//! about = "Sixteen machines with 100 Gbit/s InfiniBand"
//!
//! [parameters]
//! post_ns = { value = 237, source = "Spindle IV-A.2: 64.84 s for 18.2 M puts", uncertainty = 1.2 }
//! ```

use clap::Args;
use serde::Deserialize;
use toml::Table;
use tramontane_fixtures::profile::Profile;

use crate::error::BenchError;

/// The profiles, by name.
const PROFILES: [(&str, &str); 7] = [
    ("spindle", include_str!("../profiles/spindle.toml")),
    ("fractus", include_str!("../profiles/fractus.toml")),
    ("sierra", include_str!("../profiles/sierra.toml")),
    ("stampede", include_str!("../profiles/stampede.toml")),
    ("apt", include_str!("../profiles/apt.toml")),
    ("r320-fdr", include_str!("../profiles/r320-fdr.toml")),
    ("r320-tcp", include_str!("../profiles/r320-tcp.toml")),
];

/// Maximum length of a chain of bases.
const BASES_MAX: usize = 8;

/// The contents of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(rename = "about")]
    _about: String,
    base: Option<String>,
    parameters: Table,
}

/// The parameters set on simulated machines.
#[derive(Args, Clone, Debug, Default)]
pub struct MachineArguments {
    /// Set a parameter of the simulated machines; repeat the option, or separate several with
    /// commas. The files in runtime-std/bench/profiles list the names
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = assignment)]
    set: Vec<(String, u64)>,
}

/// Returns the names of the profiles.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}

impl MachineArguments {
    /// Returns the machine of a profile, with the parameters set.
    ///
    /// # Errors
    /// [`BenchError::Arguments`].
    pub(crate) fn machine(&self, name: &str) -> Result<Profile, BenchError> {
        let mut profile = load(name, 0).map_err(BenchError::Arguments)?;
        for (name, value) in &self.set {
            set(&mut profile, name, *value).map_err(BenchError::Arguments)?;
        }
        Ok(profile)
    }
}

/// Loads a profile that is the base of `depth` others.
fn load(name: &str, depth: usize) -> Result<Profile, String> {
    let found = PROFILES.iter().find(|(other, _)| *other == name).filter(|_| depth < BASES_MAX);
    let (_, text) = found.ok_or_else(|| {
        format!("there is no profile '{name}'; use one of those in runtime-std/bench/profiles")
    })?;
    let wrong = |what: String| format!("profile {name}: {what}");
    let contents: Contents = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let mut profile = match &contents.base {
        None => Profile::default(),
        Some(base) => load(base, depth + 1)?,
    };
    for (parameter, setting) in &contents.parameters {
        let value = setting.get("value").and_then(toml::Value::as_integer);
        let value = value.and_then(|value| u64::try_from(value).ok());
        let value = value.ok_or_else(|| {
            wrong(format!("parameter {parameter} has no value; give it a whole number, 0 or more"))
        })?;
        set(&mut profile, parameter, value).map_err(wrong)?;
    }
    Ok(profile)
}

fn set(profile: &mut Profile, name: &str, value: u64) -> Result<(), String> {
    profile.set(name, value).map_err(|error| format!("{name}={value}: {error}"))
}

/// Parses `NAME=VALUE`.
fn assignment(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("the assignment is not NAME=VALUE")?;
    let value = value
        .parse()
        .map_err(|_| format!("'{value}' is not a whole number; give a number that is 0 or more"))?;
    set(&mut Profile::default(), name, value).map(|()| (name.into(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_loads_with_its_sources() {
        for (name, text) in PROFILES {
            load(name, 0).unwrap_or_else(|error| panic!("{name}: {error}"));
            let Contents { parameters, _about, .. } = toml::from_str(text).expect("read before");
            assert!(!_about.is_empty(), "{name}");
            for (parameter, setting) in parameters {
                let setting = setting.as_table().expect("a table");
                let source = setting.get("source").and_then(toml::Value::as_str);
                assert!(source.is_some_and(|text| !text.trim().is_empty()), "{parameter}");
                let factor = setting.get("uncertainty").map(|factor| factor.as_float());
                assert!(factor.is_none_or(|factor| factor >= Some(1.0)), "{parameter}");
                assert!(setting.len() == 2 + usize::from(factor.is_some()), "{parameter}");
            }
        }
    }

    #[test]
    fn profiles_inherit_from_their_base() {
        let of = |name| load(name, 0).expect("it is there");
        let (spindle, sierra) = (of("spindle"), of("sierra"));
        assert_eq!((spindle.port_bytes_per_us, sierra.port_bytes_per_us), (12_500, 4_000));
        assert_eq!(of("r320-tcp").port_bytes_per_us, of("r320-fdr").port_bytes_per_us);
        assert!(load("spindle", BASES_MAX).is_err(), "bases end");
    }

    #[test]
    fn last_assignment_of_a_parameter_applies() {
        let set = ["post_ns=5", "post_ns=7"].map(|text| assignment(text).expect("right"));
        let machine = MachineArguments { set: set.into() }.machine("spindle").expect("it is there");
        assert_eq!(machine.post_ns, 7);
    }

    #[test]
    fn invalid_parameter_assignments_are_refused() {
        for (given, what) in [
            ("post_ns", "not NAME=VALUE"),
            ("post=1", "no parameter of that name"),
            ("post_ns=-1", "'-1' is not a whole number"),
            ("post_ns=1.5", "'1.5' is not a whole number"),
            ("live_rows=2", "does not take this value"),
        ] {
            let told = assignment(given).expect_err("refused");
            assert!(told.contains(what), "{what}: {told}");
        }
    }
}
