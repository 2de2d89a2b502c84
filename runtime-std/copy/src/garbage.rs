//! Arbitrary bytes as input for the unpacking code: from a fuzzer, and from the tests in this
//! module, which generate them at random.

use tar::Header;

use super::messages::Manifest;
use super::place::TargetDirectory;
use super::victim::Victim;

/// Unpacks bytes as a sender's archive after the announcement of a file and a directory. The
/// checksum of each header is corrected first, because random bytes would never have a valid one.
///
/// # Panics
/// Panics if anything that existed before changes, or if an unannounced entry appears.
pub fn archive(bytes: &[u8]) {
    let victim = Victim::new();
    let before = victim.seen();
    let mut place =
        TargetDirectory::take(&victim.to()).unwrap_or_else(|failure| panic!("{}", failure.text()));
    let names = ["file", "tree"].map(str::to_owned).to_vec();
    let expected = place.expect(&Manifest { names, bytes: 0 });
    if expected.is_ok() && place.unpack(&*with_sums(bytes)).is_ok() {
        // The archive may lack one of the two entries.
        let _ = place.settle();
    }
    drop(place);
    victim.assert_unchanged(&before, &["file", "tree"]);
}

/// Returns an archive whose headers have correct checksums.
fn with_sums(bytes: &[u8]) -> Vec<u8> {
    let mut archive = bytes.to_vec();
    let mut at = 0;
    while let Some(block) = archive.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<512>) {
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(block);
        header.set_cksum();
        block.copy_from_slice(header.as_bytes());
        let size =
            header.entry_size().ok().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
        at = at.saturating_add(512).saturating_add(size.checked_next_multiple_of(512).unwrap_or(0));
    }
    archive
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use tar::EntryType;

    use super::super::victim::entry;
    use super::*;

    fn any_entry() -> impl Strategy<Value = Vec<u8>> {
        let path = || {
            prop::sample::select(vec![
                "file",
                "tree/",
                "tree/file",
                "tree/link",
                "tree/link/new",
                "tree/within/",
                "private/",
                "./",
                "../outside/new",
                "private/secret",
                "leads-out/new",
                "/dev/shm/tramontane-garbage",
                "",
                "../../private",
                "../outside",
                "tree",
            ])
        };
        let kind =
            prop::sample::select(b"00000555522221346xgLKS7V".to_vec()).prop_map(EntryType::new);
        let change = (any::<prop::sample::Index>(), any::<u8>());
        (kind, path(), 0..0o10000_u32, path(), vec(any::<u8>(), 0..700), vec(change, 0..3))
            .prop_map(|(kind, path, mode, link, mut content, changes)| {
                if kind.is_gnu_longname() || kind.is_gnu_longlink() {
                    content = format!("{link}\0").into_bytes();
                } else if kind.is_dir() || kind.is_symlink() {
                    content.clear();
                }
                let mut bytes = entry(kind, path, mode, link, &content);
                for (at, byte) in changes.into_iter().filter(|(_, byte)| byte % 2 == 0) {
                    let at = at.index(512);
                    bytes[at] = byte;
                }
                bytes
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn random_bytes_change_no_existing_file(bytes in vec(any::<u8>(), 0..2000)) {
            archive(&bytes);
        }

        #[test]
        fn random_entries_change_no_existing_file(entries in vec(any_entry(), 0..8)) {
            archive(&[entries.concat(), vec![0; 1024]].concat());
        }
    }
}
