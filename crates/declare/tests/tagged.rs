//! Tables with a `kind`, and the errors that know where they are.

use aqmlab_declare::tagged::{Located, WordOrTable, from_value, nearest, word_or_table};
use aqmlab_declare::{schema, tagged};
use serde::Deserialize;
use serde_json::json;
use toml::Value;

tagged! {
    /// A shape.
    #[derive(Clone, Debug, PartialEq)]
    enum Shape {
        /// No extent.
        Point,
        /// All around.
        Circle {
            /// From the middle.
            radius: f64,
        },
        /// One inside another.
        Nested(Nested),
    }
}

/// A shape in a list of shapes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nested {
    inner: Vec<Shape>,
    #[serde(default)]
    count: u32,
}

fn read(text: &str) -> Result<Shape, Located> {
    from_value(Value::Table(text.parse().unwrap()))
}

fn problem(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn a_long_list_of_words_is_cut() {
    let words: Vec<_> = (100..200).map(|n| format!("word-{n}")).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let problem = Located::unknown_word("x", &words).message();
    assert!(problem.ends_with("word-123, ...; 100 in all)"), "{problem}");
    assert!(problem.len() < 300);
}

#[test]
fn kinds_are_read_and_written() {
    for (text, shape) in [
        ("kind = \"point\"\n", Shape::Point),
        (
            "kind = \"circle\"\nradius = 2.0\n",
            Shape::Circle { radius: 2.0 },
        ),
    ] {
        assert_eq!(read(text), Ok(shape.clone()));
        assert_eq!(toml::to_string(&shape).unwrap(), text);
    }
    let nested = read("kind = \"nested\"\ninner = [{ kind = \"circle\", radius = 1 }]").unwrap();
    let inner = vec![Shape::Circle { radius: 1.0 }];
    assert_eq!(nested, Shape::Nested(Nested { inner, count: 0 }));
}

/// A table that holds a shape.
#[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Holder {
    #[serde(deserialize_with = "word_or_table")]
    #[schemars(with = "WordOrTable<Shape>")]
    shape: Shape,
}

#[test]
fn a_word_stands_for_a_kind_with_its_defaults() {
    let hold = |text: &str| -> Result<Holder, String> {
        from_value(Value::Table(text.parse().unwrap())).map_err(|e: Located| e.to_string())
    };
    for text in ["shape = \"point\"", "shape = { kind = \"point\" }"] {
        assert_eq!(
            hold(text),
            Ok(Holder {
                shape: Shape::Point
            })
        );
    }
    assert_eq!(
        hold("shape = \"pont\""),
        Err(
            "shape: found \"pont\"; did you mean \"point\"? (allowed: point, circle, nested)"
                .to_owned()
        )
    );
    let error = hold("shape = { kind = \"pont\" }").unwrap_err();
    assert!(error.starts_with("shape.kind: found \"pont\""), "{error}");
    assert_eq!(
        hold("shape = \"circle\""),
        Err("shape.radius: missing, and it has no default".to_owned())
    );
    assert_eq!(
        hold("shape = 3"),
        Err("shape: found 3; expected a table".to_owned())
    );
    let schema = schema::schema_of::<Holder>();
    let shape = &schema["$defs"]["ShapeOrWord"]["anyOf"][0];
    assert_eq!(shape["enum"], json!(["point"]));
}

#[test]
fn errors_know_their_path_through_nested_kinds() {
    let nested = |inner: &str| problem(&format!("kind = \"nested\"\ninner = [{inner}]"));
    assert_eq!(
        nested("{ kind = \"point\" }, { kind = \"circle\", radius = \"2\" }"),
        "inner.circle.radius: found \"2\"; expected a number"
    );
    assert_eq!(
        nested("{ kind = \"nested\", inner = [{ kind = \"circel\" }] }"),
        "inner.nested.inner.circel.kind: found \"circel\"; did you mean \"circle\"? \
         (allowed: point, circle, nested)"
    );
    assert_eq!(nested("3"), "inner.0: found 3; expected a table");
    assert_eq!(
        problem("kind = \"circle\""),
        "radius: missing, and it has no default"
    );
    assert_eq!(
        problem("kind = 1"),
        "kind: found 1 (allowed: point, circle, nested)"
    );
    assert_eq!(
        problem("radius = 1"),
        "kind: missing (allowed: point, circle, nested)"
    );
    assert_eq!(
        problem("kind = \"point\"\nradius = 1"),
        "radius: unknown key (allowed: kind)"
    );
    assert_eq!(
        problem("kind = \"nested\"\ninner = []\ncout = 1"),
        "cout: unknown key; did you mean \"count\"? (allowed: inner, count)"
    );
}

/// Fields that may be missing, before and behind one that may not.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gaps {
    #[serde(default)]
    first: Option<u32>,
    #[serde(default = "seven")]
    second: u32,
    third: u32,
    #[serde(skip)]
    own: u32,
    #[serde(default)]
    fourth: Vec<u32>,
}

const fn seven() -> u32 {
    7
}

#[test]
fn a_missing_field_has_its_default_or_is_named() {
    let gaps = |text: &str| -> Result<Gaps, String> {
        from_value(Value::Table(text.parse().unwrap())).map_err(|e: Located| e.to_string())
    };
    let read = |first, second, fourth| Gaps {
        first,
        second,
        third: 3,
        own: 0,
        fourth,
    };
    assert_eq!(gaps("third = 3"), Ok(read(None, 7, Vec::new())));
    let all = "fourth = [4]\nthird = 3\nsecond = 2\nfirst = 1";
    assert_eq!(gaps(all), Ok(read(Some(1), 2, vec![4])));
    for (text, message) in [
        ("first = 1", "third: missing, and it has no default"),
        ("third = 3\nown = 1", "own: unknown key"),
        ("third = 3\nfourth = [\"x\"]", "fourth.0: found \"x\""),
        ("second = true", "second: found true"),
    ] {
        let problem = gaps(text).unwrap_err();
        assert!(problem.starts_with(message), "{problem}");
    }
}

#[test]
fn numbers_are_finite_and_in_range() {
    let circle = |radius: &str| problem(&format!("kind = \"circle\"\nradius = {radius}"));
    assert_eq!(circle("nan"), "radius: found NaN; expected a finite number");
    assert_eq!(
        circle("-inf"),
        "radius: found -inf; expected a finite number"
    );
    let count = |count: &str| problem(&format!("kind = \"nested\"\ninner = []\ncount = {count}"));
    let expected = "expected a whole number from 0 to 4294967295";
    assert_eq!(count("-1"), format!("count: found -1; {expected}"));
    assert_eq!(count("1.5"), format!("count: found 1.5; {expected}"));
}

#[test]
fn the_nearest_word_resembles_what_was_found() {
    let words = ["droptail", "red", "min_th", "max_th", "rfc"].map(str::to_owned);
    for (found, word) in [
        ("drop-tail", Some("droptail")),
        ("RED", Some("red")),
        ("min_threshold", Some("min_th")),
        ("maxth", Some("max_th")),
        ("rcf", Some("rfc")),
        ("fifo", None),
        ("", None),
    ] {
        assert_eq!(nearest(found, &words), word, "{found}");
    }
}

#[test]
fn what_a_user_wrote_is_repeated_in_part() {
    let long = problem(&format!("kind = \"{}\"", "x".repeat(10_000)));
    assert!(long.len() < 200, "{long}");
    // The separators of an error that travels as text mean nothing in a user's text.
    let odd = problem("kind = \"nested\"\ninner = [{ kind = \"a\\u001eb\" }]");
    assert!(odd.contains("\"a\\u{1e}b\""), "{odd}");
}
