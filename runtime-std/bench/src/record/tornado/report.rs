//! What moves each conclusion, in words.

use std::fmt::Write;
use std::path::Path;

use super::{Bar, NARROW, Tornado};

/// Parameters that a line of the table names.
const NAMED: usize = 4;

/// For people.
pub(super) fn text(tornados: &[Tornado]) -> String {
    let mut text = String::new();
    for tornado in tornados {
        let Tornado { conclusion, machine, unit, usual, .. } = tornado;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{conclusion} ({machine}): {usual:.2} {unit}");
        for bar in named(tornado) {
            let _ = writeln!(
                text,
                "  {:<22} half {:>8.2}   double {:>8.2}",
                bar.parameter, bar.half, bar.double
            );
        }
        let _ = writeln!(text, "  {}", turned(tornado));
    }
    text
}

/// For the documentation.
pub(super) fn markdown(tornados: &[Tornado], drawing: &Path) -> String {
    let drawing = drawing.file_name().map_or_else(Default::default, |name| name.to_string_lossy());
    let mut text = format!(
        "# What each conclusion depends on\n\nEach parameter of a conclusion's machine is halved \
         and doubled, all else as it is. One seed.\nMade by `tramontane bench record \
         --tornado`.\n\n![Bars for each conclusion]({drawing})\n\nIn brackets: with half, and with \
         double. Named are the widest, if they move it by 1 % or more.\n\n\
         | conclusion | on | as it is | what moves it | what turns it |\n|---|---|---|---|---|\n"
    );
    for tornado in tornados {
        let moves: Vec<String> = named(tornado)
            .map(|bar| format!("`{}` ({:.2}, {:.2})", bar.parameter, bar.half, bar.double))
            .collect();
        let Tornado { conclusion, machine, unit, usual, .. } = tornado;
        let (moves, turned) = (moves.join(", "), turned(tornado));
        let _ =
            writeln!(text, "| {conclusion} | {machine} | {usual:.2} {unit} | {moves} | {turned} |");
    }
    text
}

fn named(tornado: &Tornado) -> impl Iterator<Item = &Bar> {
    let is_wide = |bar: &&Bar| bar.width(tornado.usual) >= NARROW * tornado.usual.abs();
    tornado.bars.iter().filter(is_wide).take(NAMED)
}

fn turned(tornado: &Tornado) -> String {
    match (tornado.turns_at, tornado.turned_by()) {
        (None, _) => "it has no opposite".into(),
        (Some(_), _) if tornado.is_even() => "it is even as it is".into(),
        (Some(_), names) if names.is_empty() => "nothing".into(),
        (Some(_), names) => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_bars_are_not_named_and_what_turns_a_conclusion_is() {
        let bar = |parameter, half, double| Bar { parameter, half, double };
        let tornado = Tornado {
            conclusion: "a gain",
            machine: "spindle",
            unit: "times",
            usual: 1.2,
            turns_at: Some(1.0),
            bars: vec![bar("post_ns", 0.9, 1.5), bar("look_ns", 1.2, 1.201)],
        };
        let table = markdown(std::slice::from_ref(&tornado), Path::new("docs/bars.svg"));
        assert!(table.contains("| 1.20 times | `post_ns` (0.90, 1.50) | post_ns |"));
        assert!(table.contains("](bars.svg)") && !table.contains("look_ns"));
        assert!(text(&[tornado]).contains("a gain (spindle): 1.20 times"));
    }
}
