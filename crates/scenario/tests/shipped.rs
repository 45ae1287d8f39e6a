//! What ships: scenarios and the catalog.

use std::fs;
use std::path::{Path, PathBuf};

use aqmlab_aqm::Discipline;
use aqmlab_net::{QueueSize, Rate, Time};
use aqmlab_scenario::{Framing, Scenario, Topology, Traffic, catalog};
use aqmlab_tcp::{CongestionControlKind, PeerCache, Profile};
use aqmlab_traffic::{Model, Rtt};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn load(name: &str, overrides: &[(&str, &str)]) -> Scenario {
    let folder = root().join("scenarios");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let overrides: Vec<_> = overrides
        .iter()
        .map(|&(path, value)| (path.to_owned(), value.to_owned()))
        .collect();
    let mut read = |file: &str| fs::read_to_string(folder.join(file));
    Scenario::parse(&text, &overrides, &mut read).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn dumbbell(scenario: &Scenario) -> &aqmlab_scenario::Dumbbell {
    let Topology::Dumbbell(dumbbell) = &scenario.topology else {
        panic!("found {:?}", scenario.topology);
    };
    dumbbell
}

/// Reads a scenario that must name no files.
fn read_back(text: &str) -> Scenario {
    let mut read = |file: &str| panic!("reads {file}");
    Scenario::parse(text, &[], &mut read).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_scenario_loads_and_its_effective_form_is_the_same() {
    let mut count = 0;
    for folder in ["", "bench/", "disciplines/", "modern/"] {
        for entry in fs::read_dir(root().join("scenarios").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".toml") {
                let name = format!("{folder}{name}");
                let scenario = load(&name, &[]);
                let effective = scenario.to_toml();
                assert_eq!(read_back(&effective), scenario, "{name}");
                assert_eq!(read_back(&effective).to_toml(), effective, "{name}");
                count += 1;
            }
        }
    }
    assert!(count >= 7, "{count} scenarios");
}

#[test]
fn every_key_of_a_shipped_scenario_is_in_the_schema() {
    // The effective form spells out every default, so this compares what serde writes with what
    // the schema allows.
    let schema = Scenario::json_schema();
    for name in [
        "quickstart.toml",
        "open-loop.toml",
        "bulk.toml",
        "packmime.toml",
    ] {
        let effective = serde_json::to_value(load(name, &[])).unwrap();
        if let Err(problem) = conforms(&effective, &schema, &schema) {
            panic!("{name}: {problem}");
        }
    }
}

#[test]
fn the_schema_has_the_transport_of_a_class_that_names_none() {
    let schema = Scenario::json_schema();
    let classes = schema["$defs"]["Traffic"]["oneOf"].as_array().unwrap();
    let examples = Model::examples();
    assert_eq!(classes.len(), examples.len());
    for (class, example) in classes.iter().zip(examples) {
        let table: toml::Table = example.parse().unwrap();
        let read: Traffic = table["traffic"][0].clone().try_into().unwrap();
        let found = serde_json::to_value(&read).unwrap();
        let stated = found
            .get("transport")
            .map_or("tcp", |it| it.as_str().unwrap());
        assert_eq!(class["properties"]["kind"]["const"], found["kind"]);
        assert_eq!(
            class["properties"]["transport"]["default"], stated,
            "{example}"
        );
    }
}

/// Whether a value is one that a schema allows, as far as keys, words and alternatives go.
fn conforms(
    value: &serde_json::Value,
    schema: &serde_json::Value,
    root: &serde_json::Value,
) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return conforms(value, &root.pointer(&reference[1..]).unwrap().clone(), root);
    }
    for choices in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choices].as_array() {
            let answers: Vec<_> = choices.iter().map(|it| conforms(value, it, root)).collect();
            return match answers.iter().filter(|answer| answer.is_ok()).count() {
                1 => Ok(()),
                n => Err(format!("{n} alternatives fit {value}: {answers:?}")),
            };
        }
    }
    if let Some(word) = schema.get("const") {
        return if word == value {
            Ok(())
        } else {
            Err(format!("{value} is not {word}"))
        };
    }
    if let Some(table) = value.as_object() {
        for key in schema["required"].as_array().into_iter().flatten() {
            if !table.contains_key(key.as_str().unwrap()) {
                return Err(format!("{key} is missing"));
            }
        }
        for (key, value) in table {
            let Some(schema) = schema["properties"].get(key) else {
                return Err(format!("{key} is not in the schema"));
            };
            conforms(value, schema, root).map_err(|problem| format!("{key}: {problem}"))?;
        }
        return Ok(());
    }
    let is_right = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        _ => false,
    };
    if is_right {
        Ok(())
    } else {
        Err(format!("{value} is not a {}", schema["type"]))
    }
}

