//! Hashes, sets and sorted sets of the model.

use super::model::{ERR, KeyModel, Modelled, listed, number, or_nil, part, quoted, stored_number};

/// Parses a bound of scores: the score, and whether it is excluded.
fn bound(word: &str) -> Option<(f64, bool)> {
    let number = word.strip_prefix('(').unwrap_or(word);
    Some((number.parse().ok()?, number.len() < word.len()))
}

fn within(score: f64, least: (f64, bool), most: (f64, bool)) -> bool {
    (score > least.0 || score == least.0 && !least.1)
        && (score < most.0 || score == most.0 && !most.1)
}

/// Returns the members whose scores are between two bounds.
fn between(members: &[(String, f64)], bounds: [&str; 2]) -> Result<Vec<(String, f64)>, String> {
    let [Some(least), Some(most)] = bounds.map(bound) else { return Err(ERR.to_owned()) };
    let found = members.iter().filter(|(_, score)| within(*score, least, most));
    Ok(found.cloned().collect())
}

fn names(members: Vec<(String, f64)>) -> String {
    listed(members.into_iter().map(|(name, _)| name))
}

impl KeyModel {
    pub(super) fn sets(&mut self, words: &[&str]) -> Option<Result<String, String>> {
        Some(match *words {
            ["HSET" | "HGET" | "HDEL" | "HGETALL" | "HLEN" | "HINCRBY", key, ..] => {
                self.hash(key).map(|hash| self.hashes(words, hash))
            }
            ["SADD", key, ref members @ ..] => self.set(key).map(|mut set| {
                let before = set.len();
                for member in members {
                    if !set.iter().any(|other| other == member) {
                        set.push((*member).to_owned());
                    }
                }
                let added = set.len() - before;
                self.store(key, Modelled::Set(set));
                added.to_string()
            }),
            ["SREM", key, member] => self.set(key).map(|mut set| {
                let before = set.len();
                set.retain(|other| other != member);
                let removed = before - set.len();
                self.store(key, Modelled::Set(set));
                removed.to_string()
            }),
            ["SMEMBERS", key] => self.set(key).map(|mut set| {
                set.sort();
                listed(set)
            }),
            ["SISMEMBER", key, member] => {
                self.set(key).map(|set| i32::from(set.iter().any(|m| m == member)).to_string())
            }
            [name @ ("SINTER" | "SUNION" | "SDIFF"), a, b] => self.combined(name, a, b).map(listed),
            ["SINTERSTORE", onto, a, b] => self.combined("SINTER", a, b).map(|set| {
                self.execute(&["DEL".to_owned(), onto.to_owned(), onto.to_owned()]);
                let length = set.len();
                self.store(onto, Modelled::Set(set));
                length.to_string()
            }),
            ["SMOVE", from, onto, member] => self.moved(from, onto, member),
            _ => return None,
        })
    }

    fn hashes(&mut self, words: &[&str], mut hash: Vec<(String, String)>) -> String {
        let at = |hash: &[(String, String)], name: &str| hash.iter().position(|(f, _)| f == name);
        let key = words[1];
        let reply = match *words {
            ["HSET", _, field, value] => match at(&hash, field) {
                Some(at) => {
                    value.clone_into(&mut hash[at].1);
                    "0".to_owned()
                }
                None => {
                    hash.push((field.to_owned(), value.to_owned()));
                    "1".to_owned()
                }
            },
            ["HGET", _, field] => or_nil(at(&hash, field).map(|at| &hash[at].1)),
            ["HDEL", _, ref fields @ ..] => {
                let before = hash.len();
                hash.retain(|(field, _)| !fields.contains(&field.as_str()));
                (before - hash.len()).to_string()
            }
            ["HGETALL", _] => {
                hash.sort();
                listed(hash.iter().flat_map(|(field, value)| [field.clone(), value.clone()]))
            }
            ["HINCRBY", _, field, step] => {
                let at = at(&hash, field).unwrap_or_else(|| {
                    hash.push((field.to_owned(), "0".to_owned()));
                    hash.len() - 1
                });
                match stored_number(&hash[at].1) {
                    None => return ERR.to_owned(),
                    Some(value) => {
                        hash[at].1 = (value + number(step)).to_string();
                        hash[at].1.clone()
                    }
                }
            }
            _ => hash.len().to_string(),
        };
        self.store(key, Modelled::Hash(hash));
        reply
    }

