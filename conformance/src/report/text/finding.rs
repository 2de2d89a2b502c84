//! A broken check, for people: the promise, what happened, and the records that show it.

use std::io::{self, Write};

use anstyle::Style;

use super::super::printable::printable;
use super::super::quotes::Quotes;
use super::super::words;
use super::{BAD, FAINT, OPEN, STRONG, TEXT_CHARACTERS_MAX};
use crate::check::{Check, Finding, Strength};

/// Length limit of a record that is quoted whole.
const QUOTE_CHARACTERS_MAX: usize = 160;

/// Writes a broken check.
pub(super) fn write(
    check: &Check,
    times: u64,
    finding: &Finding,
    quotes: &Quotes,
    out: &mut impl Write,
) -> io::Result<()> {
    let style = match check.strength {
        Strength::Must => BAD,
        Strength::Should => OPEN,
    };
    let first = if times == 1 { "" } else { ", first here" };
    let times = words::times(times);
    writeln!(
        out,
        "  {style}✗ {}{style:#} ({}) is broken {times}{first}",
        check.name, check.strength
    )?;
    writeln!(
        out,
        "    {FAINT}promised:{FAINT:#} {} {FAINT}[{}]{FAINT:#}",
        check.sentence, check.source
    )?;
    happened(finding, style, quotes, out)
}

/// Writes a finding whose cause has already been shown in the case named `before`.
pub(super) fn write_again(
    check: &Check,
    times: u64,
    finding: &Finding,
    before: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let style = match check.strength {
        Strength::Must => BAD,
        Strength::Should => OPEN,
    };
    writeln!(
        out,
        "  {style}✗ {}{style:#} ({}) is broken {}, as in {}: {}",
        check.name,
        check.strength,
        words::times(times),
        printable(before, TEXT_CHARACTERS_MAX),
        printable(&finding.what, TEXT_CHARACTERS_MAX)
    )
}

/// Writes what happened, and the records that show it.
pub(super) fn happened(
    finding: &Finding,
    style: Style,
    quotes: &Quotes,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "    {FAINT}happened:{FAINT:#} {}",
        printable(&finding.what, TEXT_CHARACTERS_MAX)
    )?;
    let digits =
        finding.witness.iter().map(|witness| witness.line).max().unwrap_or(0).to_string().len();
    for witness in &finding.witness {
        let (mark, style) = if witness.culprit { ("▶", style) } else { (" ", STRONG) };
        let culprit = if witness.culprit { " (culprit)" } else { "" };
        let line = witness.line;
        writeln!(
            out,
            "    {style}{mark} line {line:>digits$}: {}{culprit}{style:#}",
            witness.role
        )?;
        if let Some(quote) = quotes.line(line) {
            writeln!(out, "        {}", printable(quote, QUOTE_CHARACTERS_MAX))?;
        }
    }
    Ok(())
}
