//! Every target in one executable: the variable `AQMLAB_FUZZ` names the one that is wanted.
#![no_main]

use std::sync::OnceLock;

use aqmlab_fuzz::{Target, named};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<&Target> = OnceLock::new();

fuzz_target!(|input: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("AQMLAB_FUZZ").expect("AQMLAB_FUZZ names a target");
        named(&name).expect("AQMLAB_FUZZ names a target of crates/fuzz")
    });
    (target.check)(input);
});