#[test]
fn a_preset_is_a_discipline_by_name() {
    let with = |discipline: &str| {
        let text = format!(
            r#"
            [topology]
            kind = "dumbbell"
            bottleneck = {{ rate = "10 Mbit/s", discipline = {discipline} }}
            [[traffic]]
            kind = "bulk"
            flows = 1
            rtt = {{ kind = "constant", rtt = "50 ms" }}
            "#
        );
        let scenario = read_back(&text);
        dumbbell(&scenario).bottleneck.forward.discipline.clone()
    };
    let limit = |packets: f64| {
        let limit = QueueSize::Packets(packets);
        Discipline::Droptail(aqmlab_aqm::droptail::Params { limit, ecn: false })
    };
    assert_eq!(with("\"droptail-240\""), limit(240.0));
    assert_eq!(with(r#"{ preset = "droptail-240" }"#), limit(240.0));
    let changed = r#"{ preset = "droptail-240", limit = "7 packets" }"#;
    assert_eq!(with(changed), limit(7.0));
    let Discipline::Ared(ared) = with(r#"{ preset = "ared-byte-120-360", ecn = true }"#) else {
        panic!("another discipline");
    };
    assert!(ared.ecn && ared.scale_by_size);
    // An override finds the keys of a preset, and a preset may be an override.
    let path = "topology.bottleneck.discipline";
    let overrides = [(path, "red-12-36"), (&format!("{path}.max_p"), "0.02")];
    let scenario = load("bulk.toml", &overrides);
    let Discipline::Red(red) = &dumbbell(&scenario).bottleneck.forward.discipline else {
        panic!("another discipline");
    };
    assert_eq!((red.max_p, red.min_th), (0.02, QueueSize::Packets(12.0)));
}

#[test]
fn the_laboratory_is_as_published() {
    let scenario = load("christiansen2000.toml", &[]);
    assert_eq!(scenario.measure.warm_up, Time::from_secs(20 * 60));
    assert_eq!(scenario.measure.duration, Time::from_secs(70 * 60));
    let dumbbell = dumbbell(&scenario);
    assert_eq!((dumbbell.hosts.clients, dumbbell.hosts.servers), (7, 7));
    assert_eq!(dumbbell.hosts.rate, Some(Rate::from_mbps(10)));
    let [forward, reverse] = [&dumbbell.bottleneck.forward, &dumbbell.bottleneck.reverse];
    assert_eq!(forward.rate, Rate::from_mbps(10));
    assert_eq!(forward.framing, Framing(38));
    assert_eq!(forward.device_ring.0, 0);
    let limit = |discipline: &Discipline| match discipline {
        Discipline::Droptail(params) => params.limit,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(&forward.discipline), QueueSize::Packets(120.0));
    assert_eq!(limit(&reverse.discipline), QueueSize::Packets(50.0));

    let class = &scenario.traffic[0];
    assert_eq!(class.population(), Some(3332.0));
    let freebsd = Profile {
        peer_cache: PeerCache::AtSyn,
        ..Profile::named("freebsd-2.2.8").unwrap()
    };
    assert_eq!(class.tcp.same(), Some(&freebsd));
    let Model::MahWeb(web) = &class.model else {
        panic!("{:?}", class.model)
    };
    assert_eq!((web.parallel, web.reply_scale), (2, 0.986));
    assert_eq!(web.think_cap, Time::from_millis(445_500));
    let Rtt::Pairs { matrix, extra, .. } = &class.rtt else {
        panic!("{:?}", class.rtt)
    };
    assert_eq!(*extra, Time::from_millis(1));
    assert_eq!(matrix[0][0], Time::from_millis(81));
    assert_eq!(matrix[6][6], Time::from_millis(61));
    // The paper's mean over all pairs: 79 ms.
    let sum: f64 = matrix.iter().flatten().map(|rtt| rtt.as_secs_f64()).sum();
    assert!((sum / 49.0 - 0.079).abs() < 0.0005, "{}", sum / 49.0);
}

/// The alternatives that comments of the scenarios offer.
#[test]
fn the_commented_alternatives_are_right() {
    let alternatives = ["christiansen2000.toml", "open-loop.toml", "bulk.toml"].map(|name| {
        let text = fs::read_to_string(root().join("scenarios").join(name)).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
        let settings = lines.filter_map(|line| line.split_once(" = "));
        let settings: Vec<_> = settings
            .filter(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
            .map(|(key, value)| (key.to_owned(), value.split(" #").next().unwrap().to_owned()))
            .collect();
        (name, settings)
    });
    let mut count = 0;
    for (name, settings) in alternatives {
        for (key, value) in settings {
            let path = match key.as_str() {
                "discipline" => format!("topology.bottleneck.{key}"),
                _ => format!("traffic.0.{key}"),
            };
            let mut text = fs::read_to_string(root().join("scenarios").join(name)).unwrap();
            if key == "rate" {
                text = text.replace("load = 0.9", "");
            }
            let mut read = |file: &str| fs::read_to_string(root().join("scenarios").join(file));
            let read = Scenario::parse(&text, &[(path, value)], &mut read);
            read.unwrap_or_else(|error| panic!("{name}: {error}"));
            count += 1;
        }
    }
    assert_eq!(count, 3);
}

#[test]
fn overrides_reach_everything() {
    let scenario = load(
        "quickstart.toml",
        &[
            ("seed", "7"),
            ("title", "other queue"),
            ("measure.record", "[\"queue\"]"),
            ("topology.bottleneck.discipline.limit", "60 packets"),
            (
                "topology.bottleneck.reverse.discipline.limit",
                "\"20 packets\"",
            ),
            ("traffic.browsers.reply_scale", "2"),
            ("traffic.0.tcp.ecn", "true"),
            ("traffic.browsers.rtt.extra", "2 ms"),
        ],
    );
    assert_eq!((scenario.seed, scenario.title.as_str()), (7, "other queue"));
    assert_eq!(scenario.measure.record, [aqmlab_scenario::Record::Queue]);
    let text = scenario.to_toml();
    for line in [
        "limit = \"60 packets\"",
        "limit = \"20 packets\"",
        "reply_scale = 2.0",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let class = &scenario.traffic[0];
    let tcp = class.tcp.same().unwrap();
    assert!(tcp.ecn && tcp.profile == "freebsd-2.2.8");
    assert!(matches!(class.rtt, Rtt::Pairs { extra, .. } if extra == Time::from_millis(2)));
    let replaced = "{ kind = \"red\", min_th = \"5 packets\", max_th = \"15 packets\", \
                    limit = \"480 packets\" }";
    let scenario = load(
        "quickstart.toml",
        &[("topology.bottleneck.discipline", replaced)],
    );
    assert!(matches!(
        dumbbell(&scenario).bottleneck.forward.discipline,
        Discipline::Red(_)
    ));
    assert!(matches!(
        dumbbell(&scenario).bottleneck.reverse.discipline,
        Discipline::Droptail(_)
    ));
}

#[test]
fn overrides_reach_each_end_and_a_congestion_control() {
    let scenario = load(
        "quickstart.toml",
        &[
            ("traffic.0.tcp.server.ecn", "true"),
            ("traffic.0.tcp.server.congestion_control", "cubic"),
            ("traffic.0.tcp.server.congestion_control.beta", "0.8"),
            ("traffic.0.tcp.client.mss", "1000 bytes"),
        ],
    );
    let [client, server] = scenario.traffic[0].tcp.ends();
    assert_eq!((client.ecn, server.ecn), (false, true));
    assert_eq!(client.profile, "freebsd-2.2.8");
    let CongestionControlKind::Cubic(cubic) = server.congestion_control else {
        panic!("{server:?}")
    };
    assert_eq!((cubic.beta, cubic.c), (0.8, 0.4));
    assert_eq!(read_back(&scenario.to_toml()), scenario);
}

#[test]
fn calibration_runs_one_class_uncongested() {
    let scenario = load("quickstart.toml", &[("topology.bottleneck.loss", "0.01")]);
    assert_eq!(scenario.population(0), None);
    let alone = scenario.uncongested(0, 99.6);
    assert_eq!(alone.population(0), Some(100.0));
    assert_eq!(alone.load, None);
    assert_eq!(read_back(&alone.to_toml()), alone);
    let [before, after] = [dumbbell(&scenario), dumbbell(&alone)];
    assert_eq!(after.hosts, before.hosts);
    for link in [&after.bottleneck.forward, &after.bottleneck.reverse] {
        assert_eq!(link.rate, Rate::from_mbps(100));
        assert_eq!(link.loss, 0.01);
        let Discipline::Droptail(params) = &link.discipline else {
            panic!("{link:?}")
        };
        assert!(matches!(params.limit, QueueSize::Packets(packets) if packets >= 1e6));
    }

    let mut calibrated = scenario.clone();
    calibrated.set_population(0, 3332.4);
    assert_eq!(calibrated.population(0), Some(3332.0));
    assert_eq!(read_back(&calibrated.to_toml()), calibrated);

    let poisson = load("open-loop.toml", &[]).uncongested(0, 12.5);
    assert_eq!(poisson.population(0), Some(12.5));
    assert_eq!(poisson.traffic[0].population_key(), "rate");
}

#[test]
fn the_population_of_every_model_is_what_it_is_set_to() {
    for example in Model::examples() {
        let text = format!(
            r#"
            [topology]
            kind = "dumbbell"
            [topology.bottleneck]
            rate = "10 Mbit/s"
            discipline = {{ kind = "droptail", limit = "50 packets" }}
            {example}
            "#
        );
        let mut scenario = read_back(&text);
        for population in [1.0, 7.0, 40.0] {
            scenario.set_population(0, population);
            assert_eq!(scenario.population(0), Some(population), "{example}");
            let written: toml::Table = scenario.to_toml().parse().unwrap();
            let key = scenario.traffic[0].population_key();
            let value = &written["traffic"][0][key];
            let number = value.as_str().map_or(value.to_string(), str::to_owned);
            let number = number.split(' ').next().unwrap().parse();
            assert_eq!(number, Ok(population), "{key} in\n{example}");
            assert_eq!(read_back(&scenario.to_toml()), scenario);
        }
    }
}

#[test]
fn a_load_outlives_the_calibration_of_all_classes_but_one() {
    let text = fs::read_to_string(root().join("scenarios/open-loop.toml")).unwrap();
    let class = text.find("[[traffic]]").unwrap();
    let second = text[class..].replace("\"fetches\"", "\"others\"");
    let mut scenario = read_back(&format!("{text}\n{second}"));
    scenario.set_population(0, 10.0);
    assert_eq!((scenario.load, scenario.population(1)), (Some(0.9), None));
    scenario.set_population(1, 10.0);
    assert_eq!(scenario.load, None);
    assert_eq!(scenario.uncongested(1, 3.0).traffic[0].name, "others");
}

#[test]
fn the_catalog_holds_every_name_with_its_meaning() {
    let catalog = catalog();
    let names = |section: &str| -> Vec<String> {
        catalog[section]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    let disciplines = names("disciplines");
    assert_eq!(disciplines.len(), Discipline::ABOUT.len());
    for kind in ["droptail", "red", "dcn", "fq-codel"] {
        assert!(disciplines.contains(&kind.to_owned()), "{kind}");
    }
    assert!(names("presets").contains(&"dcn-24".to_owned()));
    let traffic = names("traffic");
    for kind in ["mah-web", "packmime", "vectors", "cbr"] {
        assert!(traffic.contains(&kind.to_owned()), "{kind}");
    }
    assert_eq!(names("profiles"), Profile::NAMES);
    let rtt = names("rtt");
    for kind in ["constant", "pairs", "general"] {
        assert!(rtt.contains(&kind.to_owned()), "{kind}");
    }
    let transports = names("transports");
    for transport in ["recovery.sack", "congestion_control.cubic"] {
        assert!(transports.contains(&transport.to_owned()), "{transport}");
    }
    for (section, entries) in catalog.as_object().unwrap() {
        for (name, entry) in entries.as_object().unwrap() {
            assert!(
                entry["summary"].as_str().unwrap().len() > 3,
                "{section} {name}"
            );
            for parameter in entry["parameters"].as_array().unwrap() {
                let description = parameter["description"].as_str().unwrap();
                assert!(!description.is_empty(), "{section} {name} {parameter}");
            }
        }
    }
    let controls = catalog["transports"].as_object().unwrap().iter();
    let controls = controls.filter(|(name, _)| name.starts_with("congestion_control."));
    let disciplines = catalog["disciplines"].as_object().unwrap().iter();
    for (name, entry) in disciplines.chain(controls) {
        for text in ["title", "paper", "purpose", "memory"] {
            let text = entry["about"][text].as_str().unwrap();
            assert!(!text.is_empty(), "{name}");
        }
    }
    let beta = &catalog["transports"]["congestion_control.cubic"]["parameters"][1];
    assert_eq!(
        (&beta["name"], &beta["default"]),
        (&"beta".into(), &0.7.into())
    );
    let max_p = &catalog["disciplines"]["red"]["parameters"][4];
    assert_eq!(
        (&max_p["name"], &max_p["default"]),
        (&"max_p".into(), &0.1.into())
    );
    let mss = &catalog["profiles"]["freebsd-2.2.8"]["parameters"][3];
    assert_eq!(mss["value"], "1440 bytes");
    assert!(mss["note"].as_str().unwrap().contains("2,880"));
}
