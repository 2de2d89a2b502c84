//! A naive model of the commands: lists that are searched from the front.

use std::collections::BTreeMap;

/// A value of the model.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Modelled {
    Text(String),
    List(Vec<String>),
    Hash(Vec<(String, String)>),
    Set(Vec<String>),
    Sorted(Vec<(String, f64)>),
}

/// All keys of the model, each with the time at which it expires.
#[derive(Default)]
pub(super) struct KeyModel {
    keys: BTreeMap<String, (Modelled, Option<u64>)>,
    now_ms: u64,
}

const WRONG: &str = "!WRONGTYPE";
pub(super) const ERR: &str = "!ERR";

pub(super) fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

pub(super) fn listed(words: impl IntoIterator<Item = String>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| quoted(&word)).collect();
    format!("[{}]", words.join(" "))
}

pub(super) fn or_nil(word: Option<&String>) -> String {
    word.map_or_else(|| "nil".to_owned(), |word| quoted(word))
}

pub(super) fn number(word: &str) -> i64 {
    word.parse().expect("a number")
}

/// Returns the integer that a stored value is, if Redis would write it in the same way: it takes
/// neither "01" nor "+1" for a number.
pub(super) fn stored_number(value: &str) -> Option<i64> {
    value.parse().ok().filter(|number: &i64| number.to_string() == value)
}

/// Returns the items from `start` to `stop`, of which negative ones count from the end.
pub(super) fn part<T: Clone>(items: &[T], start: i64, stop: i64) -> Vec<T> {
    let length = items.len() as i64;
    let from_end = |at: i64| if at < 0 { at + length } else { at };
    let (start, stop) = (from_end(start), from_end(stop));
    let places = (0..length).filter(|at| *at >= start && *at <= stop);
    places.map(|at| items[at as usize].clone()).collect()
}

macro_rules! typed {
    ($name:ident, $variant:ident, $type:ty) => {
        pub(super) fn $name(&self, key: &str) -> Result<$type, String> {
            match self.keys.get(key) {
                None => Ok(<$type>::new()),
                Some((Modelled::$variant(value), _)) => Ok(value.clone()),
                Some(_) => Err(WRONG.to_owned()),
            }
        }
    };
}

