//! Every bound of every parameter of a traffic model or a congestion control refuses what lies
//! outside, by its key and in one sentence; the sentences are listed in `snapshots`. What relates two
//! parameters is tested beside its model or control.

use aqmlab_declare::refusals;
use aqmlab_declare::schema::Described;
use aqmlab_tcp::CongestionControlKind;
use aqmlab_traffic::Model;
use toml::Table;

#[test]
fn what_lies_outside_of_a_bound_of_a_model_is_refused() {
    // What a class has beside its model.
    let common = ["rtt", "direction", "tcp", "start", "stop"];
    let cases = Model::examples().into_iter().map(|example| {
        let class: Table = example.parse().unwrap();
        let mut class = class["traffic"][0].as_table().unwrap().clone();
        class.retain(|key, _| !common.contains(&key));
        class.to_string()
    });
    let cases: Vec<String> = cases.collect();
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    insta::assert_snapshot!("models", refusals(&cases, Model::refused, Model::check));
}

#[test]
fn what_lies_outside_of_a_bound_of_a_control_is_refused() {
    let kinds = Described::of::<CongestionControlKind>().kinds();
    // A plug-in says itself what it refuses.
    let native = kinds.iter().filter(|kind| kind.name != "plugin");
    let cases = native.map(|kind| format!("kind = \"{}\"", kind.name));
    let cases: Vec<String> = cases.collect();
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    let messages = refusals(
        &cases,
        CongestionControlKind::refused,
        CongestionControlKind::check,
    );
    insta::assert_snapshot!("controls", messages);
}
