//! Queries, with which a row of the papers' claims computes figures from runs.
//!
//! A query is arithmetic on figures of runs. `gb_per_s(batching, nodes=few, window=5)` is a figure
//! of a named case with different values for some of its fields. A field with several values, given
//! as a list or by the name of a list, makes a series. Operators work element by element; a single
//! number is combined with each element. A comparison is 1 or 0.
//! `send_batches(batching, up_to=[1, 2, 4])` is the percentage of batches with at most that many
//! messages, and `latencies_ms(storage, up_to=10)` that of writes within 10 ms.
//!
//! | function | result |
//! |---|---|
//! | `mean`, `median`, `max`, `min`, `head`, `last` | one number |
//! | `place` | the field value at which the maximum occurs |
//! | `first` | the first field value at which the number is not 0 |
//! | `all`, `any` | 1 or 0 |
//! | `falls`, `rises` | 1 or 0: each step goes less than a hundredth in the other direction, and the whole series more than a twentieth in the named one |
//! | `stays(s, 0.1)` | 1 or 0: the minimum is at least nine tenths of the maximum |
//! | `most`, `least` | the maximum or minimum of several series, element by element |
//! | `abs` | element by element |
//! | `parameter(machine, name)` | a parameter of a machine |
//! | `steps(members, blocks)`, `slack(members, blocks)` | properties of the pipeline's schedule, without a run |
//!
//! `$1` is the first of the row's `values`.

use toml::{Table, Value as Field};

use super::case::Case;
use super::machines::Machines;
use super::number::listed;
use super::runs::Runs;
use super::schedule;
use crate::error::BenchError;
use crate::spread::median;

/// The context in which a query is answered.
#[derive(Clone, Copy)]
pub(super) struct QueryContext<'q> {
    pub(super) runs: &'q Runs<'q>,
    pub(super) machines: &'q Machines,
    /// Cases by name.
    pub(super) cases: &'q Table,
    /// Values of fields by name.
    pub(super) lists: &'q Table,
    /// Whether our own core takes the place of the model in every case.
    pub(super) is_core: bool,
}

/// One or more numbers, each with its position in the series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) numbers: Vec<f64>,
    /// The positions in the series; empty for a single number.
    pub(super) places: Vec<String>,
}

impl Series {
    fn one(number: f64) -> Self {
        Self { numbers: vec![number], places: Vec::new() }
    }

    fn truth(is_so: bool) -> Self {
        Self::one(f64::from(u8::from(is_so)))
    }

    /// Returns the number, if there is exactly one.
    pub(super) fn number(&self) -> Result<f64, String> {
        match self.numbers[..] {
            [number] => Ok(number),
            _ => Err(format!("{} is not a single number", self.words())),
        }
    }

    /// Formats the series as in `2: 9.87, 4: 9.71`, or as a single number.
    pub(super) fn words(&self) -> String {
        listed(&self.places, &self.numbers)
    }

    fn fold(&self, start: f64, with: fn(f64, f64) -> f64) -> f64 {
        self.numbers.iter().copied().fold(start, with)
    }

    fn with(self, other: Self, with: impl Fn(f64, f64) -> f64) -> Result<Self, String> {
        let both = |numbers: Vec<f64>, places| Self { numbers, places };
        match (&self.numbers[..], &other.numbers[..]) {
            (left, right) if left.len() == right.len() => {
                let numbers = left.iter().zip(right).map(|(left, right)| with(*left, *right));
                let places = if self.places.is_empty() { other.places } else { self.places };
                Ok(both(numbers.collect(), places))
            }
            ([left], right) => {
                Ok(both(right.iter().map(|right| with(*left, *right)).collect(), other.places))
            }
            (left, [right]) => {
                Ok(both(left.iter().map(|left| with(*left, *right)).collect(), self.places))
            }
            (left, right) => Err(format!(
                "a series of {} values cannot be combined with one of {}",
                left.len(),
                right.len()
            )),
        }
    }

    fn is_each_step(&self, holds: impl Fn(f64, f64) -> bool) -> bool {
        self.numbers.windows(2).all(|pair| holds(pair[0], pair[1]))
    }

    fn ends(&self) -> (f64, f64) {
        let end = |number: Option<&f64>| number.copied().unwrap_or(f64::NAN);
        (end(self.numbers.first()), end(self.numbers.last()))
    }

    /// Returns whether each number is less than the previous one. An increase of up to a hundredth
    /// counts as no change.
    fn falls(&self) -> bool {
        let (first, last) = self.ends();
        self.is_each_step(|one, next| next <= one * 1.01) && last < first * 0.95
    }

