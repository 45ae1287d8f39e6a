#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| aqmlab_fuzz::layers(input));
