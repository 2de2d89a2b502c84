//! `--profile` and `--set`: which machine an experiment simulates.

use clap::Args;

use super::{Machine, Setting, file, unknown};
use crate::error::BenchError;

/// The profile of which nothing says otherwise.
const USUAL: &str = "usual";

/// Which machine is simulated.
#[derive(Args, Clone, Debug, Default)]
pub struct ProfileArguments {
    #[arg(long, value_name = "NAME|FILE", help = help())]
    profile: Option<String>,
    /// Gives a parameter of the simulated machine another value; several are given one after the
    /// other, or with commas between them
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = assignment)]
    set: Vec<(String, u64)>,
}

fn help() -> String {
    let names = file::names().collect::<Vec<_>>().join(", ");
    format!("The simulated machine: {names}, or a file [default: {USUAL}]")
}

impl ProfileArguments {
    /// The machine.
    ///
    /// # Errors
    /// [`BenchError::Arguments`].
    pub fn machine(&self) -> Result<Machine, BenchError> {
        self.machine_or(USUAL)
    }

    /// The same, where an experiment has a machine of its own that stands for it if none is named.
    ///
    /// # Errors
    /// [`BenchError::Arguments`].
    pub fn machine_or(&self, usual: &str) -> Result<Machine, BenchError> {
        let mut machine = file::load(self.profile.as_deref().unwrap_or(usual))?;
        for (name, value) in &self.set {
            let source = "the command line".into();
            // Nothing is known of how sure a guess is.
            let setting = Setting { value: *value, source, uncertainty: None };
            machine.set(name, "--set", setting).map_err(BenchError::Arguments)?;
        }
        Ok(machine)
    }

    /// For real fabrics, to which no option of these means anything.
    ///
    /// # Errors
    /// [`BenchError::Arguments`] if one was given.
    pub(crate) fn refuse(&self) -> Result<(), BenchError> {
        let option = match (&self.profile, self.set.is_empty()) {
            (Some(_), _) => "--profile",
            (None, false) => "--set",
            (None, true) => return Ok(()),
        };
        Err(BenchError::Arguments(format!(
            "{option} is of the simulator: leave it out, or give --fabric sim"
        )))
    }
}

/// `NAME=VALUE`.
fn assignment(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("it is not NAME=VALUE")?;
    let mut machine = Machine::of_defaults(USUAL, "");
    if machine.row(name).is_err() {
        return Err(unknown(name));
    }
    let value = value.parse().map_err(|_| format!("'{value}' is no whole number, 0 or more"))?;
    let setting = Setting { value, source: String::new(), uncertainty: None };
    machine.set(name, "", setting).map(|()| (name.into(), value))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        machine: ProfileArguments,
    }

    fn parsed(arguments: &[&str]) -> Result<ProfileArguments, String> {
        let arguments = ["test"].iter().chain(arguments);
        Program::try_parse_from(arguments)
            .map(|program| program.machine)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_are_set_over_those_of_the_profile_the_last_first() {
        let given = ["--profile", "usual", "--set", "post_ns=5,look_ns=6", "--set", "post_ns=7"];
        let machine = parsed(&given).expect("right").machine().expect("right");
        assert_eq!((machine.profile.post_ns, machine.profile.look_ns), (7, 6));
        let row = machine.row("post_ns").expect("a row");
        assert_eq!((row.set_by.as_str(), row.source.as_str()), ("--set", "the command line"));
    }

    #[test]
    fn nothing_given_is_the_usual_machine_or_the_experiments() {
        let none = ProfileArguments::default();
        assert_eq!(none.machine().expect("right").name, "usual");
        none.refuse().expect("nothing to refuse");
        assert!(none.machine_or("other").is_err(), "there is no profile of that name");
        let named = parsed(&["--profile", "usual"]).expect("right");
        assert_eq!(named.machine_or("other").expect("right").name, "usual");
        let set = parsed(&["--set", "post_ns=1"]).expect("right");
        for (given, option) in [(named, "--profile is"), (set, "--set is")] {
            let told = given.refuse().expect_err("refused").to_string();
            assert!(told.starts_with(option) && told.contains("--fabric sim"), "{told}");
        }
    }

    #[test]
    fn what_sets_nothing_is_refused() {
        for (given, what) in [
            ("post_ns", "not NAME=VALUE"),
            ("post=1", "the nearest is post_ns,"),
            ("post_ns=-1", "'-1' is no whole number"),
            ("post_ns=1.5", "'1.5' is no whole number"),
            ("live_rows=2", "does not take 2"),
        ] {
            let told = parsed(&["--set", given]).expect_err("refused");
            assert!(told.contains(what), "{what}: {told}");
        }
    }
}
