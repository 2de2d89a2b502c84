//! A member's state other than records, as named values of its log.

use tramontane_log::Log;
use tramontane_log::power_loss::PowerLossFolder;

use super::answers::Promised;
use super::member::PowerCut;

/// A view: its id and its members.
pub type ViewMembers = (u64, Vec<u32>);

fn text(view: &ViewMembers) -> String {
    let members: Vec<String> = view.1.iter().map(u32::to_string).collect();
    format!("{} {}", view.0, members.join(" "))
}

fn numbers(log: &Log<PowerLossFolder>, name: &str) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(log.value(name)?).expect("text");
    Some(text.split(' ').map(|number| number.parse().expect("a number")).collect())
}

fn members(numbers: &[u64]) -> Vec<u32> {
    numbers.iter().map(|node| *node as u32).collect()
}

pub fn decided(log: &Log<PowerLossFolder>) -> Option<ViewMembers> {
    let all = numbers(log, "decided")?;
    Some((all[0], members(&all[1..])))
}

pub fn heard(log: &Log<PowerLossFolder>) -> (u32, u32) {
    numbers(log, "heard").map_or((0, 0), |all| (all[0] as u32, all[1] as u32))
}

pub fn promise(log: &Log<PowerLossFolder>) -> Option<Promised> {
    let all = numbers(log, "promise")?;
    let (ballot, end, id) = ((all[0] as u32, all[1] as u32), all[2], all[3]);
    Some(Promised { ballot, id, members: members(&all[4..]), ends: vec![Some(end)] })
}

/// Makes some of the values durable, either all or none of them.
pub fn keep(
    log: &mut Log<PowerLossFolder>,
    view: Option<&ViewMembers>,
    promise: Option<&Promised>,
) -> Result<(), PowerCut> {
    let view = view.map(text);
    let promise = promise.map(|promise| {
        let (attempt, leader) = promise.ballot;
        let next = text(&(promise.id, promise.members.clone()));
        format!("{attempt} {leader} {} {next}", promise.ends[0].unwrap_or(0))
    });
    let mut values = Vec::new();
    values.extend(view.as_ref().map(|view| ("decided", Some(view.as_bytes()))));
    values.extend(promise.as_ref().map(|promise| ("promise", Some(promise.as_bytes()))));
    log.set_values(&values).map_err(|_| PowerCut)
}

pub fn keep_heard(log: &mut Log<PowerLossFolder>, ballot: (u32, u32)) -> Result<(), PowerCut> {
    let text = format!("{} {}", ballot.0, ballot.1);
    log.set_values(&[("heard", Some(text.as_bytes()))]).map_err(|_| PowerCut)
}
