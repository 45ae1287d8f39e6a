//! Games played over the network: inputs up, frames or ticks down.

use std::collections::VecDeque;
use std::ops::Range;

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, RandomStream, Rate, Time};

use crate::datagrams;
use crate::error::SourceError;
use crate::model::Received;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::quality::Quality;
use crate::script::{Action, OpenDatagrams};
use crate::setting::Setting;

/// Players of a game that runs on a server.
#[parameters]
pub struct Game {
    /// Number of players.
    #[param(least = 1)]
    pub players: u32,
    /// Bit rate to each player, IP headers included. A game that the player's computer draws takes
    /// about 50 kbit/s at a `frame_rate` of 20.
    #[param(default = Rate::from_mbps(15))]
    pub rate: Rate,
    /// Frames or ticks per second. Each is sent as a burst of packets.
    #[param(default = 60.0, least = 1.0, most = 1000.0)]
    pub frame_rate: f64,
    /// Largest packet of a frame in IP bytes.
    #[param(default = "1240 bytes")]
    pub packet: Bytes,
    /// Inputs per second of each player.
    #[param(default = 125.0, least = 1.0, most = 1000.0)]
    pub input_rate: f64,
    /// Size of an input in IP bytes.
    #[param(default = "80 bytes")]
    pub input: Bytes,
    /// Each player starts at a random time within this span.
    #[param(default = "1 s")]
    pub start_within: Time,
}

/// Lengths of a datagram.
const DATAGRAM: std::ops::RangeInclusive<u64> = 29..=65_535;

impl Parameters for Game {
    const ABOUT: About = About {
        title: "Games over the network",
        paper: "J. Faerber, Network Game Traffic Modelling, NetGames 2002, for ticks and inputs; \
                operators state the rates of cloud games",
        purpose: "Players send small inputs and the server sends frames, both at constant rates \
                  whatever the network does. Result: the time from an input to the frame that \
                  shows it.",
        departures: &[
            "All frames have the same size and even spacing. The extreme-value distributions of \
             Faerber are left out.",
            "The server needs no time: a frame shows all inputs that arrived before it.",
        ],
        memory: "one entry for each player, for each packet in flight and for each input in the \
                 measured span",
    };

    fn check_together(&self) -> Result<(), Problem> {
        for (field, size) in [("packet", self.packet), ("input", self.input)] {
            if !DATAGRAM.contains(&size.0) {
                let right = "a datagram has 29 to 65535 bytes, 28 of them headers";
                return problem(field, format!("found {size}; {right}"));
            }
        }
        if self.frame_bytes() < *DATAGRAM.start() {
            let message = format!("found {}; a frame must have 29 bytes", self.rate);
            return problem("rate", message);
        }
        Ok(())
    }
}

impl Game {
    /// IP bytes of a frame.
    fn frame_bytes(&self) -> u64 {
        (self.rate.bps() as f64 / 8.0 / self.frame_rate).round() as u64
    }

    /// Sizes of the packets of a frame, as even as can be.
    fn packets(&self) -> Vec<u32> {
        let bytes = self.frame_bytes();
        let count = bytes.div_ceil(self.packet.0);
        let size = |n: u64| ((n + 1) * bytes / count - n * bytes / count) as u32;
        (0..count).map(size).collect()
    }
}

impl ModelParameters for Game {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "game"
players = 1
rate = "2 Mbit/s"
rtt = { kind = "constant", rtt = "20 ms" }
"#
    }

    population!(players in "players", Fixed);

    fn packets_per_s(&self) -> f64 {
        let packets = self.frame_rate * self.packets().len() as f64;
        f64::from(self.players) * (packets + self.input_rate)
    }

    fn is_adaptive(&self) -> bool {
        true
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let player = |number| {
            let mut draws: RandomStream = setting.stream("player", number);
            let place = (number, self.players);
            let (open, start) = datagrams::flow(setting, place, self.start_within, &mut draws);
            // Inputs and frames have unrelated phases.
            let phase = draws.uniform() / self.frame_rate;
            Player {
                open: OpenDatagrams {
                    token: FLOWS * number,
                    ..open
                },
                start,
                phase: Time::from_secs_f64(phase),
                inputs: VecDeque::new(),
                first_input: 0,
                come: Vec::new(),
                frames: VecDeque::new(),
                first_frame: 0,
            }
        };
        Ok(Box::new(GameSource {
            players: (0..self.players).map(player).collect(),
            sizes: self.packets(),
            gaps: [self.frame_rate, self.input_rate].map(|rate| Time::from_secs_f64(1.0 / rate)),
            input: self.input.0 as u32,
            span: Time::NEVER..Time::NEVER,
            quality: Quality::default(),
        }))
    }
}

/// Flows of a player, and timers: frames, inputs.
const FLOWS: u32 = 2;

#[derive(Clone, Debug)]
struct GameSource {
    players: Vec<Player>,
    /// Of the packets of a frame.
    sizes: Vec<u32>,
    /// Between frames, and between inputs.
    gaps: [Time; 2],
    /// Bytes of an input.
    input: u32,
    span: Range<Time>,
    quality: Quality,
}

