//! Bindings of the engine for Python: hand a scenario in, hand tables out.
//!
//! A scenario crosses as its effective TOML text, a result as JSON text and as Parquet files: no
//! type of the engine is mirrored in Python. Docstrings stand in `_native.pyi`.

mod bench;
mod captures;
mod effective;
mod failures;
mod finished;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "without_live.rs"]
mod live;
mod modules;
mod play;
mod plugins;
mod quantiles;
mod shared_objects;
mod stepping;
mod work;
mod worked;

use std::path::Path;

use aqmlab_aqm::Discipline;
use aqmlab_net::{Bytes, Rate};
use aqmlab_parquet::json_text;
use aqmlab_scenario::{ClassError, Scenario};
use aqmlab_sim::Memory;
use pyo3::exceptions::PyIndexError;
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use effective::{read_effective, read_record};
use failures::run_error;
use work::{bound, with_progress};

import_exception!(aqmlab.errors, AqmlabError);
import_exception!(aqmlab.errors, ScenarioError);
import_exception!(aqmlab.errors, PluginError);
import_exception!(aqmlab.errors, RunError);

/// The module `aqmlab._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::bench::{Bench, play_script};
    #[pymodule_export]
    use super::captures::{capture_arrivals, capture_segments, vectors_from_capture};
    #[pymodule_export]
    use super::finished::{seal, sync_folder};
    #[pymodule_export]
    use super::live::{live_missing, live_privileged};
    #[cfg(feature = "live")]
    #[pymodule_export]
    use super::live::{run_live, run_shell};
    #[pymodule_export]
    use super::plugins::{
        AckRecord, EventRecord, check_plugin_name, plugin_callbacks, plugin_records, plugin_value,
        plugins, register_class, register_compiled,
    };
    #[pymodule_export]
    use super::quantiles::{student_t_cdf, student_t_quantile};
    #[pymodule_export]
    use super::shared_objects::load_shared_object;
    #[pymodule_export]
    use super::stepping::{Stepper, step_all};
    #[pymodule_export]
    use super::worked::Worked;
    #[pymodule_export]
    use super::{
        catalog, content, engine, load_share, loaded_links, memory_free, offered_bps, parse,
        parse_bytes, play_source, population, population_key, result_schema, results_version, run,
        schema, set_population, to_json, tree_notes, uncongested, version,
    };
}

#[pyfunction]
fn version() -> String {
    aqmlab_record::version()
}

#[pyfunction]
fn engine() -> &'static str {
    aqmlab_sim::ENGINE
}

#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "lists come from Python by value"
)]
fn parse(text: &str, base_dir: &str, overrides: Vec<(String, String)>) -> PyResult<String> {
    let scenario = Scenario::load_text(text, Path::new(base_dir), &overrides);
    let scenario = scenario.map_err(|error| ScenarioError::new_err(error.to_string()))?;
    Ok(scenario.to_toml())
}

#[pyfunction]
fn content(text: &str) -> Option<String> {
    aqmlab_scenario::content(text)
}

#[pyfunction]
fn tree_notes(discipline: &str, rate: &str, packet: u32) -> PyResult<Vec<(String, String)>> {
    let wrong = |error: &dyn std::fmt::Display| ScenarioError::new_err(error.to_string());
    let discipline: Discipline = serde_json::from_str(discipline).map_err(|error| wrong(&error))?;
    let rate: Rate = rate.parse().map_err(|error| wrong(&error))?;
    Ok(discipline.notes(rate, packet))
}

#[pyfunction]
fn to_json(effective: &str) -> PyResult<String> {
    let scenario = read_record(effective)?;
    Ok(serde_json::to_string(&scenario).expect("a scenario holds only what JSON can say"))
}

#[pyfunction]
fn schema() -> String {
    format!("{:#}", Scenario::json_schema())
}

#[pyfunction]
fn result_schema() -> String {
    aqmlab_parquet::result_schema().to_string()
}

#[pyfunction]
fn results_version() -> u32 {
    aqmlab_record::RESULTS_VERSION
}

#[pyfunction]
#[pyo3(signature = (only=None))]
fn catalog(only: Option<&str>) -> String {
    aqmlab_scenario::catalog_of(only).to_string()
}

