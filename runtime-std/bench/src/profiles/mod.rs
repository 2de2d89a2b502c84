//! Profiles: what machine the simulator stands for, each parameter with its value, source and
//! uncertainty.
//!
//! A profile is a file. `base` is the name of another profile, from which it takes what it does
//! not set itself; without one it takes the defaults of [`PARAMETERS`].
//!
//! ```text
//! about = "Sixteen machines with 100 Gbit/s InfiniBand"
//! base = "usual"
//!
//! [parameters]
//! post_ns = { value = 237, source = "Spindle IV-A.2: 64.84 s for 18.2 M puts", uncertainty = 1.2 }
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `arguments` | `--profile` and `--set`, for every simulated experiment |
//! | `file` | the format, and the profiles that this program brings |
//! | `report` | what `bench parameters` prints |
//!
//! Every value has a source: a profile's own values say theirs, and one that is set on the command
//! line says so.

mod arguments;
mod file;
mod report;

use serde::Serialize;
use tramontane_fixtures::profile::{PARAMETERS, Parameter, Profile};

pub use arguments::ProfileArguments;
pub(crate) use file::Setting;
pub(crate) use report::ParametersReport;

/// A machine to simulate.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The profile's name, or its file.
    pub name: String,
    /// What it stands for.
    pub about: String,
    /// The hardware.
    pub profile: Profile,
    /// What is known of each parameter, in the order of [`PARAMETERS`].
    pub rows: Vec<Row>,
}

/// A parameter of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// The unit of the value.
    pub unit: &'static str,
    /// The true value is between the value divided by this and the value times this.
    pub uncertainty: f64,
    /// Who set it: a profile, by its name; `default`; or `--set`.
    pub set_by: String,
    /// Where the value comes from.
    pub source: String,
    /// What the parameter stands for.
    pub about: &'static str,
}

impl Machine {
    /// A machine of which nothing is known but the defaults.
    pub(crate) fn of_defaults(name: &str, about: &str) -> Self {
        let profile = Profile::default();
        let row = |parameter: &Parameter| Row {
            name: parameter.name,
            value: profile.get(parameter.name).unwrap_or_default(),
            unit: parameter.unit,
            uncertainty: parameter.uncertainty,
            set_by: "default".into(),
            source: parameter.source.into(),
            about: parameter.about.trim(),
        };
        let rows = PARAMETERS.iter().map(row).collect();
        Self { name: name.into(), about: about.into(), profile, rows }
    }

    /// What is known of a parameter.
    ///
    /// # Errors
    /// The text says which name is nearest.
    pub fn row(&self, name: &str) -> Result<&Row, String> {
        self.rows.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))
    }

    /// Gives a parameter another value.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub(crate) fn set(&mut self, name: &str, by: &str, setting: Setting) -> Result<(), String> {
        let Setting { value, source, uncertainty } = setting;
        if uncertainty.is_some_and(|uncertainty| !(1.0..f64::INFINITY).contains(&uncertainty)) {
            return Err(format!("the uncertainty of {name} is a factor, 1 or more"));
        }
        let row = self.rows.iter_mut().find(|row| row.name == name);
        let row = row.ok_or_else(|| unknown(name))?;
        self.profile
            .set(name, value)
            .map_err(|_| format!("{name} does not take {value}: it is in {}", row.unit))?;
        row.value = value;
        row.source = source;
        row.uncertainty = uncertainty.unwrap_or(row.uncertainty);
        row.set_by = by.into();
        Ok(())
    }
}

/// That there is no such parameter, and which one may be meant.
fn unknown(name: &str) -> String {
    let names = PARAMETERS.iter().map(|parameter| parameter.name);
    let beside = nearest(name, names).map_or_else(
        || "'bench parameters' lists all".into(),
        |nearest| format!("the nearest is {nearest}, and 'bench parameters' lists all"),
    );
    format!("there is no parameter '{name}': {beside}")
}

/// Which of the names someone may have meant.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let likeness = |other: &&str| strsim::jaro_winkler(name, other);
    let best = names.max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    // As clap does for names of options.
    (likeness(&best) > 0.7).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_defaults_has_each_parameter_once() {
        let machine = Machine::of_defaults("none", "");
        assert_eq!(machine.rows.len(), PARAMETERS.len());
        for (row, parameter) in machine.rows.iter().zip(PARAMETERS) {
            assert_eq!(
                (row.name, Some(row.value)),
                (parameter.name, Profile::default().get(parameter.name))
            );
            assert_eq!((row.uncertainty, row.set_by.as_str()), (parameter.uncertainty, "default"));
        }
        assert_eq!(machine.profile, Profile::default());
    }

    #[test]
    fn what_is_set_is_in_the_profile_and_in_the_row() {
        let mut machine = Machine::of_defaults("some", "");
        let setting = |value, uncertainty| Setting { value, source: "a clock".into(), uncertainty };
        machine.set("post_ns", "some", setting(237, None)).expect("set");
        let row = machine.row("post_ns").expect("a row");
        assert_eq!((machine.profile.post_ns, row.value), (237, 237));
        assert_eq!((row.source.as_str(), row.set_by.as_str()), ("a clock", "some"));
        assert_eq!(row.uncertainty, 4.0, "the table's");
        machine.set("post_ns", "some", setting(237, Some(1.2))).expect("set");
        assert_eq!(machine.row("post_ns").expect("a row").uncertainty, 1.2);
        for wrong in [0.5, f64::NAN, f64::INFINITY] {
            let refused = machine.set("post_ns", "some", setting(1, Some(wrong)));
            assert!(refused.expect_err("refused").contains("1 or more"));
        }
        assert_eq!(machine.profile.post_ns, 237, "what is refused changes nothing");
    }

    #[test]
    fn wrong_names_and_values_are_told_with_what_is_right() {
        let mut machine = Machine::of_defaults("some", "");
        let setting = || Setting { value: 7, source: String::new(), uncertainty: None };
        let told = machine.set("post_nss", "some", setting()).expect_err("unknown");
        assert!(told.contains("post_nss") && told.contains("nearest is post_ns,"), "{told}");
        let told = machine.set("qqq", "some", setting()).expect_err("unknown");
        assert!(!told.contains("nearest") && told.contains("bench parameters"), "{told}");
        let told = machine.set("live_rows", "some", setting()).expect_err("0 or 1");
        assert!(told.contains("does not take 7") && told.contains("0 or 1"), "{told}");
    }
}
