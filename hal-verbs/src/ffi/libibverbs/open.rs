//! Loading of the library, or its use as the program has linked it, and lookup of its functions.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use super::functions::Functions;

/// The library's file name, which includes its interface version: a program linked against it asks
/// for the same file.
const FILE: &CStr = c"libibverbs.so.1";

/// The reason that verbs are unavailable on this host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLibrary {
    /// The library does not exist.
    #[error(
        "RDMA is not available: libibverbs.so.1 is not installed; install libibverbs1 and \
         ibverbs-providers (on Fedora and RHEL libibverbs)"
    )]
    NotInstalled,
    /// The library exists but cannot be loaded.
    #[error(
        "RDMA is not available: libibverbs.so.1 cannot be loaded ({reason}); reinstall libibverbs1 \
         (on Fedora and RHEL libibverbs)"
    )]
    CannotOpen {
        /// The loader's message.
        reason: String,
    },
    /// The library is too old, or is not the one from rdma-core.
    #[error(
        "RDMA is not available: libibverbs.so.1 has no {function} of {version}; install \
         rdma-core's libibverbs1 (on Fedora and RHEL libibverbs)"
    )]
    Lacks {
        /// The first missing function.
        function: &'static str,
        /// The version of the function's interface.
        version: &'static str,
    },
}

static FUNCTIONS: OnceLock<Result<Functions, NoLibrary>> = OnceLock::new();

/// Loads the library on the first call. Later calls return the same result.
pub(in crate::ffi) fn open() -> Result<(), NoLibrary> {
    result_of(FUNCTIONS.get_or_init(|| Functions::find(&Library::open(FILE)?)))
}

/// Finds a function of the linked library by its name.
pub type LinkedFunctions = fn(function: &str) -> Option<NonNull<c_void>>;

/// Uses libibverbs as this program has linked it, instead of loading it. Call this before any
/// device is requested; later it has no effect. The package in `hal-verbs/rdma-sys` calls it with
/// the functions of `rdma-sys`.
///
/// # Errors
/// Fails if a function is missing.
///
/// # Safety
/// Each address that `find` returns is that of the function of this name in `<infiniband/verbs.h>`,
/// in the version to which a linker binds it.
pub unsafe fn link(find: LinkedFunctions) -> Result<(), NoLibrary> {
    result_of(FUNCTIONS.get_or_init(|| Functions::find(&Library::Linked(find))))
}

fn result_of(found: &Result<Functions, NoLibrary>) -> Result<(), NoLibrary> {
    found.as_ref().map(drop).map_err(Clone::clone)
}

/// Returns the functions of the loaded library.
pub(super) fn functions() -> &'static Functions {
    match FUNCTIONS.get() {
        Some(Ok(functions)) => functions,
        // Every call takes a pointer from libibverbs, which cannot exist before the library has
        // been loaded.
        _ => unreachable!("libibverbs is called before it is open"),
    }
}

/// A library that stays loaded until the process ends.
pub(super) enum Library {
    /// Loaded with this handle.
    Loaded(NonNull<c_void>),
    /// Linked by the program.
    Linked(LinkedFunctions),
}

impl Library {
    /// Loads the library with this name from the loader's search path.
    pub(super) fn open(file: &CStr) -> Result<Self, NoLibrary> {
        // SAFETY: the string is terminated. Loading libibverbs this way has the same effects as in
        // every program that links it.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle)
            .map(Self::Loaded)
            .ok_or_else(|| why_not(&file.to_string_lossy(), loader_error()))
    }

    /// Returns the address of a function. Like a linker, asks for a specific version, because a
    /// later version with the same name may take other structures.
    pub(super) fn find(
        &self,
        function: &'static str,
        version: &'static str,
    ) -> Result<NonNull<c_void>, NoLibrary> {
        let address = match (self, c_string(function), c_string(version)) {
            (Self::Linked(find), ..) => find(function),
            (Self::Loaded(handle), Some(function), Some(version)) => {
                address(*handle, &function, &version)
            }
            _ => None,
        };
        address.ok_or(NoLibrary::Lacks { function, version })
    }
}

