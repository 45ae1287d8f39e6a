//! `tcp` as a scenario writes it: one stack for both ends of a connection, or one for each.

use std::borrow::Cow;

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::tagged::{self, Located};
use aqmlab_tcp::Profile;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use toml::Value;

const CLIENT: &str = "client";
const SERVER: &str = "server";

/// The stacks of the ends of a class's connections.
///
/// Written as a profile's name, or a table whose `profile` names one and whose other keys replace
/// its values: both ends have it. A table with `client` and `server` gives each end one of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacks {
    /// That of the end which opens connections.
    pub client: Profile,
    /// That of the end which answers.
    pub server: Profile,
}

/// A stack for each end, as a file has it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Each {
    /// The stack of the client.
    #[schemars(with = "Stack")]
    client: Profile,
    /// The stack of the server.
    #[schemars(with = "Stack")]
    server: Profile,
}

impl Stacks {
    /// The same stack at both ends.
    pub fn both(stack: Profile) -> Self {
        Self {
            client: stack.clone(),
            server: stack,
        }
    }

    /// Client and server.
    pub const fn ends(&self) -> [&Profile; 2] {
        [&self.client, &self.server]
    }

    /// Client and server, each as it is with the other for a peer ([`Profile::with_peer`]).
    pub fn connected(&self) -> [Profile; 2] {
        let Self { client, server } = self;
        [client.with_peer(server), server.with_peer(client)]
    }

    /// The one stack of both ends, if they have the same.
    pub fn same(&self) -> Option<&Profile> {
        (self.client == self.server).then_some(&self.client)
    }

    /// Refuses stacks that mean nothing, and those that cannot talk to each other. The error is
    /// the field and the message.
    pub fn check(&self) -> Result<(), Problem> {
        if let Some(stack) = self.same() {
            return stack.check();
        }
        let [client, server] = self.ends();
        for (end, stack) in [(CLIENT, client), (SERVER, server)] {
            let under = |(field, message): Problem| (format!("{end}.{field}"), message);
            stack.check().map_err(under)?;
        }
        if client.handshake != server.handshake {
            let found = format!(
                "found {}, but the client's is {}",
                server.handshake, client.handshake
            );
            let right = "both ends open with a handshake, or neither does";
            return problem("server.handshake", format!("{found}; {right}"));
        }
        for (end, stack, other, peer) in [
            (CLIENT, client, SERVER, server),
            (SERVER, server, CLIENT, client),
        ] {
            if !stack.has_its_stamps_from(peer) {
                let message = format!(
                    "needs time stamps that the {other}'s stack does not send; give the {other} \
                     the same congestion control"
                );
                return problem(&format!("{end}.congestion_control"), message);
            }
        }
        Ok(())
    }
}

impl Default for Stacks {
    fn default() -> Self {
        Self::both(Profile::named(Profile::NAMES[0]).expect("the default profile ships"))
    }
}

impl Serialize for Stacks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// A stack for each end, as a file has it.
        #[derive(Serialize)]
        struct Each<'a> {
            client: &'a Profile,
            server: &'a Profile,
        }
        match self.same() {
            Some(stack) => Serialize::serialize(stack, serializer),
            None => Each {
                client: &self.client,
                server: &self.server,
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Stacks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let is_each =
            |table: &toml::Table| [CLIENT, SERVER].iter().any(|end| table.contains_key(*end));
        let read = if value.as_table().is_some_and(is_each) {
            tagged::from_value(value).map(|Each { client, server }| Self { client, server })
        } else {
            tagged::from_value(value).map(Self::both)
        };
        read.map_err(Located::pass)
    }
}

/// The schema of one stack: a profile's name, or a table of values.
struct Stack;

impl JsonSchema for Stack {
    fn schema_name() -> Cow<'static, str> {
        "Stack".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut table = Profile::json_schema(generator);
        // The named profile has what the table leaves out.
        table.remove("required");
        let mut schema = Schema::default();
        let names = json!({ "type": "string", "enum": Profile::NAMES });
        schema.insert("anyOf".to_owned(), json!([names, table]));
        schema
    }
}

impl JsonSchema for Stacks {
    fn schema_name() -> Cow<'static, str> {
        "Tcp".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Stack>();
        let each = generator.subschema_for::<Each>();
        let mut schema = Schema::default();
        schema.insert("anyOf".to_owned(), json!([one, each]));
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Stacks, String> {
        let table: toml::Table = format!("tcp = {text}").parse().unwrap();
        tagged::from_value(table["tcp"].clone()).map_err(|error: Located| error.to_string())
    }

    #[test]
    fn one_stack_stands_for_both_ends() {
        let linux = Profile::named("linux").unwrap();
        assert_eq!(read("\"linux\""), Ok(Stacks::both(linux.clone())));
        let each =
            read("{ client = \"linux\", server = { profile = \"freebsd-4.5\", ecn = true } }");
        let each = each.unwrap();
        assert_eq!(each.client, linux);
        assert!(each.server.ecn && each.server.profile == "freebsd-4.5");
        assert_eq!(each.check(), Ok(()));
        assert_eq!(each.same(), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["\"linux\"", "{ client = \"linux\", server = \"rfc\" }"] {
            let stacks = read(text).unwrap();
            let written = Value::try_from(&stacks).unwrap();
            assert_eq!(written.get(CLIENT).is_some(), stacks.same().is_none());
            assert_eq!(tagged::from_value(written), Ok(stacks), "{text}");
        }
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, message) in [
            (
                "{ client = \"linux\" }",
                "server: missing, and it has no default",
            ),
            (
                "{ client = \"linux\", server = \"rcf\" }",
                "server: found \"rcf\"; did you mean \"rfc\"?",
            ),
            (
                "{ client = \"linux\", server = \"rfc\", ecn = true }",
                "ecn: unknown key",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn ends_that_cannot_talk_to_each_other_are_refused() {
        for (text, field) in [
            (
                "{ client = \"rfc\", server = { mss = \"0 bytes\" } }",
                "server.mss",
            ),
            (
                "{ client = \"rfc\", server = \"ns-one-way\" }",
                "server.handshake",
            ),
            (
                "{ client = \"rfc\", server = { congestion_control = \"sync-tcp\" } }",
                "server.congestion_control",
            ),
        ] {
            let (found, _) = read(text).unwrap().check().unwrap_err();
            assert_eq!(found, field, "{text}");
        }
    }
}
