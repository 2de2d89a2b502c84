//! Opening the library, and finding a function in it.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use super::functions::Functions;

/// The library, by the name of its interface: a program that links it asks for the same.
const FILE: &CStr = c"libibverbs.so.1";

/// Why there are no verbs on this host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLibrary {
    /// There is no such library.
    #[error(
        "no RDMA here: libibverbs.so.1 is not installed; install libibverbs1 and ibverbs-providers \
         (on Fedora and RHEL libibverbs)"
    )]
    NotInstalled,
    /// It is there, and cannot be opened.
    #[error(
        "no RDMA here: libibverbs.so.1 cannot be opened ({reason}); install libibverbs1 again (on \
         Fedora and RHEL libibverbs)"
    )]
    CannotOpen {
        /// What the loader said.
        reason: String,
    },
    /// It is too old, or is not rdma-core's.
    #[error(
        "no RDMA here: libibverbs.so.1 has no {function} of {version}; install libibverbs1 of \
         rdma-core (on Fedora and RHEL libibverbs)"
    )]
    Lacks {
        /// The function that was looked for first.
        function: &'static str,
        /// The version of the interface that it belongs to.
        version: &'static str,
    },
}

static FUNCTIONS: OnceLock<Result<Functions, NoLibrary>> = OnceLock::new();

/// Opens the library at the first call; later calls give what the first gave.
pub(in crate::ffi) fn open() -> Result<(), NoLibrary> {
    let found = FUNCTIONS.get_or_init(|| Functions::find(&Library::open(FILE)?));
    found.as_ref().map(drop).map_err(Clone::clone)
}

/// The functions of the library that is open.
pub(super) fn functions() -> &'static Functions {
    match FUNCTIONS.get() {
        Some(Ok(functions)) => functions,
        // No pointer that libibverbs takes exists before it is open.
        _ => unreachable!("libibverbs is called before it is open"),
    }
}

/// A library that stays open as long as the process.
pub(super) struct Library {
    handle: NonNull<c_void>,
}

impl Library {
    /// Opens the library of a name, wherever the loader looks for it.
    pub(super) fn open(file: &CStr) -> Result<Self, NoLibrary> {
        // SAFETY: a string that ends. What libibverbs does when it is loaded is what it does in
        // each program that links it.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle)
            .map(|handle| Self { handle })
            .ok_or_else(|| why_not(&file.to_string_lossy(), loader_error()))
    }

    /// Where a function begins. Its version is asked for, as a linker would note it: a later
    /// version of the same name may take other structures.
    pub(super) fn find(
        &self,
        function: &'static str,
        version: &'static str,
    ) -> Result<NonNull<c_void>, NoLibrary> {
        let address = match (c_string(function), c_string(version)) {
            (Some(function), Some(version)) => self.address(&function, &version),
            _ => None,
        };
        address.ok_or(NoLibrary::Lacks { function, version })
    }

    #[cfg(target_env = "gnu")]
    fn address(&self, function: &CStr, version: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a library that is open, and strings that end.
        let address =
            unsafe { libc::dlvsym(self.handle.as_ptr(), function.as_ptr(), version.as_ptr()) };
        NonNull::new(address)
    }

    /// Other loaders know no versions: they have the newest.
    #[cfg(not(target_env = "gnu"))]
    fn address(&self, function: &CStr, _: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a library that is open, and a string that ends.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), function.as_ptr()) })
    }
}

fn c_string(text: &str) -> Option<std::ffi::CString> {
    std::ffi::CString::new(text).ok()
}

/// What the loader says of the call before; the loader keeps it for each thread.
fn loader_error() -> String {
    // SAFETY: always allowed; the result is null or a string that lives until the next call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader does not say why".to_owned();
    }
    // SAFETY: not null, and nothing was called since.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A library that is missing is told from one that cannot be used, or that misses another.
fn why_not(file: &str, reason: String) -> NoLibrary {
    if reason.contains(file) && reason.contains("No such file") {
        NoLibrary::NotInstalled
    } else {
        NoLibrary::CannotOpen { reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_its_package() {
        let error = Library::open(c"libibverbs-that-nobody-has.so.1").err();
        assert_eq!(error, Some(NoLibrary::NotInstalled));
        let text = NoLibrary::NotInstalled.to_string();
        assert!(text.contains("libibverbs.so.1 is not installed"), "{text}");
        assert!(text.contains("ibverbs-providers"), "{text}");
    }

    #[test]
    fn a_library_that_misses_another_is_not_taken_for_missing() {
        let reason = "libnl-3.so.200: cannot open shared object file: No such file or directory";
        let error = why_not("libibverbs.so.1", reason.to_owned());
        assert_eq!(error, NoLibrary::CannotOpen { reason: reason.to_owned() });
    }

    #[test]
    fn a_file_that_is_no_library_is_told_with_what_the_loader_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("libibverbs.so.1");
        std::fs::write(&file, "no library").expect("it is written");
        let name = std::ffi::CString::new(file.to_str().expect("UTF-8")).expect("no zero");
        let error = Library::open(&name).err();
        assert!(matches!(error, Some(NoLibrary::CannotOpen { .. })), "{error:?}");
    }

    /// The C library is a library that is always there, and knows no verbs.
    #[test]
    fn a_library_without_verbs_is_told_with_the_function_that_it_lacks() {
        let error = Functions::find(&Library::open(c"libc.so.6").expect("it is there")).err();
        let lacks = NoLibrary::Lacks { function: "ibv_get_device_list", version: "IBVERBS_1.1" };
        assert_eq!(error, Some(lacks.clone()));
        assert!(lacks.to_string().contains("ibv_get_device_list of IBVERBS_1.1"), "{lacks}");
    }

    #[test]
    fn a_function_is_found_by_its_version() {
        let library = Library::open(c"libc.so.6").expect("it is there");
        let version = if cfg!(target_arch = "x86_64") { "GLIBC_2.2.5" } else { "GLIBC_2.17" };
        assert!(library.find("getpid", version).is_ok());
        let other = library.find("getpid", "IBVERBS_1.1");
        assert_eq!(other, Err(NoLibrary::Lacks { function: "getpid", version: "IBVERBS_1.1" }));
    }

    #[test]
    fn what_the_first_call_gave_stays() {
        assert_eq!(open(), open());
    }
}
