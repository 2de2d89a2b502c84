//! A comparison of the declarations with this machine's C header. It needs libibverbs-dev and a C
//! compiler, so it is run by `.ci/full`.

use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

use super::structures::{self, ibv_gid, ibv_send_wr, wr_t};
use super::{functions, numbers};

/// A declared structure.
pub(super) struct Declared {
    pub(super) name: &'static str,
    pub(super) is_whole: bool,
    pub(super) bytes: usize,
    /// Names, offsets and sizes.
    pub(super) fields: &'static [(&'static str, usize, usize)],
}

/// Returns the size of a field's type.
pub(super) const fn size_of_field<S, F>(_: fn(&S) -> *const F) -> usize {
    size_of::<F>()
}

/// The first lines of each C program here.
const HEAD: &str = "#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\n";

/// Compiles a C program. Returns the compiler's output if that fails.
fn compile(folder: &tempfile::TempDir, text: &str) -> Result<std::path::PathBuf, String> {
    let (source, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&source, text).expect("it is written");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let arguments = ["-Werror", "-Wno-deprecated-declarations", "-o"];
    let output = Command::new(compiler).args(arguments).arg(&program).arg(&source).output();
    let output = output.expect("a C compiler");
    if output.status.success() {
        Ok(program)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn run(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(&folder, text).expect("it compiles");
    let output = Command::new(program).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text")
}

/// Two texts that must have the same lines: the declarations, and the output of a C program that
/// prints the header's.
#[derive(Default)]
struct Comparison {
    declared: String,
    program: String,
}

impl Comparison {
    fn number(&mut self, label: &str, declared: usize, c: &str) {
        writeln!(self.declared, "{label} {declared}").expect("a string");
        writeln!(self.program, "printf(\"{label} %zu\\n\", (size_t)({c}));").expect("a string");
    }

    fn field(&mut self, kind: &str, path: &str, place: usize, bytes: usize) {
        self.number(&format!("{kind}.{path} at"), place, &format!("offsetof({kind}, {path})"));
        let sized = format!("sizeof((({kind} *)0)->{path})");
        self.number(&format!("{kind}.{path} bytes"), bytes, &sized);
    }

    #[track_caller]
    fn check(&self) {
        let program = format!("{HEAD}int main(void) {{\n{}return 0;\n}}\n", self.program);
        let header = run(&program);
        for (declared, header) in self.declared.lines().zip(header.lines()) {
            assert_eq!(declared, header, "left is declared, right is the header's");
        }
        assert_eq!(self.declared.lines().count(), header.lines().count());
    }
}

#[test]
#[ignore = "needs libibverbs-dev and a C compiler: .ci/full"]
fn structures_match_the_header() {
    let mut comparison = Comparison::default();
    for declared in structures::DECLARED {
        let kind = format!("struct {}", declared.name);
        if declared.is_whole {
            comparison.number(&kind, declared.bytes, &format!("sizeof({kind})"));
        }
        for (field, place, bytes) in declared.fields {
            comparison.field(&kind, field.trim_start_matches("r#"), *place, *bytes);
        }
    }
    // The following types are unions in C, or have no name in C.
    let gid = "union ibv_gid";
    comparison.number("gid", size_of::<ibv_gid>(), &format!("sizeof({gid})"));
    comparison.number("gid aligned to", align_of::<ibv_gid>(), &format!("_Alignof({gid})"));
    let request = "struct ibv_send_wr";
    let within = [
        ("wr.rdma.remote_addr", offset_of!(ibv_send_wr, wr.rdma.remote_addr), 8),
        ("wr.rdma.rkey", offset_of!(ibv_send_wr, wr.rdma.rkey), 4),
        ("wr", offset_of!(ibv_send_wr, wr), size_of::<wr_t>()),
    ];
    for (path, place, bytes) in within {
        comparison.field(request, path, place, bytes);
    }
    comparison.check();
}

#[test]
#[ignore = "needs libibverbs-dev and a C compiler: .ci/full"]
fn constants_match_the_header() {
    let mut comparison = Comparison::default();
    for (name, value) in numbers::DECLARED {
        comparison.number(name, usize::try_from(*value).expect("32 bits"), name);
    }
    comparison.check();
}

/// Returns the C name of a Rust type.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(pointed) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(pointed));
    }
    if let Some(pointed) = rust.strip_prefix("*const ") {
        return format!("const {} *", c_type(pointed));
    }
    match rust {
        "" | "c_void" => "void",
        "c_int" => "int",
        "c_uint" => "unsigned int",
        "c_char" => "char",
        "u8" => "uint8_t",
        "u16" => "uint16_t",
        "u32" => "uint32_t",
        "usize" => "size_t",
        "ibv_gid" => "union ibv_gid",
        // The library exports this structure: it fills the fields up to `flags`.
        "ibv_port_attr" => "struct _compat_ibv_port_attr",
        structure => return format!("struct {structure}"),
    }
    .to_owned()
}

/// C allows a second declaration if it is identical, and rejects any other.
#[test]
#[ignore = "needs libibverbs-dev and a C compiler: .ci/full"]
fn functions_match_the_header() {
    let mut text = format!("{HEAD}#undef ibv_reg_mr\n#undef ibv_query_port\n");
    for (name, arguments, result) in functions::Functions::DECLARED {
        let arguments: Vec<String> = arguments.iter().map(|kind| c_type(kind)).collect();
        writeln!(text, "{} {name}({});", c_type(result), arguments.join(", ")).expect("a string");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = format!("{text}int main(void) {{ return 0; }}\n");
    compile(&folder, &program).expect("the declarations agree");
    let wrong = program.replace("int ibv_close_device(", "long ibv_close_device(");
    assert!(compile(&folder, &wrong).is_err(), "another declaration is not refused");
}

#[test]
#[ignore = "needs libibverbs: .ci/full"]
fn installed_library_has_all_functions() {
    assert_eq!(super::open(), Ok(()));
}