#[derive(Clone, Debug)]
struct Player {
    open: OpenDatagrams,
    start: Time,
    phase: Time,
    /// When the inputs on their way were made, from number `first_input` on.
    inputs: VecDeque<Time>,
    first_input: u32,
    /// When the inputs were made that have come since the last frame.
    come: Vec<Time>,
    /// Frames on their way, from number `first_frame` on.
    frames: VecDeque<Frame>,
    first_frame: u32,
}

#[derive(Clone, Debug)]
struct Frame {
    /// Packets that have not come.
    left: u32,
    /// When the inputs that it shows were made.
    inputs: Vec<Time>,
}

impl Player {
    /// The server has an input.
    fn at_server(&mut self, number: u32) {
        let place = number.wrapping_sub(self.first_input) as usize;
        if let Some(&made) = self.inputs.get(place) {
            self.come.push(made);
            // An input that is overtaken does not count any more.
            self.inputs.drain(..=place);
            self.first_input = number + 1;
        }
    }

    /// The player has a packet; the inputs that the frame shows which is complete with it, and those
    /// of frames before it that never were.
    fn at_player(&mut self, number: u32, packets: u32) -> Vec<Time> {
        let place = (number / packets).wrapping_sub(self.first_frame) as usize;
        let Some(frame) = self.frames.get_mut(place) else {
            return Vec::new();
        };
        frame.left -= 1;
        if frame.left > 0 {
            return Vec::new();
        }
        self.first_frame += place as u32 + 1;
        let shown = self.frames.drain(..=place);
        shown.flat_map(|frame| frame.inputs).collect()
    }
}

impl ModelSource for GameSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for player in &self.players {
            let token = player.open.token;
            actions.push(Action::OpenDatagrams(player.open.clone()));
            let back = datagrams::back(&player.open, token + 1);
            actions.push(Action::OpenDatagrams(back));
            let at = player.start;
            actions.push(Action::WakeAt { at, token });
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let player = &mut self.players[(token / FLOWS) as usize];
        let timer = (token % FLOWS) as usize;
        if timer == 0 {
            if player.first_frame == 0 && player.frames.is_empty() {
                let (at, token) = (now + player.phase, token + 1);
                actions.push(Action::WakeAt { at, token });
            }
            player.frames.push_back(Frame {
                left: self.sizes.len() as u32,
                inputs: std::mem::take(&mut player.come),
            });
            let datagram = |&size| Action::Datagram { token, size };
            actions.extend(self.sizes.iter().map(datagram));
        } else {
            player.inputs.push_back(now);
            let size = self.input;
            actions.push(Action::Datagram { token, size });
        }
        let at = now + self.gaps[timer];
        actions.push(Action::WakeAt { at, token });
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_datagram(&mut self, now: Time, datagram: &Received, _actions: &mut Vec<Action>) {
        let player = &mut self.players[(datagram.token / FLOWS) as usize];
        if datagram.token % FLOWS == 1 {
            return player.at_server(datagram.number);
        }
        let shown = player.at_player(datagram.number, self.sizes.len() as u32);
        if self.span.contains(&now) {
            for made in shown {
                self.quality.round_trips.add_time(now - made);
            }
        }
    }

    fn measure(&mut self, span: &Range<Time>) {
        self.span = span.clone();
    }

    fn quality(&self, _now: Time, _stop: Time) -> Option<Quality> {
        Some(self.quality.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packets_of_a_frame_make_its_rate() {
        let game: Game = toml::from_str("players = 1").expect("a table");
        let packets = game.packets();
        // 31,250 bytes in 26 packets of up to 1240 bytes.
        assert_eq!((packets.len(), packets.iter().sum::<u32>()), (26, 31_250));
        assert!(packets.iter().all(|&size| size <= 1240));
    }

    #[test]
    fn a_lost_frame_is_answered_by_the_next() {
        let ms = Time::from_millis;
        let frame = |made| Frame {
            left: 2,
            inputs: vec![made],
        };
        let mut player = Player {
            open: OpenDatagrams {
                token: 0,
                client: 0,
                server: 0,
                rtt: ms(1),
                flipped: false,
                ecn: aqmlab_net::Ecn::NotEct,
            },
            start: ms(0),
            phase: ms(0),
            inputs: VecDeque::new(),
            first_input: 0,
            come: Vec::new(),
            frames: VecDeque::from([frame(ms(1)), frame(ms(2)), frame(ms(3))]),
            first_frame: 0,
        };
        // Packet 1, of the first frame, is lost.
        assert_eq!(player.at_player(0, 2), []);
        assert_eq!(player.at_player(2, 2), []);
        assert_eq!(player.at_player(3, 2), [ms(1), ms(2)]);
        assert_eq!(player.at_player(1, 2), []);
        assert_eq!(player.at_player(4, 2), []);
        assert_eq!(player.at_player(5, 2), [ms(3)]);
    }
}
