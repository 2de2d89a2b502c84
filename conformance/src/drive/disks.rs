//! Disks that can run full or lose power: each node's storage folder is a separate file system.
//!
//! The file system is in memory, in the node's own mount namespace, which a small process holds. No
//! other process sees it, and it disappears when the holder and the node have exited, even if the
//! driver is killed. A disk that can run full is a small kernel file system, which the driver fills
//! through the holder's root. A disk that can lose power is served by the driver itself, see
//! [`Power`].

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::holder::{Holder, enter};
use super::power::{self, Power};

/// The size of a disk in MiB. Memory is used only for its contents.
const MIB: usize = 256;

/// The driver fills a disk in pieces of these sizes, ending with single bytes.
const PIECE_BYTES: [usize; 3] = [1 << 20, 1 << 12, 1];

/// The file that fills the disk.
const FILL: &str = ".filled-by-the-driver";

/// The kind of disk fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The disk is full for some time.
    Full,
    /// The disk loses power.
    PowerLoss,
}

/// The nodes' disks.
#[derive(Debug)]
pub(super) struct Disks {
    nodes: Vec<NodeDisk>,
}

#[derive(Debug)]
struct NodeDisk {
    holder: Holder,
    folder: PathBuf,
    power: Option<Power>,
}

impl Disks {
    /// Mounts a disk on each of these existing folders, for this kind of fault.
    ///
    /// # Errors
    /// Fails with the reason why this system or user cannot mount them.
    pub(super) fn mount(folders: Vec<PathBuf>, trouble: Trouble) -> Result<Self, String> {
        let mount = |folder: PathBuf| {
            let path = folder.to_string_lossy().into_owned();
            let (script, options) = match trouble {
                Trouble::Full => ("mount -t tmpfs -o \"$1\" tmpfs \"$2\"", format!("size={MIB}m")),
                Trouble::PowerLoss => (power::MOUNT, power::OPTIONS.to_owned()),
            };
            let words = ["unshare", "--mount", "sh", "-ec", script];
            let words = words.iter().map(ToString::to_string).collect();
            let holder = Holder::start_after(words, &[options, path])?;
            let power = match trouble {
                Trouble::Full => None,
                Trouble::PowerLoss => {
                    Some(Power::serve(holder.id()).map_err(|error| error.to_string())?)
                }
            };
            Ok(NodeDisk { holder, folder, power })
        };
        Ok(Self { nodes: folders.into_iter().map(mount).collect::<Result<_, String>>()? })
    }

    /// Returns the command that runs another command with a node's disk. The command returns to the
    /// driver's working folder first, because a process that enters a mount namespace begins at its
    /// root.
    pub(super) fn within(&self, node: usize, command: &[String]) -> Vec<String> {
        let (Some(disk), Ok(here)) = (self.nodes.get(node), std::env::current_dir()) else {
            return command.to_vec();
        };
        let mut whole = enter(&disk.holder, &["--mount"]);
        whole.extend(["sh", "-c", "cd \"$0\" && exec \"$@\""].map(str::to_owned));
        whole.push(here.to_string_lossy().into_owned());
        whole.extend_from_slice(command);
        whole
    }

    /// Calls `kill`, which kills a node, while cutting the power of its disk.
    pub(super) fn cut_power(&self, node: usize, kill: impl FnOnce()) {
        match self.nodes.get(node).and_then(|disk| disk.power.as_ref()) {
            Some(power) => power.cut(kill),
            None => kill(),
        }
    }

    /// Restores the power of a node's disk, if it was cut.
    pub(super) fn restore_power(&self, node: usize) {
        if let Some(power) = self.nodes.get(node).and_then(|disk| disk.power.as_ref()) {
            power.restore();
        }
    }

