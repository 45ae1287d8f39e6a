//! What `#[parameters]` makes of a declaration.

use aqmlab_declare::{Declared, parameters, schema, tagged};
use aqmlab_net::{Bytes, Time};

/// Everything that a parameter can be.
#[parameters]
pub(crate) struct Params {
    /// Required.
    #[param(least = 1, most = 16)]
    pub flows: u32,
    /// With a default, and bounds that a value must not reach.
    #[param(default = 0.5, above = 0.0, below = 1.0, changeable)]
    pub share: f64,
    /// Optional.
    #[param(least = "10 us", changeable)]
    pub interval: Option<Time>,
    /// As a scenario has it.
    #[param(default = "1500 bytes", check = aqmlab_declare::check::packet_size)]
    pub mtu: Bytes,
    /// A table.
    #[param(table)]
    pub inner: Option<Inner>,
}

/// A table without required keys.
#[parameters]
pub(crate) struct Inner {
    /// The default of its type.
    #[param(default)]
    pub ecn: bool,
    /// A default of its own.
    #[param(default = "5 ms", above = Time::ZERO)]
    pub target: Time,
    /// Written where it differs from the default of its type.
    #[param(default, unwritten)]
    pub gentle: bool,
    /// Written where it differs from a default of its own.
    #[param(default = 3, unwritten)]
    pub rounds: u32,
}

fn read(text: &str) -> Result<Params, String> {
    let table = text.parse::<toml::Table>().unwrap();
    tagged::from_value(table.into()).map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    let (key, message) = read(text).unwrap().check_each().unwrap_err();
    format!("{key}: {message}")
}

#[test]
fn what_is_left_out_has_its_default() {
    let params = read("flows = 2\ninner = {}").unwrap();
    assert_eq!(params.check_each(), Ok(()));
    assert_eq!(
        (params.share, params.interval, params.mtu),
        (0.5, None, Bytes(1500))
    );
    assert_eq!(params.inner, Some(Inner::default()));
    assert_eq!(Inner::default().target, Time::from_millis(5));
    assert_eq!(
        read("").unwrap_err(),
        "flows: missing, and it has no default"
    );
    assert!(
        read("flows = 2\nflow = 1")
            .unwrap_err()
            .contains("did you mean \"flows\"?")
    );
}

#[test]
fn each_bound_has_its_sentence() {
    let cases = [
        ("flows = 17", "flows: found 17; it must be from 1 to 16"),
        (
            "flows = 1\nshare = 1.0",
            "share: found 1; it must be above 0 and below 1",
        ),
        (
            "flows = 1\ninterval = '9 us'",
            "interval: found 9 us; it must be at least 10 us",
        ),
        (
            "flows = 1\nmtu = '0 bytes'",
            "mtu: found 0 bytes; a packet has 1 to 65535 bytes",
        ),
        (
            "flows = 1\ninner = { target = '0 s' }",
            "inner.target: found 0 s; it must be longer than 0 s",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected);
    }
}

#[test]
fn schema_and_list_of_changeable_keys_follow() {
    assert_eq!(Params::CHANGEABLE, ["share", "interval"]);
    let schema = schema::schema_of::<Params>();
    let share = &schema["properties"]["share"];
    assert_eq!(share["exclusiveMinimum"], 0.0);
    assert_eq!(share["exclusiveMaximum"], 1.0);
    assert_eq!(share["default"], 0.5);
    assert_eq!(schema["properties"]["flows"]["maximum"], 16);
    assert_eq!(schema["properties"]["mtu"]["default"], "1500 bytes");
    assert_eq!(schema["required"], serde_json::json!(["flows"]));
    let inner = schema::schema_of::<Inner>();
    assert_eq!(inner["properties"]["gentle"]["default"], false);
    assert_eq!(inner["properties"]["rounds"]["default"], 3);
}

#[test]
fn both_sides_of_each_bound_are_known_to_tests() {
    let found: Vec<_> = Params::refused()
        .iter()
        .map(|it| format!("{} {}", it.key, it.outside))
        .collect();
    assert_eq!(
        found,
        [
            "flows 0",
            "flows 17",
            "share 0.0",
            "share 1.0",
            "interval \"9.999 us\"",
            "mtu \"0 bytes\"",
            "mtu \"1024 GiB\"",
        ]
    );
}