impl KeyModel {
    typed!(list, List, Vec<String>);
    typed!(hash, Hash, Vec<(String, String)>);
    typed!(set, Set, Vec<String>);

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.keys.get(key) {
            None => Ok(None),
            Some((Modelled::Text(value), _)) => Ok(Some(value.clone())),
            Some(_) => Err(WRONG.to_owned()),
        }
    }

    /// Returns the members of a sorted set, in order.
    pub(super) fn sorted(&self, key: &str) -> Result<Vec<(String, f64)>, String> {
        match self.keys.get(key) {
            None => Ok(Vec::new()),
            Some((Modelled::Sorted(value), _)) => {
                let mut value = value.clone();
                value.sort_by(|(a, x), (b, y)| x.partial_cmp(y).expect("a number").then(a.cmp(b)));
                Ok(value)
            }
            Some(_) => Err(WRONG.to_owned()),
        }
    }

    /// Stores a value, and keeps the key's time. An empty collection is removed.
    pub(super) fn store(&mut self, key: &str, value: Modelled) {
        let is_empty = match &value {
            Modelled::Text(_) => false,
            Modelled::List(items) | Modelled::Set(items) => items.is_empty(),
            Modelled::Hash(fields) => fields.is_empty(),
            Modelled::Sorted(members) => members.is_empty(),
        };
        let time = self.keys.remove(key).and_then(|(_, time)| time);
        if !is_empty {
            self.keys.insert(key.to_owned(), (value, time));
        }
    }

    /// Stores a string without a time.
    fn set_text(&mut self, key: &str, value: &str) {
        self.keys.insert(key.to_owned(), (Modelled::Text(value.to_owned()), None));
    }

    pub(super) fn advance(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        let now_ms = self.now_ms;
        self.keys.retain(|_, (_, time)| time.is_none_or(|time| time > now_ms));
    }

    /// Executes a command, and returns its reply as text.
    pub(super) fn execute(&mut self, words: &[String]) -> String {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.strings(&words)
            .or_else(|| self.lists(&words))
            .or_else(|| self.sets(&words))
            .or_else(|| self.sorted_sets(&words))
            .expect("the model knows the command")
            .unwrap_or_else(|refused| refused)
    }

    fn strings(&mut self, words: &[&str]) -> Option<Result<String, String>> {
        Some(Ok(match *words {
            ["SET", key, value, ref options @ ..] => {
                let exists = self.keys.contains_key(key);
                match *options {
                    ["NX"] if exists => return Some(Ok("nil".to_owned())),
                    ["XX"] if !exists => return Some(Ok("nil".to_owned())),
                    ["PX", time] if number(time) <= 0 => return Some(Ok(ERR.to_owned())),
                    _ => self.set_text(key, value),
                }
                if let ["PX", time] = *options {
                    let at = self.now_ms + number(time) as u64;
                    self.keys.get_mut(key)?.1 = Some(at);
                }
                "OK".to_owned()
            }
            ["SETNX", key, value] => {
                let is_new = !self.keys.contains_key(key);
                if is_new {
                    self.set_text(key, value);
                }
                i32::from(is_new).to_string()
            }
            ["GET", key] => return Some(self.text(key).map(|value| or_nil(value.as_ref()))),
            ["GETSET", key, value] => {
                let previous = self.text(key);
                if previous.is_ok() {
                    self.set_text(key, value);
                }
                return Some(previous.map(|value| or_nil(value.as_ref())));
            }
            ["STRLEN", key] => {
                return Some(
                    self.text(key).map(|value| value.unwrap_or_default().len().to_string()),
                );
            }
            ["APPEND", key, suffix] => match self.text(key) {
                Err(wrong) => wrong,
                Ok(value) => {
                    let value = value.unwrap_or_default() + suffix;
                    let length = value.len();
                    self.store(key, Modelled::Text(value));
                    length.to_string()
                }
            },
            ["INCRBY", key, step] => match self.text(key) {
                Err(wrong) => wrong,
                Ok(value) => match stored_number(&value.unwrap_or_else(|| "0".to_owned())) {
                    None => ERR.to_owned(),
                    Some(value) => {
                        let sum = (value + number(step)).to_string();
                        self.store(key, Modelled::Text(sum.clone()));
                        sum
                    }
                },
            },
            ["DEL", a, b] => {
                let count = [a, b].iter().filter(|key| self.keys.remove(**key).is_some()).count();
                count.to_string()
            }
            ["EXISTS", a, b] => {
                [a, b].iter().filter(|key| self.keys.contains_key(**key)).count().to_string()
            }
            ["TYPE", key] => match self.keys.get(key) {
                None => "none",
                Some((Modelled::Text(_), _)) => "string",
                Some((Modelled::List(_), _)) => "list",
                Some((Modelled::Hash(_), _)) => "hash",
                Some((Modelled::Set(_), _)) => "set",
                Some((Modelled::Sorted(_), _)) => "zset",
            }
            .to_owned(),
            ["PEXPIRE", key, time] => {
                let exists = self.keys.contains_key(key);
                if number(time) <= 0 {
                    self.keys.remove(key);
                } else if let Some(entry) = self.keys.get_mut(key) {
                    entry.1 = Some(self.now_ms + number(time) as u64);
                }
                i32::from(exists).to_string()
            }
            ["PTTL", key] => match self.keys.get(key) {
                None => "-2".to_owned(),
                Some((_, None)) => "-1".to_owned(),
                Some((_, Some(time))) => (time - self.now_ms).to_string(),
            },
            ["PERSIST", key] => {
                let time = self.keys.get_mut(key).and_then(|entry| entry.1.take());
                i32::from(time.is_some()).to_string()
            }
            ["RENAME", from, name] => match self.keys.remove(from) {
                None => ERR.to_owned(),
                Some(entry) => {
                    self.keys.insert(name.to_owned(), entry);
                    "OK".to_owned()
                }
            },
            _ => return None,
        }))
    }

    fn lists(&mut self, words: &[&str]) -> Option<Result<String, String>> {
        let (name, key, rest) = (*words.first()?, *words.get(1)?, words.get(2..)?);
        let is_of_lists = matches!(
            name,
            "RPUSH"
                | "LPUSH"
                | "LPOP"
                | "RPOP"
                | "LRANGE"
                | "LREM"
                | "LTRIM"
                | "LINDEX"
                | "LLEN"
                | "RPOPLPUSH"
        );
        if !is_of_lists {
            return None;
        }
        let mut list = match self.list(key) {
            Ok(list) => list,
            Err(wrong) => return Some(Err(wrong)),
        };
        let reply = match (name, rest) {
            ("RPUSH", items) => {
                list.extend(items.iter().map(|item| (*item).to_owned()));
                list.len().to_string()
            }
            ("LPUSH", [item]) => {
                list.insert(0, (*item).to_owned());
                list.len().to_string()
            }
            ("LPOP", []) if list.is_empty() => "nil".to_owned(),
            ("LPOP", []) => quoted(&list.remove(0)),
            ("RPOP", []) => or_nil(list.pop().as_ref()),
            ("LRANGE", [start, stop]) => listed(part(&list, number(start), number(stop))),
            ("LTRIM", [start, stop]) => {
                list = part(&list, number(start), number(stop));
                "OK".to_owned()
            }
            ("LINDEX", [at]) => or_nil(part(&list, number(at), number(at)).first()),
            ("LLEN", []) => list.len().to_string(),
            ("LREM", [count, item]) => {
                let count = number(count);
                let max = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
                let mut removed = 0;
                if count < 0 {
                    list.reverse();
                }
                list.retain(|other| {
                    let goes = other == item && removed < max;
                    removed += usize::from(goes);
                    !goes
                });
                if count < 0 {
                    list.reverse();
                }
                removed.to_string()
            }
            ("RPOPLPUSH", [onto]) => {
                if list.is_empty() {
                    return Some(Ok("nil".to_owned()));
                }
                if let Err(wrong) = self.list(onto) {
                    return Some(Err(wrong));
                }
                let item = list.pop()?;
                if key == *onto {
                    list.insert(0, item.clone());
                    self.store(key, Modelled::List(list));
                    return Some(Ok(quoted(&item)));
                }
                self.store(key, Modelled::List(list));
                let mut target = self.list(onto).ok()?;
                target.insert(0, item.clone());
                self.store(onto, Modelled::List(target));
                return Some(Ok(quoted(&item)));
            }
            _ => return None,
        };
        self.store(key, Modelled::List(list));
        Some(Ok(reply))
    }
}
