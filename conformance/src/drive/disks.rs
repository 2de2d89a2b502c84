//! Disks that can be full: a small file system of its own for each node's storage folder.
//!
//! It is in memory, in a mount namespace of the node's own, which a small process holds: nobody
//! else sees it, and it is gone when that process ends and the node with it, however the driver
//! ends. The driver fills it through that process's root.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::holder::{Holder, enter};

/// The size of a disk. A node's memory is taken only for what is on it.
const MIB: usize = 256;

/// What fills a disk is written in pieces of this size, and the last ones byte by byte.
const PIECE_BYTES: [usize; 3] = [1 << 20, 1 << 12, 1];

/// The file that fills it.
const FILL: &str = ".filled-by-the-driver";

/// The nodes' disks.
#[derive(Debug)]
pub(super) struct Disks {
    nodes: Vec<Disk>,
}

#[derive(Debug)]
struct Disk {
    holder: Holder,
    folder: PathBuf,
}

impl Disks {
    /// A disk for each of these folders, which are there.
    ///
    /// # Errors
    /// Why this system, or this user, cannot have them.
    pub(super) fn mount(folders: Vec<PathBuf>) -> Result<Self, String> {
        let mount = |folder: PathBuf| {
            let path = folder.to_string_lossy().into_owned();
            let size = format!("size={MIB}m");
            let words =
                ["unshare", "--mount", "sh", "-ec", "mount -t tmpfs -o \"$1\" tmpfs \"$2\""];
            let words = words.iter().map(ToString::to_string).collect();
            Ok(Disk { holder: Holder::start_after(words, &[size, path])?, folder })
        };
        Ok(Self { nodes: folders.into_iter().map(mount).collect::<Result<_, String>>()? })
    }

    /// The command that runs another with a node's disk, in the folder in which this program works:
    /// who enters a mount namespace is at its root first.
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

    /// Leaves no room on a node's disk.
    ///
    /// # Errors
    /// What the system says, if it is not that the disk is full.
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
    /// What the system says.
    pub(super) fn make_room(&self, node: usize) -> io::Result<()> {
        match self.nodes.get(node).map(|disk| std::fs::remove_file(disk.fill())) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Disk {
    /// The file that fills it, as it is seen from outside.
    fn fill(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        let folder = self.folder.strip_prefix("/").map_or(self.folder.as_path(), Path::new);
        root.join(folder).join(FILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_disk_works_where_the_driver_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let disks = match Disks::mount(vec![folder.path().to_owned()]) {
            Ok(disks) => disks,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let words = disks.within(0, &["pwd".to_owned()]);
        let output = std::process::Command::new(&words[0]).args(&words[1..]).output();
        let output = String::from_utf8(output.expect("nsenter").stdout).expect("text");
        assert_eq!(Path::new(output.trim_end()), std::env::current_dir().expect("a folder"));
    }

    #[test]
    fn a_full_disk_takes_nothing_and_nobody_else_sees_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = folder.path().to_owned();
        let disks = match Disks::mount(vec![storage.clone()]) {
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
}
