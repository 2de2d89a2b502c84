//! The spans in which a member starts, changes its view, and ends.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::format::FmtSpan;
use tramontane_runtime::group::{
    Application, Description, Forming, Messages, StartOptions, ViewChanged, start_stepped,
};
use tramontane_runtime::shared_memory::Root;

use crate::group_support::PATIENCE;

/// Text that a subscriber writes.
#[derive(Clone, Default)]
struct WrittenText(Arc<Mutex<Vec<u8>>>);

impl Write for WrittenText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Logs an event when its view changes, which appears within the view's span.
struct LogsViews;

impl Application for LogsViews {
    fn deliver(&mut self, _: &mut Messages<'_, '_>) {}

    fn view_changed(&mut self, _: &ViewChanged<'_>) {
        tracing::info!("the application sees the view");
    }
}

#[test]
fn spans_enclose_start_view_and_end() {
    let text = WrittenText::default();
    let writer = text.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_span_events(FmtSpan::NEW)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let folder = tempfile::tempdir().expect("a folder");
        let group = Description::builder("spans").nodes(1).build().expect("a group");
        let options = StartOptions {
            root: Root::under(folder.path()),
            forming: Forming { new_group: true, ..Forming::default() },
            ..StartOptions::new(0)
        };
        let member = start_stepped(group, options, LogsViews).expect("it starts");
        assert_eq!(member.leave(PATIENCE).err(), None);
    });
    let text = String::from_utf8(text.0.lock().expect("no panic").clone()).expect("text");
    for span in [
        "start{group=spans node=0}",
        "view_change{group=spans node=0 view=",
        "end{group=spans node=0}",
    ] {
        assert!(text.contains(span), "{span} is not in {text}");
    }
    let seen = text.lines().find(|line| line.ends_with("the application sees the view"));
    assert!(seen.is_some_and(|line| line.contains("view_change{")), "{text}");
}
