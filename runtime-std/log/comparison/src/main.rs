//! Bits that flip in a store with a few small values, as a log's metadata is: what redb and the log
//! say. `cargo run --release` prints how often each answer came.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::ReadableDatabase as _;
use tramontane_log::{Identity, Log, Options, SystemFolder};

const TABLE: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("values");
const VALUES: usize = 8;
const FLIPS: usize = 3000;

fn value(number: usize) -> Vec<u8> {
    (0..200).map(|at| (number * 7 + at) as u8).collect()
}

fn name(number: usize) -> String {
    format!("value {number}")
}

fn make_redb(path: &Path) {
    let store = redb::Database::create(path).expect("a store");
    for number in 0..VALUES {
        let write = store.begin_write().expect("one writer");
        {
            let mut table = write.open_table(TABLE).expect("a table");
            table.insert(name(number).as_str(), value(number).as_slice()).expect("space");
        }
        write.commit().expect("a disk");
    }
}

/// Opens the store, checks all of it, and reads.
fn read_redb(path: &Path) -> &'static str {
    let read = || -> Result<bool, redb::Error> {
        let mut store = redb::Database::open(path)?;
        let is_sound = store.check_integrity()?;
        let table = store.begin_read()?.open_table(TABLE)?;
        for number in 0..VALUES {
            let found = table.get(name(number).as_str())?;
            if found.is_none_or(|found| found.value() != value(number)) {
                return Err(redb::Error::Corrupted("a value is not the one".into()));
            }
        }
        Ok(is_sound)
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(true)) => "unnoticed, values right",
        Ok(Ok(false)) => "noticed, values right",
        Ok(Err(redb::Error::Corrupted(what))) if what == "a value is not the one" => {
            "a value is gone or wrong"
        }
        Ok(Err(_)) => "refused, values lost",
        Err(_) => "panic",
    }
}

fn make_log(path: &Path) -> Log<SystemFolder> {
    let layer = SystemFolder::create(path).expect("a folder");
    let identity = Identity { group: "flips".into(), subgroup: "flips".into() };
    Log::open(layer, &identity, Options::default()).expect("a log").0
}

fn read_log(path: &Path) -> &'static str {
    let opened = Log::open_to_read(SystemFolder::read_only(path).expect("a folder"));
    let Ok((log, recovery)) = opened else { return "refused, values lost" };
    let is_right = |number: usize| log.value(&name(number)) == Some(&value(number)[..]);
    match (recovery.damage.is_empty(), (0..VALUES).all(is_right)) {
        (true, true) => "unnoticed, values right",
        (false, true) => "noticed, values right",
        (_, false) => "a value is gone or wrong",
    }
}

/// Flips one bit after the other, spread over the file.
fn flips(file: &Path, look: impl Fn() -> &'static str) -> BTreeMap<&'static str, usize> {
    let whole = std::fs::read(file).expect("a file");
    // Where anything was written at all: zeros are free space.
    let written: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut answers = BTreeMap::new();
    for flip in 0..FLIPS {
        let at = written[flip * written.len() / FLIPS];
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (flip % 8);
        std::fs::write(file, &bytes).expect("a disk");
        *answers.entry(look()).or_default() += 1;
    }
    answers
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    make_redb(&store);
    let copy = std::fs::metadata(&store).expect("a file").len();
    let whole = std::fs::read(&store).expect("a file");
    let answers = flips(&store, || {
        let answer = read_redb(&store);
        // A check may have written to it.
        std::fs::write(&store, &whole).expect("a disk");
        answer
    });
    println!("redb, {copy} bytes: {answers:?}");
    let path = folder.path().join("log");
    let mut log = make_log(&path);
    for number in 0..VALUES {
        log.set_values(&[(&name(number), Some(&value(number)))]).expect("a disk");
    }
    drop(log);
    let answers = flips(&path.join("metadata-1"), || read_log(&path));
    println!("one of the log's two copies: {answers:?}");
}
