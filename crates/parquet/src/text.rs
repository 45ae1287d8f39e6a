//! JSON as Python's `json.dumps(content, indent=2, ensure_ascii=False)` writes it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};

/// What `summary.json` holds of a summary: JSON in lines, whose numbers stand as Python has them.
pub fn json_text(content: &impl Serialize) -> String {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, Python(PrettyFormatter::new()));
    let written = content.serialize(&mut serializer);
    written.expect("a summary holds only what JSON can say");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Lines as the inner formatter has them, numbers as Python has them.
struct Python(PrettyFormatter<'static>);

impl Formatter for Python {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // Both turn to exponents at the same numbers; Python gives them a sign and two digits.
        let text = format!("{value:?}");
        match text.split_once('e') {
            None => writer.write_all(text.as_bytes()),
            Some((digits, exponent)) => {
                let exponent: i32 = exponent.parse().map_err(io::Error::other)?;
                write!(writer, "{digits}e{exponent:+03}")
            }
        }
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What Python 3.11 prints of them.
    #[test]
    fn numbers_stand_as_python_has_them() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.3333333333333333"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (-2.5e-300, "-2.5e-300"),
            (5e-324, "5e-324"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1.2345e22, "1.2345e+22"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(json_text(&number), format!("{text}\n"));
        }
    }

    #[test]
    fn tables_stand_in_lines() {
        let content = json!({ "a": [1, null], "\u{fc}\n": {}, "b": { "c": [], "d": true } });
        let text = "{\n  \"a\": [\n    1,\n    null\n  ],\n  \"\u{fc}\\n\": {},\n  \"b\": {\n    \
                    \"c\": [],\n    \"d\": true\n  }\n}\n";
        assert_eq!(json_text(&content), text);
    }
}
