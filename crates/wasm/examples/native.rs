//! `native SCENARIO.toml OUT [FILE]`: the run of a scenario by the native engine, for comparison
//! with the one in a browser: its rows in `OUT.rows`, its summary in `OUT.json`. `FILE` is what the
//! scenario names.

use std::error::Error;
use std::{env, fs};

use aqmlab_wasm::Lab;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [scenario, out, file @ ..] = arguments.as_slice() else {
        return Err("usage: native SCENARIO.toml OUT [FILE]".into());
    };
    let file = file.first().map(fs::read_to_string).transpose()?;
    let mut lab = Lab::new(&fs::read_to_string(scenario)?, true, file)?;
    let summary = lab.finish()?;
    fs::write(format!("{out}.rows"), lab.rows())?;
    fs::write(format!("{out}.json"), summary)?;
    Ok(())
}
