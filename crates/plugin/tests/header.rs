//! `aqmlab.h` is what cbindgen makes of `src/abi.rs`. `AQMLAB_RENEW=1` writes it anew.

use std::path::Path;

const START: &str = "\
/* The C ABI of aqmlab: queue disciplines and congestion controls of your own.

   A shared object exports one or both of

       const AqmlabDiscipline *aqmlab_discipline(void);
       const AqmlabControl *aqmlab_control(void);

   Compile it with `cc -O2 -shared -fPIC -ffp-contract=off -o libmine.so mine.c` and give it to a
   run: `aqmlab run SCENARIO --plugin ./libmine.so`. docs/extending.md has examples.

   The first argument of every callback is the record of an instance, which begins as zeros with
   its fields set. Generated from crates/plugin/src/abi.rs. */";

const END: &str = "\
/* What every head begins with, for a record and the records of its events. */
#define AQMLAB_HEAD(plugin, event, record) \\
  .abi = AQMLAB_ABI, .size = sizeof(plugin), .event_size = sizeof(event), \\
  .field_size = sizeof(AqmlabField), .record_size = sizeof(record)

/* A field of a record: a parameter with its default, one without, and a variable. */
#define AQMLAB_OPTION(record, field, type, value, text) \\
  { #field, text, type, AQMLAB_OPTIONAL, offsetof(record, field), value }
#define AQMLAB_NEEDED(record, field, type, text) \\
  { #field, text, type, AQMLAB_REQUIRED, offsetof(record, field), 0 }
#define AQMLAB_STATE(record, field, type, value) \\
  { #field, \"\", type, AQMLAB_VARIABLE, offsetof(record, field), value }

/* The next random number of the run, uniform on [0, 1): in on_arrival, enqueue, dequeue, on_head. */
static inline double aqmlab_draw(AqmlabEvent *event) { return event->draw(event->stream); }

/* Whether something of this probability happens; a number is drawn only where that is open. */
static inline int aqmlab_chance(AqmlabEvent *event, double probability) {
  return probability > 0.0 && (probability >= 1.0 || aqmlab_draw(event) < probability);
}";

#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = root.join("../../python/aqmlab/plugins/aqmlab.h");
    let exclude = ["aqmlab_pow", "aqmlab_cbrt", "aqmlab_exp", "aqmlab_log"].map(str::to_owned);
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        header: Some(START.to_owned()),
        trailer: Some(END.to_owned()),
        include_guard: Some("AQMLAB_H".to_owned()),
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        no_includes: true,
        documentation_style: cbindgen::DocumentationStyle::C,
        export: cbindgen::ExportConfig {
            include: ["AqmlabDiscipline", "AqmlabControl"]
                .map(str::to_owned)
                .to_vec(),
            exclude: exclude.to_vec(),
            ..Default::default()
        },
        ..Default::default()
    };
    let made = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/abi.rs"))
        .generate()
        .expect("abi.rs can be said in C");
    let mut text = Vec::new();
    made.write(&mut text);
    let text = String::from_utf8(text).expect("a header is text");
    if std::env::var_os("AQMLAB_RENEW").is_some() {
        std::fs::write(&place, &text).expect("the header can be written");
    }
    let stands = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(
        stands == text,
        "write it anew: AQMLAB_RENEW=1 cargo test -p aqmlab-plugin"
    );
}
