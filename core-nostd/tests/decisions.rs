//! Decisions with several conditions, and whether branch coverage is enough for them.
//!
//! If each condition of a decision can be reached from only one other condition, then tests that
//! take both branches of every condition also show that each condition decides independently
//! (MC/DC): the conditions before it have one outcome each, and those after it are not evaluated.
//! `.ci/coverage` measures the branches. The core therefore contains no decision of another form.
//! In `(a && b) || c`, for example, `c` is reached from `a` and from `b`; the reordered `c || (a &&
//! b)` avoids this.
//!
//! Source: Comar, Guitton, Hainque, Quinot, "Formalization and comparison of MCDC and object
//! branch coverage criteria", ERTS 2012.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    reason = "a test of the sources, and no code of the core"
)]

use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ExprBinary, Item, UnOp};

/// The number of conditions in an expression from which each outcome is reached.
#[derive(Clone, Copy)]
struct Exits {
    is_true: usize,
    is_false: usize,
}

/// A single condition: anything other than `&&`, `||` or a negation.
const CONDITION: Exits = Exits { is_true: 1, is_false: 1 };

fn exits(expression: &Expr) -> Exits {
    match expression {
        Expr::Paren(inner) => exits(&inner.expr),
        Expr::Group(inner) => exits(&inner.expr),
        Expr::Unary(not) if matches!(not.op, UnOp::Not(_)) => {
            let Exits { is_true, is_false } = exits(&not.expr);
            Exits { is_true: is_false, is_false: is_true }
        }
        Expr::Binary(binary) => {
            let (left, right) = (exits(&binary.left), exits(&binary.right));
            match binary.op {
                BinOp::And(_) => {
                    Exits { is_true: right.is_true, is_false: left.is_false + right.is_false }
                }
                BinOp::Or(_) => {
                    Exits { is_true: left.is_true + right.is_true, is_false: right.is_false }
                }
                _ => CONDITION,
            }
        }
        _ => CONDITION,
    }
}

/// Line numbers of decisions in which a condition is reached from several others.
#[derive(Default)]
struct DecisionLines(Vec<usize>);

impl<'a> Visit<'a> for DecisionLines {
    fn visit_expr_binary(&mut self, binary: &'a ExprBinary) {
        let left = exits(&binary.left);
        let ways = match binary.op {
            BinOp::And(_) => left.is_true,
            BinOp::Or(_) => left.is_false,
            _ => 1,
        };
        if ways > 1 {
            self.0.push(binary.right.span().start().line);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_item(&mut self, item: &'a Item) {
        let attributes: &[Attribute] = match item {
            Item::Mod(module) => &module.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Impl(implementation) => &implementation.attrs,
            _ => &[],
        };
        let of_tests = |attribute: &Attribute| {
            let is_test = attribute.meta.require_list().map(|list| list.tokens.to_string());
            attribute.path().is_ident("cfg") && is_test.is_ok_and(|what| what.contains("test"))
        };
        if !attributes.iter().any(of_tests) {
            visit::visit_item(self, item);
        }
    }
}

fn found(source: &str) -> Vec<usize> {
    let mut found = DecisionLines::default();
    found.visit_file(&syn::parse_file(source).expect("Rust"));
    found.0
}

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, all);
        } else {
            all.push(path);
        }
    }
}

#[test]
fn core_source_has_no_condition_with_several_predecessors() {
    let mut all = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    assert!(all.len() > 100, "{} files", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let source = fs::read_to_string(&path).expect("a text");
        wrong.extend(found(&source).iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert_eq!(wrong, Vec::<String>::new(), "put what is single before what is joined");
}

#[test]
fn checker_finds_conditions_with_several_predecessors() {
    let decision = |condition: &str| found(&format!("fn f() {{\n  if {condition} {{ }}\n}}"));
    for right in [
        "a",
        "a && b && c",
        "a || b || c",
        "c || (a && b)",
        "c && (a || b)",
        "c && (a || !(b || d))",
        "!(a && b) || c",
        "!(a || b) && c",
        "let Some(a) = b && c && (d || e)",
        "f(a || b) && c",
        "x.any(|x| x.a || x.b) && c",
        "(a == (b && c)) || d",
    ] {
        assert_eq!(decision(right), [0; 0], "{right}");
    }
    for wrong in [
        "(a && b) || c",
        "a && b || c",
        "(a || b) && c",
        "!(a && b) || !(c && d) && e",
        "!(a || b) || c",
        "!(a && b) && c",
        "d && ((a || b) && c)",
        "let Some(a) = b && (c || d) && e",
        "f(|x| (a || b) && c)",
    ] {
        assert_eq!(decision(wrong), [2], "{wrong}");
    }
    assert_eq!(found("fn f() -> bool {\n    (a\n        && b)\n        || c\n}"), [4]);
    assert_eq!(found("#[cfg(test)]\nmod tests { fn f() -> bool { a && b || c } }"), [0; 0]);
}