    /// Returns whether each number is greater than the previous one, with the same tolerance.
    fn rises(&self) -> bool {
        let (first, last) = self.ends();
        self.is_each_step(|one, next| next >= one * 0.99) && last > first * 1.05
    }

    /// Returns whether the minimum is at least the maximum reduced by the share `within`.
    fn stays(&self, within: f64) -> bool {
        self.fold(f64::INFINITY, f64::min) >= self.fold(0.0, f64::max) * (1.0 - within)
    }
}

/// Answers a query. `values` are those of the row.
///
/// # Errors
/// Fails with [`BenchError::Arguments`] if the query is not valid, or with the error of a run.
pub(super) fn answer(
    query: &str,
    asked: &QueryContext<'_>,
    values: &[Series],
) -> Result<Series, BenchError> {
    let mut reader = Reader { rest: query, asked, values };
    let series = reader.both()?;
    if reader.rest.trim().is_empty() { Ok(series) } else { Err(reader.wrong("operator")) }
}

/// Reads a query from left to right, evaluating it on the way.
struct Reader<'q> {
    rest: &'q str,
    asked: &'q QueryContext<'q>,
    values: &'q [Series],
}

type QueryAnswer = Result<Series, BenchError>;

impl<'q> Reader<'q> {
    fn wrong(&self, wanted: &str) -> BenchError {
        BenchError::Arguments(format!(
            "there is no {wanted} at '{}' in the query",
            self.rest.trim()
        ))
    }

