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
  if (probability != probability) event->nan = 1; /* not a number: the engine ends the run */
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

/// The header in Rust, which starting points get.
#[path = "../../../python/aqmlab/plugins/starters/aqmlab.rs.txt"]
#[allow(
    unsafe_code,
    missing_docs,
    clippy::all,
    clippy::pedantic,
    unused,
    unreachable_pub,
    reason = "it is written for users"
)]
mod mirror;

macro_rules! same_layout {
    ($mirror:ty, $abi:ty: $($field:ident)*) => {
        assert_eq!(size_of::<$mirror>(), size_of::<$abi>(), stringify!($abi));
        $(assert_eq!(
            std::mem::offset_of!($mirror, $field),
            std::mem::offset_of!($abi, $field),
            "{}.{}", stringify!($abi), stringify!($field),
        );)*
    };
}

#[test]
fn the_header_in_rust_has_the_same_layout() {
    use aqmlab_plugin::abi;
    same_layout!(mirror::Event, abi::AqmlabEvent: now arrived flow size ecn dscp marks packets bytes
        queue queue_packets queue_bytes rate framing seed math);
    same_layout!(mirror::Ack, abi::AqmlabAck: now acked una max rtt segments flight mss cause resent
        slow_start reno base cwnd ssthresh pacing math);
    same_layout!(mirror::Math, abi::AqmlabMath: pow cbrt exp log);
    same_layout!(mirror::Field, abi::AqmlabField:);
    same_layout!(mirror::Head, abi::AqmlabHead:);
    same_layout!(mirror::Discipline<u64>, abi::AqmlabDiscipline: head start on_arrival on_overflow
        on_departure on_idle tick on_link on_change enqueue dequeue on_head);
    same_layout!(mirror::Control<u64>, abi::AqmlabControl: head start on_ack on_recovery_ack on_send
        on_loss on_timeout on_undo);
    let numbers = [mirror::ADMIT, mirror::SIGNAL, mirror::DROP, mirror::FORCE];
    assert_eq!(
        numbers,
        [
            abi::AQMLAB_ADMIT,
            abi::AQMLAB_SIGNAL,
            abi::AQMLAB_DROP,
            abi::AQMLAB_FORCE
        ]
    );
    let causes = [mirror::LOSS, mirror::ECHO, mirror::TIMEOUT];
    assert_eq!(
        causes,
        [abi::AQMLAB_LOSS, abi::AQMLAB_ECHO, abi::AQMLAB_TIMEOUT]
    );
    let forms = [
        mirror::NUMBER,
        mirror::INTEGER,
        mirror::BOOLEAN,
        mirror::TIME,
        mirror::BYTES,
        mirror::RATE,
        mirror::PACKETS,
    ];
    assert!(forms.into_iter().eq(0..7));
    assert_eq!(mirror::ABI, abi::AQMLAB_ABI);
}
