//! Tells the linker that there is no operating system and no C library beneath this image.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rerun-if-changed=link.ld");
    println!("cargo:rustc-link-arg-bins=-T{folder}/link.ld");
    for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    if std::env::var_os("CARGO_FEATURE_DEFMT").is_some() {
        // Destination of the log's strings. The logger's own code can panic, and this image proves
        // nothing about panics.
        println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
        println!("cargo:rustc-link-arg-bins=-Wl,--defsym=a_panic_is_reachable=0");
    }
}