    /// Takes a symbol or a word, if it is next.
    fn take(&mut self, sign: &str) -> bool {
        let taken = self.rest.trim_start().strip_prefix(sign);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    fn need(&mut self, sign: &str) -> Result<(), BenchError> {
        if self.take(sign) { Ok(()) } else { Err(self.wrong(sign)) }
    }

    /// Takes the characters that match.
    fn span(&mut self, is_part: impl Fn(char) -> bool) -> &'q str {
        let rest = self.rest.trim_start();
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    fn name(&mut self) -> &'q str {
        self.span(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    }

    fn both(&mut self) -> QueryAnswer {
        let mut left = self.compared()?;
        while self.take("and ") {
            let right = self.compared()?;
            left = zip(left, right, f64::min)?;
        }
        Ok(left)
    }

    fn compared(&mut self) -> QueryAnswer {
        let left = self.sum()?;
        type Comparison = fn(f64, f64) -> bool;
        let comparisons: [(&str, Comparison); 4] = [
            ("<=", |left, right| left <= right),
            (">=", |left, right| left >= right),
            ("<", |left, right| left < right),
            (">", |left, right| left > right),
        ];
        for (sign, holds) in comparisons {
            if self.take(sign) {
                let right = self.sum()?;
                return zip(left, right, |one, other| f64::from(u8::from(holds(one, other))));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> QueryAnswer {
        let mut left = self.product()?;
        loop {
            if self.take("+") {
                left = zip(left, self.product()?, |one, other| one + other)?;
            } else if self.take("-") {
                left = zip(left, self.product()?, |one, other| one - other)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> QueryAnswer {
        let mut left = self.single()?;
        loop {
            if self.take("*") {
                left = zip(left, self.single()?, |one, other| one * other)?;
            } else if self.take("/") {
                left = zip(left, self.single()?, |one, other| one / other)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn single(&mut self) -> QueryAnswer {
        if self.take("(") {
            let inner = self.both()?;
            self.need(")")?;
            return Ok(inner);
        }
        if self.take("$") {
            let number: usize = self.name().parse().map_err(|_| self.wrong("number of a value"))?;
            let value = number.checked_sub(1).and_then(|place| self.values.get(place));
            return value.cloned().ok_or_else(|| self.wrong(&format!("value {number}")));
        }
        if self.rest.trim_start().starts_with('[') {
            let fields = self.fields()?;
            let numbers = fields.iter().map(|field| field.as_integer().map(|whole| whole as f64));
            let numbers = numbers.collect::<Option<_>>().ok_or_else(|| self.wrong("numbers"))?;
            return Ok(Series { numbers, places: fields.iter().map(place).collect() });
        }
        if self.rest.trim_start().starts_with(|letter: char| letter.is_ascii_digit()) {
            let digits = self.span(|letter| letter.is_ascii_digit() || ".e".contains(letter));
            return digits.parse().map(Series::one).map_err(|_| self.wrong("number"));
        }
        let name = self.name();
        self.need("(")?;
        let answered = self.called(name)?;
        self.need(")")?;
        Ok(answered)
    }

    fn called(&mut self, name: &str) -> QueryAnswer {
        match name {
            "parameter" => {
                let machine = self.name();
                self.need(",")?;
                let parameter = self.name();
                let value = self.asked.machines.named(machine)?.get(parameter);
                let value = value.ok_or_else(|| self.wrong(&format!("parameter '{parameter}'")))?;
                return Ok(Series::one(value as f64));
            }
            "mean" | "median" | "max" | "min" | "head" | "last" | "place" | "first" | "all"
            | "any" | "falls" | "rises" | "stays" | "most" | "least" | "abs" | "steps"
            | "slack" => {}
            figure => return self.figure(figure),
        }
        let mut arguments = vec![self.both()?];
        while self.take(",") {
            arguments.push(self.both()?);
        }
        applied(name, arguments)
    }

    /// Returns a figure of the case whose name and fields are next.
    fn figure(&mut self, figure: &str) -> QueryAnswer {
        let case = self.name();
        let fields = self.asked.cases.get(case).and_then(Field::as_table);
        let fields = fields.ok_or_else(|| self.wrong(&format!("function or case '{case}'")))?;
        // Every combination of the given values.
        let mut all = vec![(fields.clone(), Vec::new())];
        while self.take(",") {
            let field = self.name();
            self.need("=")?;
            let values = self.fields()?;
            let mut combined = Vec::new();
            for (case, places) in &all {
                for value in &values {
                    let (mut case, mut places): (Table, Vec<String>) =
                        (case.clone(), places.clone());
                    case.insert(field.into(), value.clone());
                    places.extend((values.len() > 1).then(|| place(value)));
                    combined.push((case, places));
                }
            }
            all = combined;
        }
        let is_one = all.len() == 1;
        let mut series = Series { numbers: Vec::new(), places: Vec::new() };
        for (mut fields, places) in all {
            if self.asked.is_core {
                fields.insert("is_core".into(), Field::Boolean(true));
            }
            let up_to = fields.remove("up_to").and_then(|field| field.as_integer());
            let name = (figure, up_to.map(i64::unsigned_abs));
            series.numbers.push(self.asked.runs.figure(Case::of(fields)?, name)?);
            series.places.extend((!is_one).then(|| places.join("/")));
        }
        Ok(series)
    }

    /// Returns the value of a field, or several of them.
    fn fields(&mut self) -> Result<Vec<Field>, BenchError> {
        if !self.take("[") {
            let name = self.name();
            return Ok(match self.asked.lists.get(name).and_then(Field::as_array) {
                Some(list) => list.clone(),
                None => vec![field(name)],
            });
        }
        let mut fields = vec![field(self.name())];
        while self.take(",") {
            fields.push(field(self.name()));
        }
        self.need("]")?;
        Ok(fields)
    }
}

fn applied(name: &str, arguments: Vec<Series>) -> QueryAnswer {
    let wrong = |what: String| BenchError::Arguments(format!("{name}: {what}"));
    let mut given = arguments.into_iter();
    let Some(of) = given.next() else { return Err(wrong("the function needs a series".into())) };
    let mut second = || {
        let second =
            given.next().ok_or_else(|| wrong("the function needs two arguments".into()))?;
        second.number().map_err(wrong)
    };
    let number = match name {
        "mean" => of.numbers.iter().sum::<f64>() / of.numbers.len() as f64,
        "median" => median(&of.numbers),
        "max" => of.fold(f64::NEG_INFINITY, f64::max),
        "min" => of.fold(f64::INFINITY, f64::min),
        "head" => of.ends().0,
        "last" => of.ends().1,
        "place" | "first" => {
            let most = if name == "place" { of.fold(f64::NEG_INFINITY, f64::max) } else { 1.0 };
            let at = of.numbers.iter().position(|number| *number == most);
            let place = at.and_then(|at| of.places.get(at)).and_then(|place| place.parse().ok());
            place.ok_or_else(|| wrong("the series has no such place".into()))?
        }
        "all" => return Ok(Series::truth(of.numbers.iter().all(|number| *number != 0.0))),
        "any" => return Ok(Series::truth(of.numbers.iter().any(|number| *number != 0.0))),
        "falls" => return Ok(Series::truth(of.falls())),
        "rises" => return Ok(Series::truth(of.rises())),
        "stays" => return Ok(Series::truth(of.stays(second()?))),
        "steps" => schedule::steps(of.number().map_err(wrong)?, second()?)?,
        "slack" => schedule::slack(of.number().map_err(wrong)?, second()?)?,
        "abs" => return zip(of, Series::one(0.0), |one, _| one.abs()),
        _ => {
            let with = if name == "most" { f64::max } else { f64::min };
            return given.try_fold(of, |one, other| zip(one, other, with));
        }
    };
    Ok(Series::one(number))
}

fn zip(one: Series, other: Series, with: impl Fn(f64, f64) -> f64) -> QueryAnswer {
    one.with(other, with).map_err(BenchError::Arguments)
}

/// Parses a value of a query.
fn field(word: &str) -> Field {
    match (word.parse(), word) {
        (Ok(number), _) => Field::Integer(number),
        (_, "true") => Field::Boolean(true),
        (_, word) => Field::String(word.into()),
    }
}

/// Formats a value as the position of a figure.
fn place(field: &Field) -> String {
    match field {
        Field::String(word) => word.clone(),
        Field::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::profiles::MachineArguments;

    /// Answers a query that needs no run.
    fn told(query: &str, values: &[Series]) -> Result<String, String> {
        let machines = Machines::load(&MachineArguments::default()).expect("they are here");
        let (cases, none) = (Mutex::default(), Table::new());
        let runs = Runs::Asked(&cases);
        let asked = QueryContext {
            runs: &runs,
            machines: &machines,
            cases: &none,
            lists: &none,
            is_core: false,
        };
        let answered = answer(query, &asked, values).map_err(|error| error.to_string())?;
        Ok(answered.words())
    }

    #[test]
    fn operators_have_usual_precedence_and_work_elementwise() {
        for (query, words) in [
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3 - 4 / 2", "7"),
            ("1e3 / 4", "250"),
            ("2 * ([4, 8] - 1)", "4: 6, 8: 14"),
            ("[4, 8] / [2, 16]", "4: 2, 8: 0.5"),
            ("1 < 2 and 2 >= 3", "0"),
            ("[1, 5] <= 1", "1: 1, 5: 0"),
            ("most([1, 9], [2, 3])", "1: 2, 9: 9"),
            ("abs(1 - [3, 0])", "3: 2, 0: 1"),
            ("mean([1, 2, 6]) + median([1, 2, 6])", "5"),
            ("head([7, 8]) + last([7, 8]) + max([7, 8]) + min([7, 8])", "30"),
            ("place([3, 9, 2])", "9"),
            ("first([1, 5, 7] >= 5)", "5"),
            ("all([1, 2] > 1) + any([1, 2] > 1)", "1"),
            ("parameter(spindle, post_ns)", "237"),
        ] {
            assert_eq!(told(query, &[]).as_deref(), Ok(words), "{query}");
        }
        let value = Series::one(2.0);
        assert_eq!(told("$1 * 3", &[value]).as_deref(), Ok("6"));
    }

    #[test]
    fn trend_is_judged_over_the_whole_series() {
        for (query, holds) in [
            ("falls([900, 800, 801, 500])", true),
            ("falls([900, 800, 850, 500])", false),
            ("falls([900, 899, 898])", false),
            ("rises([100, 200, 199])", true),
            ("rises([100, 200, 190])", false),
            ("rises([100, 101])", false),
            ("stays([97, 90, 95], 0.1)", true),
            ("stays([97, 80, 95], 0.1)", false),
        ] {
            assert_eq!(told(query, &[]).as_deref(), Ok(if holds { "1" } else { "0" }), "{query}");
        }
    }

    #[test]
    fn invalid_queries_are_refused_with_a_position() {
        for (query, what) in [
            ("1 +", "there is no ( at '' in the query"),
            ("1 2", "no operator at '2'"),
            ("(1", "no ) at ''"),
            ("$1", "no value 1"),
            ("[a, b]", "no numbers"),
            ("[1, 2] + [1, 2, 3]", "a series of 2 values cannot be combined with one of 3"),
            ("stays([1, 2])", "two arguments"),
            ("gb_per_s(nothing)", "no function or case 'nothing'"),
            ("parameter(nowhere, post_ns)", "no machine 'nowhere'"),
            ("parameter(spindle, nothing)", "no parameter 'nothing'"),
        ] {
            let told = told(query, &[]).expect_err("refused");
            assert!(told.contains(what), "{query}: {told}");
        }
    }
}