    fn combined(&self, name: &str, a: &str, b: &str) -> Result<Vec<String>, String> {
        let (mut a, b) = (self.set(a)?, self.set(b)?);
        match name {
            "SINTER" => a.retain(|member| b.contains(member)),
            "SDIFF" => a.retain(|member| !b.contains(member)),
            _ => a.extend(b),
        }
        a.sort();
        a.dedup();
        Ok(a)
    }

    fn moved(&mut self, from: &str, onto: &str, member: &str) -> Result<String, String> {
        let mut source = self.set(from)?;
        if source.is_empty() {
            return Ok("0".to_owned());
        }
        let mut target = self.set(onto)?;
        if !source.iter().any(|other| other == member) {
            return Ok("0".to_owned());
        }
        if from != onto {
            source.retain(|other| other != member);
            target.retain(|other| other != member);
            target.push(member.to_owned());
            self.store(from, Modelled::Set(source));
            self.store(onto, Modelled::Set(target));
        }
        Ok("1".to_owned())
    }

    pub(super) fn sorted_sets(&mut self, words: &[&str]) -> Option<Result<String, String>> {
        let (name, key) = (*words.first()?, *words.get(1)?);
        // Redis checks numbers before types.
        let scores: &[&str] = match *words {
            ["ZADD", _, ref pairs @ ..] => &pairs.iter().copied().step_by(2).collect::<Vec<_>>(),
            ["ZINCRBY", _, score, _] => &[score],
            ["ZRANGEBYSCORE" | "ZREMRANGEBYSCORE", _, a, b]
                if bound(a).is_none() || bound(b).is_none() =>
            {
                return Some(Err(ERR.to_owned()));
            }
            _ => &[],
        };
        if scores.iter().any(|score| score.parse::<f64>().is_err()) {
            return Some(Err(ERR.to_owned()));
        }
        let mut set = match self.sorted(key) {
            Ok(set) => set,
            Err(wrong) => return Some(Err(wrong)),
        };
        let before = set.len();
        let mut put = |member: &str, score: f64, adds: bool| {
            let at = set.iter().position(|(other, _)| other == member);
            let base = at.map_or(0.0, |at| set.remove(at).1);
            let score = if adds { base + score } else { score };
            set.push((member.to_owned(), score));
            score
        };
        let reply = match *words {
            ["ZADD", _, ref pairs @ ..] => {
                for pair in pairs.chunks(2) {
                    put(pair[1], pair[0].parse().expect("checked"), false);
                }
                (set.len() - before).to_string()
            }
            ["ZINCRBY", _, score, member] => {
                quoted(&put(member, score.parse().expect("checked"), true).to_string())
            }
            ["ZREM", _, member] => {
                set.retain(|(other, _)| other != member);
                (before - set.len()).to_string()
            }
            ["ZSCORE", _, member] => {
                let found = set.iter().find(|(other, _)| other == member);
                or_nil(found.map(|(_, score)| score.to_string()).as_ref())
            }
            ["ZRANK", _, member] => {
                let found = set.iter().position(|(other, _)| other == member);
                found.map_or_else(|| "nil".to_owned(), |at| at.to_string())
            }
            ["ZCARD", _] => before.to_string(),
            ["ZRANGE", _, start, stop] => names(part(&set, number(start), number(stop))),
            ["ZREVRANGE", _, start, stop] => {
                set.reverse();
                names(part(&set, number(start), number(stop)))
            }
            ["ZRANGEBYSCORE", _, least, most] => names(between(&set, [least, most]).ok()?),
            ["ZREMRANGEBYSCORE", _, least, most] => {
                let removed = between(&set, [least, most]).ok()?;
                set.retain(|member| !removed.contains(member));
                removed.len().to_string()
            }
            ["ZREMRANGEBYRANK", _, start, stop] => {
                let removed = part(&set, number(start), number(stop));
                set.retain(|member| !removed.contains(member));
                removed.len().to_string()
            }
            _ => unreachable!("{name} is not in the model"),
        };
        self.store(key, Modelled::Sorted(set));
        Some(Ok(reply))
    }
}