#[cfg(target_env = "gnu")]
fn address(library: NonNull<c_void>, function: &CStr, version: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the library is loaded, and the strings are terminated.
    NonNull::new(unsafe { libc::dlvsym(library.as_ptr(), function.as_ptr(), version.as_ptr()) })
}

/// Other loaders do not support versions, and return the newest one.
#[cfg(not(target_env = "gnu"))]
fn address(library: NonNull<c_void>, function: &CStr, _: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the library is loaded, and the string is terminated.
    NonNull::new(unsafe { libc::dlsym(library.as_ptr(), function.as_ptr()) })
}

fn c_string(text: &str) -> Option<std::ffi::CString> {
    std::ffi::CString::new(text).ok()
}

/// Returns the loader's message about the previous call, which the loader keeps per thread.
fn loader_error() -> String {
    // SAFETY: the call is always allowed; the result is null or a string that is valid until the
    // next call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gives no reason".to_owned();
    }
    // SAFETY: the pointer is not null, and nothing has been called since.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Distinguishes a missing library from one that is unusable or lacks a library of its own.
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
    fn missing_library_error_names_its_package() {
        let error = Library::open(c"libibverbs-that-nobody-has.so.1").err();
        assert_eq!(error, Some(NoLibrary::NotInstalled));
        let text = NoLibrary::NotInstalled.to_string();
        assert!(text.contains("libibverbs.so.1 is not installed"), "{text}");
        assert!(text.contains("ibverbs-providers"), "{text}");
    }

    #[test]
    fn missing_dependency_is_distinguished_from_missing_library() {
        let reason = "libnl-3.so.200: cannot open shared object file: No such file or directory";
        let error = why_not("libibverbs.so.1", reason.to_owned());
        assert_eq!(error, NoLibrary::CannotOpen { reason: reason.to_owned() });
    }

    #[test]
    fn invalid_library_error_quotes_the_loader() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("libibverbs.so.1");
        std::fs::write(&file, "no library").expect("it is written");
        let name = std::ffi::CString::new(file.to_str().expect("UTF-8")).expect("no zero");
        let error = Library::open(&name).err();
        assert!(matches!(error, Some(NoLibrary::CannotOpen { .. })), "{error:?}");
    }

    /// The C library always exists, and contains no verbs.
    #[test]
    fn library_without_verbs_error_names_missing_function() {
        let error = Functions::find(&Library::open(c"libc.so.6").expect("it is there")).err();
        let lacks = NoLibrary::Lacks { function: "ibv_get_device_list", version: "IBVERBS_1.1" };
        assert_eq!(error, Some(lacks.clone()));
        assert!(lacks.to_string().contains("ibv_get_device_list of IBVERBS_1.1"), "{lacks}");
    }

    #[test]
    fn library_function_is_found_by_symbol_version() {
        let library = Library::open(c"libc.so.6").expect("it is there");
        let version = if cfg!(target_arch = "x86_64") { "GLIBC_2.2.5" } else { "GLIBC_2.17" };
        assert!(library.find("getpid", version).is_ok());
        let other = library.find("getpid", "IBVERBS_1.1");
        assert_eq!(other, Err(NoLibrary::Lacks { function: "getpid", version: "IBVERBS_1.1" }));
    }

    #[test]
    fn linked_library_needs_all_functions() {
        let error = Functions::find(&Library::Linked(|_| None)).err();
        let lacks = NoLibrary::Lacks { function: "ibv_get_device_list", version: "IBVERBS_1.1" };
        assert_eq!(error, Some(lacks));
    }

    #[test]
    fn library_is_opened_once() {
        assert_eq!(open(), open());
    }
}