#[pyfunction]
fn uncongested(effective: &str, class_index: usize, population: f64) -> PyResult<String> {
    let scenario = with_class(effective, class_index)?;
    Ok(scenario.uncongested(class_index, population).to_toml())
}

#[pyfunction]
fn population(effective: &str, class_index: usize) -> PyResult<Option<f64>> {
    Ok(with_class(effective, class_index)?.population(class_index))
}

#[pyfunction]
fn population_key(effective: &str, class_index: usize) -> PyResult<&'static str> {
    Ok(with_class(effective, class_index)?.traffic[class_index].population_key())
}

#[pyfunction]
fn set_population(effective: &str, class_index: usize, population: f64) -> PyResult<String> {
    let mut scenario = with_class(effective, class_index)?;
    scenario.set_population(class_index, population);
    Ok(scenario.to_toml())
}

#[pyfunction]
fn loaded_links(effective: &str, class_index: usize) -> PyResult<Vec<(String, &'static str, f64)>> {
    let scenario = with_class(effective, class_index)?;
    let network = scenario.topology.network();
    let names: Vec<&String> = network.links.keys().collect();
    let hops = scenario.loaded_hops(class_index).into_iter();
    let loaded = hops.map(|hop| {
        let rate = network.link(hop).rate.bps() as f64;
        (names[hop.link].clone(), hop.direction(), rate)
    });
    Ok(loaded.collect())
}

#[pyfunction]
fn load_share(effective: &str, class_index: usize) -> PyResult<f64> {
    Ok(with_class(effective, class_index)?.load_share(class_index))
}

#[pyfunction]
fn play_source<'py>(
    py: Python<'py>,
    effective: &str,
    class_index: usize,
    seconds: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = with_class(effective, class_index)?;
    Memory::free().check(&scenario).map_err(run_error)?;
    let bytes = play::column_bytes(&scenario, class_index, seconds);
    let class = &scenario.traffic[class_index];
    let field = format!("traffic.{}.{}", class.name, class.population_key());
    let found = class.population().unwrap_or_default().to_string();
    let checked = Memory::free().check_bytes(bytes, &field, &found);
    checked.map_err(run_error)?;
    let played = play::play(py, &scenario, class_index, seconds)?;
    played.map_err(|error| class_error(&error))
}

#[pyfunction]
fn offered_bps(py: Python<'_>, effective: &str, class_index: usize) -> PyResult<f64> {
    let scenario = with_class(effective, class_index)?;
    Memory::free().check(&scenario).map_err(run_error)?;
    let offered = play::offered_bps(py, &scenario, class_index);
    offered.map_err(|error| class_error(&error))
}

/// A class cannot begin.
fn class_error(error: &ClassError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

#[pyfunction]
#[pyo3(signature = (effective, out_dir, progress=None, memory=None))]
fn run(
    py: Python<'_>,
    effective: &str,
    out_dir: Option<&str>,
    progress: Option<Bound<'_, PyAny>>,
    memory: Option<u64>,
) -> PyResult<String> {
    let scenario = read_effective(effective)?;
    let memory = bound(memory);
    let holding = plugins::interpreted(effective);
    let summary = with_progress(py, progress, holding, |tell| {
        let records = aqmlab_parquet::recorder(out_dir.map(Path::new), &scenario.measure);
        aqmlab_sim::run_within(memory, &scenario, records, tell).map_err(run_error)
    })?;
    Ok(json_text(&summary))
}

#[pyfunction]
fn memory_free() -> Option<u64> {
    Memory::free().most()
}

#[pyfunction]
fn parse_bytes(text: &str) -> PyResult<u64> {
    let bytes = text.parse::<Bytes>();
    Ok(bytes
        .map_err(|error| AqmlabError::new_err(error.to_string()))?
        .0)
}

fn with_class(effective: &str, index: usize) -> PyResult<Scenario> {
    let scenario = read_effective(effective)?;
    if index >= scenario.traffic.len() {
        return Err(PyIndexError::new_err(format!(
            "there is no traffic class {index}"
        )));
    }
    Ok(scenario)
}
