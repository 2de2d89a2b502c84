//! Values of keys.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::sorted_set::SortedSet;
use crate::text::Text;

pub(crate) type TextList = VecDeque<Text>;
pub(crate) type Hash = BTreeMap<Text, Text>;
pub(crate) type Set = BTreeSet<Text>;

/// The value of a key. New types are added at the end, because snapshots contain their numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Value {
    Text(Text),
    List(TextList),
    Hash(Hash),
    Set(Set),
    Sorted(Box<SortedSet>),
}

impl Value {
    /// Returns the name that the command TYPE gives to the type.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Hash(_) => "hash",
            Self::Set(_) => "set",
            Self::Sorted(_) => "zset",
        }
    }
}

/// A type of values.
pub(crate) trait Stored: Default {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
    /// Whether a key with this value must not exist.
    fn is_void(&self) -> bool;
}

macro_rules! stored {
    ($type:ty, $variant:ident, $is_void:expr) => {
        impl Stored for $type {
            fn of(value: &Value) -> Option<&Self> {
                match value {
                    Value::$variant(stored) => Some(stored),
                    _ => None,
                }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$variant(stored) => Some(stored),
                    _ => None,
                }
            }

            fn into_value(self) -> Value {
                Value::$variant(self.into())
            }

            fn is_void(&self) -> bool {
                $is_void(self)
            }
        }
    };
}

stored!(Text, Text, |_: &Text| false);
stored!(TextList, List, TextList::is_empty);
stored!(Hash, Hash, Hash::is_empty);
stored!(Set, Set, Set::is_empty);
stored!(SortedSet, Sorted, Self::is_empty);