    /// Fills a node's disk.
    ///
    /// # Errors
    /// Fails with the system's error, unless this error says that the disk is full.
    pub(super) fn fill(&self, node: usize) -> io::Result<()> {
        let Some(disk) = self.nodes.get(node) else { return Ok(()) };
        let mut file = File::options().create(true).append(true).open(disk.fill())?;
        for bytes in PIECE_BYTES {
            let piece = vec![0; bytes];
            loop {
                match file.write_all(&piece) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Makes room again.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(super) fn make_room(&self, node: usize) -> io::Result<()> {
        match self.nodes.get(node).map(|disk| std::fs::remove_file(disk.fill())) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl NodeDisk {
    /// Returns the path of the file that fills the disk, as the driver sees it.
    fn fill(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        let folder = self.folder.strip_prefix("/").map_or(self.folder.as_path(), Path::new);
        root.join(folder).join(FILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead as _;

    #[test]
    fn command_with_simulated_disk_keeps_working_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let disks = match Disks::mount(vec![folder.path().to_owned()], Trouble::Full) {
            Ok(disks) => disks,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let words = disks.within(0, &["pwd".to_owned()]);
        let output = std::process::Command::new(&words[0]).args(&words[1..]).output();
        let output = String::from_utf8(output.expect("nsenter").stdout).expect("text");
        assert_eq!(Path::new(output.trim_end()), std::env::current_dir().expect("a folder"));
    }

    #[test]
    fn full_disk_rejects_writes_and_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = folder.path().to_owned();
        let disks = match Disks::mount(vec![storage.clone()], Trouble::Full) {
            Ok(disks) => disks,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let writes = |text: &str| {
            let script = format!("cat >>{}/kept", storage.display());
            let words = disks.within(0, &["sh".to_owned(), "-c".to_owned(), script]);
            let mut command = std::process::Command::new(&words[0]);
            command.args(&words[1..]).stdin(std::process::Stdio::piped());
            let mut child = command.stderr(std::process::Stdio::null()).spawn().expect("nsenter");
            // A shell that cannot open its file reads nothing.
            let _ = child.stdin.take().expect("a pipe").write_all(text.as_bytes());
            child.wait().expect("it ends").success()
        };
        disks.fill(0).expect("it is not full yet");
        assert!(!writes("some text"), "there is no room");
        disks.make_room(0).expect("it is there");
        assert!(writes("some text"));
        let outside = std::fs::read_dir(&storage).expect("the folder below").count();
        assert_eq!(outside, 0, "what is on the disk is not in the folder below it");
        drop(disks);
        drop(folder);
        assert!(!storage.exists(), "nothing is mounted there");
    }

    /// Tries all the ways in which a program can write and sync, in a language that offers all of
    /// them.
    const WRITES: &str = r#"
import mmap, os, sys
os.chdir(sys.argv[1])
def put(name, data, sync=None, flags=0):
    file = os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o644)
    os.pwrite(file, data, os.fstat(file).st_size)
    if sync: sync(file)
    return file
if sys.argv[2] == "write":
    for name, sync in ("none", None), ("fsync", os.fsync), ("fdatasync", os.fdatasync):
        put(name, b"first", sync)
    put("dsync", b"first", flags=os.O_DSYNC)
    put("sync", b"first", flags=os.O_SYNC)
    block = mmap.mmap(-1, 4096); block.write(b"d" * 4096)
    direct = os.open("direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
    os.pwritev(direct, [block], 0); os.fsync(direct); os.pwritev(direct, [block], 4096)
    mapped = put("mapped", bytes(8192), os.fsync)
    memory = mmap.mmap(mapped, 8192)
    memory[:5] = b"first"; memory.flush(); memory[4096:4100] = b"lost"
    os.mkdir("folder"); os.fsync(os.open(".", os.O_RDONLY))
    for name in ("fsync", "fdatasync", "dsync", "sync"): put(name, b", lost")
    os.rename("sync", "renamed"); os.unlink("dsync"); os.symlink("fsync", "link")
print(";".join(f"{n}={os.path.getsize(n)}:{open(n,'rb').read(5).decode()}"
    if os.path.isfile(n) else n for n in sorted(os.listdir("."))))
print("there", flush=True); sys.stdin.read()
"#;

    #[test]
    fn power_loss_drops_unsynced_data() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = folder.path().to_owned();
        let disks = match Disks::mount(vec![storage.clone()], Trouble::PowerLoss) {
            Ok(disks) => disks,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let start = |what: &str| {
            let path = storage.to_string_lossy().into_owned();
            let words = ["python3", "-c", WRITES, &path, what].map(str::to_owned);
            let words = disks.within(0, &words);
            let mut command = std::process::Command::new(&words[0]);
            command.args(&words[1..]).stdin(std::process::Stdio::piped());
            let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("nsenter");
            let mut said = io::BufReader::new(child.stdout.take().expect("a pipe")).lines();
            let mut next = || said.next().and_then(Result::ok).unwrap_or_default();
            let (files, there) = (next(), next());
            assert_eq!(there, "there", "{files}");
            (child, files)
        };
        let (mut child, before) = start("write");
        assert!(before.contains("none=5:first;renamed=11:first"), "{before}");
        disks.cut_power(0, || child.kill().expect("it runs"));
        child.wait().expect("it is killed");
        disks.restore_power(0);
        let (mut child, after) = start("look");
        child.kill().expect("it runs");
        child.wait().expect("it is killed");
        assert_eq!(
            after,
            "direct=4096:ddddd;dsync=5:first;fdatasync=5:first;folder;fsync=5:first;\
             mapped=8192:first;none=0:;sync=5:first"
        );
    }
}
