//! The key shared by all members of a group.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The reason why a key could not be read.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not 64 hexadecimal digits.
    #[error(
        "{}: the file does not hold a key of 64 hexadecimal digits; create one with: openssl rand \
         -hex 32",
        path.display()
    )]
    Malformed {
        /// The file that was read.
        path: PathBuf,
    },
    /// Other users could have read the key.
    #[error(
        "{}: other users can read the key; set the file's mode to 600, and create a new key",
        path.display()
    )]
    Exposed {
        /// The file that was read.
        path: PathBuf,
    },
    /// This program was built without support for keys.
    #[error("{}: this program was built without keys; build it with the feature 'keys' of the package tramontane or tramontane-client", path.display())]
    NotBuilt {
        /// The file that was to be read.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file that was to be read.
        path: PathBuf,
        /// The error reported by the system.
        source: std::io::Error,
    },
}

/// 256 bits that are known only to the members.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey([u8; 32]);

impl SharedKey {
    /// Creates a key from the bytes themselves, which should be random.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses 64 hexadecimal digits. Returns `None` for anything else.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let text = text.trim().as_bytes();
        let mut key = [0; 32];
        if text.len() != 2 * key.len() {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(text.chunks_exact(2)) {
            let digit =
                |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(key))
    }

    /// Reads a key from a file with 64 hexadecimal digits, which no other user may read.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        const FILE_MAX: u64 = 4096;
        if !cfg!(feature = "keys") {
            return Err(KeyError::NotBuilt { path: path.to_owned() });
        }
        let io = |source| KeyError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.permissions().mode() & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.to_owned() });
        }
        let mut text = String::new();
        file.take(FILE_MAX).read_to_string(&mut text).map_err(io)?;
        Self::from_hex(&text).ok_or_else(|| KeyError::Malformed { path: path.to_owned() })
    }

    #[cfg(feature = "keys")]
    pub(super) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SharedKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hexadecimal_and_of_fixed_size() {
        let text = "00ff".repeat(16);
        let key = SharedKey::from_hex(&format!("{text}\n")).expect("a key");
        assert_eq!(key.bytes()[..2], [0, 255]);
        for bad in ["", "00", &"0g".repeat(32), &"00".repeat(33), &"é".repeat(32)] {
            assert!(SharedKey::from_hex(bad).is_none(), "{bad}");
        }
        assert_eq!(format!("{key:?}"), "SharedKey(..)");
    }

    #[test]
    fn key_readable_by_others_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        std::fs::write(&path, "ab".repeat(32)).expect("written");
        let mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        };
        mode(0o644);
        assert!(matches!(SharedKey::from_file(&path), Err(KeyError::Exposed { .. })));
        mode(0o600);
        assert!(SharedKey::from_file(&path).is_ok());
        std::fs::write(&path, "short").expect("written");
        assert!(matches!(SharedKey::from_file(&path), Err(KeyError::Malformed { .. })));
        let missing = SharedKey::from_file(&folder.path().join("none"));
        assert!(matches!(missing, Err(KeyError::Io { .. })));
    }
}
