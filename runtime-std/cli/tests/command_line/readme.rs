//! Runs the commands of the README and the guide, read from their text. Before each block, a
//! comment that readers do not see says how to run the block:
//!
//! ```text
//! <!-- test: 1 in turn, then side by side, with input -->
//! ```
//!
//! | words | meaning |
//! |---|---|
//! | `in turn`, `2 in turn` | all lines, or the next two, one after the other; each must exit successfully |
//! | `side by side` | each line in its own terminal; all must exit successfully |
//! | `side by side and on` | the same, and the programs keep running during the next blocks |
//! | `with input` | a line is typed into each terminal, all must show the same lines, and then the input ends |
//! | `elsewhere: FILE` | that file runs it, because a test lacks something that it needs |
//!
//! Paths and addresses of other machines are replaced with local ones: see [`ReaderFolder::here`].

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::group::Node;
use crate::support::{TestFolder, concurrently, free_addresses, wait_for};
use rustix::process::Signal;

/// A block of commands.
#[derive(Debug)]
struct Block {
    /// Line of the page at which the block begins.
    line: usize,
    /// The comment before the block.
    how: String,
    commands: Vec<String>,
}

/// Returns the blocks of a text, or the reason that a block has no comment.
fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.trim() == "```sh" {
            let how = before.strip_prefix("<!-- test: ").and_then(|rest| rest.strip_suffix(" -->"));
            let how = how.ok_or(format!(
                "line {}: commands without a comment that says how they run",
                index + 1
            ))?;
            let commands =
                lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
            let commands =
                commands.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
            blocks.push(Block { line: index + 1, how: how.to_owned(), commands });
        }
        before = line;
    }
    Ok(blocks)
}

/// An action for the lines of a block.
#[derive(Debug, PartialEq, Eq)]
enum BlockAction {
    InTurn(usize),
    SideBySide { with_input: bool, goes_on: bool },
}

