//! `aqmlab-bindgen MODULE.wasm FOLDER`: the module, its JavaScript and its types, in the folder.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        eprintln!("usage: aqmlab-bindgen MODULE.wasm FOLDER");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(module)
        .out_name("aqmlab")
        .remove_name_section(true)
        .remove_producers_section(true);
    let written = bindgen
        .web(true)
        .map(|bindgen| bindgen.typescript(true))
        .and_then(|bindgen| bindgen.generate(folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aqmlab-bindgen: {error:?}");
            ExitCode::FAILURE
        }
    }
}
