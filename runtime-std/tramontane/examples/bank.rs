//! A bank whose accounts are in two groups. Start six replicas, with the arguments g1.0, g1.1,
//! g1.2, g2.0, g2.1 and g2.2, and then a client without an argument.
//!
//! A transfer is one command for the groups of both accounts. Because all groups apply commands in
//! one order, a sum over both groups contains both sides of each transfer, or neither. An account
//! may be overdrawn, because the group that receives an amount does not see the other account.

use std::collections::BTreeMap;
use std::time::Duration;

use tramontane::serde::{Deserialize, Serialize};
use tramontane::shards::{Description, Destinations, GroupId, Places, StartOptions};
use tramontane::{ShardClient, ShardReplica, StateMachine};

const PATIENCE: Duration = Duration::from_secs(30);
const ACCOUNTS: u16 = 10;

/// The accounts of one group.
#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Branch {
    group: u16,
    balances: BTreeMap<u16, i64>,
}

fn group_of(account: u16) -> GroupId {
    GroupId(account % 2)
}

impl StateMachine for Branch {
    /// Accounts, and what to add to each. An empty command only reads.
    type Command = Vec<(u16, i64)>;
    /// The balances of this group.
    type Answer = BTreeMap<u16, i64>;

    fn apply(&mut self, changes: Vec<(u16, i64)>) -> BTreeMap<u16, i64> {
        for (account, change) in changes {
            if let Some(balance) = self.balances.get_mut(&account) {
                *balance += change;
            }
        }
        self.balances.clone()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut overlay = Description::local("bank", &[None, Some(0)], 3);
    overlay.answer_max = 1024;
    let options = StartOptions::default();
    if let Some(name) = std::env::args().nth(1) {
        let id = Places::new(&overlay, overlay.overlay()?).replica_named(&name)?;
        let accounts = (0..ACCOUNTS).filter(|account| group_of(*account) == id.group);
        let branch = Branch { group: id.group.0, balances: accounts.map(|of| (of, 100)).collect() };
        let replica = ShardReplica::start(&overlay, id, options, branch)?;
        for _ in std::io::stdin().lines() {
            let balances = replica.query_local(|branch| branch.balances.clone())?;
            println!("{} {balances:?}", replica.status().state.name());
        }
        return Ok(());
    }
    let bank = ShardClient::<Branch>::connect(&overlay, Destinations::default(), options)?;
    for line in std::io::stdin().lines() {
        match *line?.split_whitespace().collect::<Vec<_>>() {
            ["pay", from, to, amount] => {
                let (from, to, amount): (u16, u16, i64) =
                    (from.parse()?, to.parse()?, amount.parse()?);
                let groups = Destinations::of(group_of(from)).with(group_of(to));
                let changes = vec![(from, -amount), (to, amount)];
                println!("{:?}", bank.propose(groups, changes).wait(PATIENCE)?);
            }
            _ => {
                let all = bank.propose(bank.places().overlay().all(), Vec::new()).wait(PATIENCE)?;
                println!("{}", all.values().flat_map(BTreeMap::values).sum::<i64>());
            }
        }
    }
    Ok(bank.leave(PATIENCE)?)
}
