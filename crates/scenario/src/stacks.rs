//! `tcp` as a scenario writes it: one stack for both ends of a connection, or one for each.

use std::borrow::Cow;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::tagged::{self, Located};
use aqmlab_tcp::{EcnEcho, Profile, Recovery};
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use toml::Value;

const CLIENT: &str = "client";
const SERVER: &str = "server";
const ECHO: &str = "ecn_echo";

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
    /// One stack at both ends.
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

    /// The echo of marks of an end that states none: what the congestion controls of both ends need. An
    /// end without records has no accurate one.
    fn echo_of(&self, stack: &Profile) -> EcnEcho {
        let needed = self.ends().map(|end| end.congestion_control.echo());
        let has = |echo| needed.contains(&echo);
        if has(EcnEcho::Accurate) && stack.recovery == Recovery::RackTlp {
            EcnEcho::Accurate
        } else if has(EcnEcho::EachChange) {
            EcnEcho::EachChange
        } else {
            EcnEcho::default()
        }
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
            if stack.congestion_control.goes_by_marks() && !peer.ecn {
                let message = format!(
                    "goes by ECN marks, and the {other} has no ECN; expected ecn = true at both ends"
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
            client: End<'a>,
            server: End<'a>,
        }
        /// A stack, and its echo where reading would take another echo.
        #[derive(Serialize)]
        struct End<'a> {
            #[serde(flatten)]
            stack: &'a Profile,
            #[serde(flatten)]
            echo: toml::Table,
        }
        if let Some(stack) = self.same() {
            return Serialize::serialize(stack, serializer);
        }
        let echo = |stack: &Profile| {
            let mut echo = toml::Table::new();
            // What the end's own control does not need is not written of it.
            let classic = EcnEcho::default();
            let is_classic = [stack.ecn_echo, stack.congestion_control.echo()] == [classic; 2];
            if is_classic && self.echo_of(stack) != classic {
                let word = Value::try_from(classic).expect("a word");
                echo.insert(ECHO.to_owned(), word);
            }
            echo
        };
        let [client, server] = self.ends().map(|stack| End {
            stack,
            echo: echo(stack),
        });
        Each { client, server }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stacks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let is_each =
            |table: &toml::Table| [CLIENT, SERVER].iter().any(|end| table.contains_key(*end));
        let read = if value.as_table().is_some_and(is_each) {
            let states = |end| {
                value
                    .get(end)
                    .is_some_and(|stack| stack.get(ECHO).is_some())
            };
            let (client_states, server_states) = (states(CLIENT), states(SERVER));
            tagged::from_value(value).map(|Each { client, server }| {
                let mut each = Self { client, server };
                let (client, server) = (each.echo_of(&each.client), each.echo_of(&each.server));
                if !client_states {
                    each.client.ecn_echo = client;
                }
                if !server_states {
                    each.server.ecn_echo = server;
                }
                each
            })
        } else {
            tagged::from_value(value).map(Self::both)
        };
        read.map_err(Located::pass)
    }
}

/// The schema of one stack: a profile's name, or a table of values.
struct Stack;

impl schemars::JsonSchema for Stack {
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

impl schemars::JsonSchema for Stacks {
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
    fn an_end_echoes_as_the_control_of_the_other_needs_it() {
        let with = |client: &str, server: &str| {
            let end = |control: &str| {
                format!("{{ profile = \"linux\", ecn = true, congestion_control = {control} }}")
            };
            format!("{{ client = {}, server = {} }}", end(client), end(server))
        };
        let dctcp = "\"dctcp\"";
        let stated = "\"cubic\", ecn_echo = \"until-cwr\"";
        for (client, server, echoes) in [
            ("\"cubic\"", "\"reno\"", [EcnEcho::UntilCwr; 2]),
            ("\"cubic\"", dctcp, [EcnEcho::EachChange; 2]),
            (dctcp, "\"prague\"", [EcnEcho::Accurate; 2]),
            (stated, dctcp, [EcnEcho::UntilCwr, EcnEcho::EachChange]),
            (
                "\"reno\", recovery = \"reno\", tail_loss_probe = \"off\"",
                "\"prague\"",
                [EcnEcho::UntilCwr, EcnEcho::Accurate],
            ),
        ] {
            let stacks = read(&with(client, server)).unwrap();
            assert_eq!(stacks.check(), Ok(()), "{client} {server}");
            let found = stacks.ends().map(|end| end.ecn_echo);
            assert_eq!(found, echoes, "{client} {server}");
            let written = Value::try_from(&stacks).unwrap();
            assert_eq!(tagged::from_value(written), Ok(stacks));
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
            (
                "{ client = \"linux\", server = { profile = \"linux\", ecn = true, \
                 congestion_control = \"dctcp\" } }",
                "server.congestion_control",
            ),
        ] {
            let (found, _) = read(text).unwrap().check().unwrap_err();
            assert_eq!(found, field, "{text}");
        }
    }
}