/// Parses a block's comment. Returns `None` if the block runs elsewhere.
fn steps(block: &Block) -> Result<Option<Vec<BlockAction>>, String> {
    let wrong = |what: &str| Err(format!("line {}: '{}': {what}", block.line, block.how));
    if let Some(place) = block.how.strip_prefix("elsewhere: ") {
        let file = root().join(place.split(' ').next().unwrap_or_default());
        return if file.is_file() { Ok(None) } else { wrong("there is no such file") };
    }
    let (words, with_input) = block
        .how
        .strip_suffix(", with input")
        .map_or((block.how.as_str(), false), |words| (words, true));
    let mut left = block.commands.len();
    let mut steps = Vec::new();
    for words in words.split(", then ") {
        let step = match words.split_once(' ') {
            _ if words == "in turn" => BlockAction::InTurn(left),
            _ if words == "side by side" => BlockAction::SideBySide { with_input, goes_on: false },
            _ if words == "side by side and on" => {
                BlockAction::SideBySide { with_input, goes_on: true }
            }
            Some((count, "in turn")) => match count.parse() {
                Ok(count) if count <= left => BlockAction::InTurn(count),
                _ => return wrong("so many lines there are not"),
            },
            _ => return wrong("not understood"),
        };
        left = if let BlockAction::InTurn(count) = step { left - count } else { 0 };
        steps.push(step);
    }
    if left > 0 { wrong("some lines are left") } else { Ok(Some(steps)) }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A reader's folder, with everything that the README assumes to exist.
struct ReaderFolder {
    place: TestFolder,
    folder: PathBuf,
    addresses: Vec<(String, String)>,
    /// Processes that keep running during the next blocks, each with its command line.
    running: Vec<(String, Node)>,
}

impl ReaderFolder {
    fn new() -> Self {
        let place = TestFolder::new();
        let folder = place.path().join("reader");
        for part in [
            "bin",
            "target/release",
            "target/quick",
            "model",
            "mnt/a",
            "mnt/b",
            "mnt/c",
            "srv/one",
            "srv/two",
        ] {
            std::fs::create_dir_all(folder.join(part)).expect("a folder");
        }
        std::fs::write(folder.join("data.bin"), vec![7; 300_000]).expect("a file");
        std::fs::write(folder.join("model/weights"), "1 2 3\n").expect("a file");
        let program = env!("CARGO_BIN_EXE_tramontane");
        symlink(program, folder.join("bin/tramontane")).expect("a link");
        symlink(program, folder.join("target/release/tramontane")).expect("a link");
        for (package, other) in [
            ("tramontane-conformance", "tramontane-conformance"),
            ("tramontane-copy", "tramontane-copy"),
            ("tramontane-dds-program", "tramontane-dds"),
            ("tramontane-lab", "tramontane-lab"),
            ("tramontane-redis", "tramontane-redis"),
        ] {
            let built = built_beside(Path::new(program), package, other);
            symlink(&built, folder.join("bin").join(other)).expect("a link");
            symlink(&built, folder.join("target/release").join(other)).expect("a link");
        }
        // Everything is already built: the commands run the programs that these tests have built.
        let cargo = "#!/bin/sh\ncase \"$1 $2 $3 $4\" in\n\"run --profile quick --\") shift 4; exec tramontane \"$@\" ;;\n\
                     \"build --release\"*) ;;\n*) echo \"cargo $*: not known here\" >&2; exit 1 ;;\nesac\n";
        std::fs::write(folder.join("bin/cargo"), cargo).expect("a file");
        std::fs::set_permissions(folder.join("bin/cargo"), std::fs::Permissions::from_mode(0o755))
            .expect("a mode");
        let theirs = [
            "10.9.0.1:7000",
            "10.9.0.2:7000",
            "127.0.0.1:9100",
            "127.0.0.1:6379",
            "127.0.0.1:6380",
            "127.0.0.1:6381",
        ];
        let free = free_addresses(theirs.len());
        let addresses = theirs.map(str::to_owned).into_iter().zip(free).collect();
        Self { place, folder, addresses, running: Vec::new() }
    }

    /// Returns a line with local paths and addresses.
    fn here(&self, line: &str) -> String {
        let line = line.replace("/mnt/", "mnt/").replace("/srv/", "srv/");
        self.addresses.iter().fold(line, |line, (theirs, ours)| line.replace(theirs, ours))
    }

    fn command(&self, line: &str, is_terminal: bool) -> Command {
        let mut command = self.place.command::<&str>(&[]);
        let environment: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        let path = std::env::var("PATH").unwrap_or_default();
        let line = self.here(line);
        command = Command::new("sh");
        command.args(["-c", &if is_terminal { format!("exec {line}") } else { line }]);
        command.envs(environment).env_remove("TRAMONTANE_LOG").current_dir(&self.folder);
        command.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        command
    }

    fn run(&mut self, block: &Block, steps: &[BlockAction]) {
        let mut lines: VecDeque<&String> = block.commands.iter().collect();
        for step in steps {
            match step {
                BlockAction::InTurn(count) => {
                    lines.drain(..*count).for_each(|line| self.in_turn(line))
                }
                BlockAction::SideBySide { with_input, goes_on } => {
                    let lines: Vec<&String> = lines.drain(..).collect();
                    self.side_by_side(&lines, *with_input, *goes_on);
                }
            }
        }
    }

    fn in_turn(&self, line: &str) {
        println!("$ {line}");
        let ended = self.command(line, false).stdin(Stdio::null()).output().expect("a shell");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{line}: {}: {said}", ended.status);
    }

    fn side_by_side(&mut self, lines: &[&String], with_input: bool, goes_on: bool) {
        let start = |line: &&String| {
            println!("| {line}");
            ((*line).clone(), Node::start(self.command(line, true)))
        };
        let mut terminals: Vec<_> = lines.iter().map(start).collect();
        if with_input {
            let typed: Vec<String> =
                (0..terminals.len()).map(|number| format!("typed into {number}\n")).collect();
            terminals.iter_mut().zip(&typed).for_each(|((_, terminal), text)| terminal.write(text));
            for (line, terminal) in &terminals {
                let shows_all =
                    || typed.iter().all(|text| terminal.output().contains(text)).then_some(());
                wait_for(&format!("all lines at {line}"), shows_all);
                assert_eq!(terminal.output(), terminals[0].1.output(), "{line}");
            }
        }
        if goes_on {
            // A replica of a shard prints nothing while all goes well, and clients wait for it.
            let prints = |line: &str| !line.starts_with("tramontane shards ");
            for (line, terminal) in terminals.iter().filter(|(line, _)| prints(line)) {
                // A node with a durable log prints its first message before it becomes a member.
                let has_begun = |errors: String| {
                    errors.lines().any(|line| !line.starts_with("the durable log is in "))
                };
                wait_for(&format!("a word of {line}"), || {
                    has_begun(terminal.errors()).then_some(())
                });
            }
            return self.running.append(&mut terminals);
        }
        for (_, terminal) in &mut terminals {
            terminal.end_input();
        }
        for (line, terminal) in &mut terminals {
            let (code, errors) = terminal.ended();
            assert_eq!(code, Some(0), "{line}: {errors}");
        }
    }

    /// Ends the running processes in order. Each must succeed.
    fn end(&mut self) {
        for (line, mut terminal) in self.running.drain(..) {
            terminal.signal(Signal::TERM);
            let (code, errors) = terminal.ended();
            assert_eq!(code, Some(0), "{line}: {errors}");
        }
    }
}

/// Returns a program of another package.
fn built_beside(program: &Path, package: &str, name: &str) -> PathBuf {
    let built = program.with_file_name(name);
    if !built.exists() {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--locked", "-p", package, "--bins"]).current_dir(root());
        assert!(command.status().expect("cargo").success(), "{name} cannot be built");
    }
    built
}

/// Returns the README and the pages of the guide, by name.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut folders = vec![root().join("docs/guide/src")];
    let mut found = vec![root().join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the guide") {
            let path = entry.expect("an entry").path();
            match path.extension() {
                Some(extension) if extension == "md" => found.push(path),
                Some(_) => {}
                None => folders.push(path),
            }
        }
    }
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a page");
        (path, text)
    };
    found.into_iter().map(read).collect()
}

/// Runs the commands of a page, and returns their number.
fn run_page(page: &Path, text: &str) -> usize {
    println!("{}", page.display());
    let mut commands = 0;
    let mut world = ReaderFolder::new();
    for block in blocks(text).expect("all say how they run") {
        match steps(&block).expect("it can be understood") {
            Some(steps) => {
                commands += block.commands.len();
                world.run(&block, &steps);
            }
            None => println!("line {}: {}", block.line, block.how),
        }
    }
    world.end();
    // Checks what the pages say about these files.
    let read = |name: &str| std::fs::read(world.folder.join(name)).expect("a file");
    if text.contains("--log log-2") {
        assert!(read("log-0") == read("log-1") && read("log-1") == read("log-2"));
    }
    if text.contains("/srv/two") {
        assert_eq!(read("srv/two/data.bin"), read("data.bin"));
        assert_eq!(read("mnt/c/model/weights"), read("model/weights"));
    }
    commands
}

#[test]
fn commands_in_readme_and_guide_succeed() {
    let pages: Vec<_> = pages().into_iter().filter(|(_, text)| text.contains("```sh")).collect();
    let commands = AtomicUsize::new(0);
    concurrently(4, &pages, |(page, text)| {
        commands.fetch_add(run_page(page, text), Ordering::Relaxed);
    });
    let commands = commands.into_inner();
    assert!(commands > 20, "{commands} commands: are the pages there?");
}

/// Runs the commands of the README's quick start, kills all nodes, and runs the same commands
/// again.
#[test]
fn quick_start_messages_survive_killing_all_nodes() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let blocks = blocks(&text).expect("all say how they run");
    let is_group = |block: &&Block| block.commands.iter().any(|line| line.contains("--log log-2"));
    let block = blocks.iter().find(is_group).expect("a log that three nodes share");
    let mut world = ReaderFolder::new();
    world.in_turn(&block.commands[0]);
    let nodes: Vec<&String> = block.commands[1..].iter().collect();
    let log = |world: &ReaderFolder, id: usize| {
        std::fs::read_to_string(world.folder.join(format!("log-{id}"))).unwrap_or_default()
    };
    let mut typed = 0;
    for _ in 0..3 {
        world.side_by_side(&nodes, false, true);
        for (_, node) in &mut world.running {
            typed += 1;
            node.write(&format!("line {typed}\n"));
        }
        wait_for("all lines in all logs", || {
            let logs = [0, 1, 2].map(|id| log(&world, id));
            let is_same = logs.iter().all(|log| *log == logs[0]);
            (is_same && (1..=typed).all(|line| logs[0].contains(&format!("line {line}\n"))))
                .then_some(())
        });
        // Shortly afterwards, the lines are on the disks too.
        wait_for("all lines on all disks", || {
            let mut status = world.command("tramontane status --config group.toml --json", false);
            let status = status.output().expect("a shell").stdout;
            let status: serde_json::Value = serde_json::from_slice(&status).unwrap_or_default();
            let durable = &status["nodes"][0]["status"]["subgroups"][0]["durable"];
            (durable["all"].as_u64()? >= typed).then_some(())
        });
        world.running.drain(..).for_each(|(_, node)| node.kill());
    }
}

#[test]
fn code_blocks_without_valid_marker_are_rejected() {
    let error = blocks("text\n\n```sh\ntramontane demo\n```\n").expect_err("no comment");
    assert!(error.starts_with("line 3: "), "{error}");
    let of = |how: &str| {
        let found =
            blocks(&format!("<!-- test: {how} -->\n```sh\none\ntwo\n```\n")).expect("a comment");
        steps(&found[0])
    };
    assert_eq!(of("in turn"), Ok(Some(vec![BlockAction::InTurn(2)])));
    let side_by_side = BlockAction::SideBySide { with_input: true, goes_on: false };
    assert_eq!(
        of("1 in turn, then side by side, with input"),
        Ok(Some(vec![BlockAction::InTurn(1), side_by_side]))
    );
    assert_eq!(of("elsewhere: .ci/run"), Ok(None));
    for wrong in ["1 in turn", "3 in turn", "somehow", "elsewhere: nowhere"] {
        of(wrong).expect_err(wrong);
    }
}
