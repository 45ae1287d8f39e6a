//! Any arrivals, departures, pauses and rates to every discipline, with parameters that are its
//! own or arbitrary ones: nothing is lost or made up, limits hold, flows keep their order.

use aqmlab_net::{Ecn, FlowKey, Packet, Time};
use arbitrary::{Result, Unstructured};
use toml::{Table, Value};

#[path = "../../aqm/tests/model/mod.rs"]
mod model;

pub(crate) use model::CASES;
use model::{Case, Event};

/// More events add nothing but time.
const MOST_EVENTS: usize = 400;

/// A discipline and what happens to it.
pub fn check(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let Ok(Some(case)) = case(&mut input) else {
        return;
    };
    let mut events = Vec::new();
    while let (false, Ok(event)) = (input.is_empty(), event(&mut input)) {
        events.push(event);
        if events.len() == MOST_EVENTS {
            break;
        }
    }
    model::check(&case, &events);
}

/// A discipline; nothing if its parameters mean nothing.
fn case(input: &mut Unstructured<'_>) -> Result<Option<Case>> {
    let mut table: Table = input.choose(CASES)?.parse().expect("cases are TOML");
    for _ in 0..input.int_in_range(0..=3)? {
        let keys: Vec<String> = table.keys().filter(|key| *key != "kind").cloned().collect();
        let key = input.choose(&keys)?.clone();
        let value = value(input, &table[&key])?;
        table.insert(key, value);
    }
    let mut marking = table.clone();
    marking.insert("ecn".to_owned(), Value::Boolean(input.arbitrary()?));
    // Not every discipline knows ECN.
    Ok(model::case(&marking).or_else(|_| model::case(&table)).ok())
}

/// A value of the kind that stands there.
fn value(input: &mut Unstructured<'_>, old: &Value) -> Result<Value> {
    let size = |input: &mut Unstructured<'_>| {
        let small = i64::from(input.arbitrary::<u8>()?);
        Ok(if input.arbitrary()? {
            small
        } else {
            i64::from(input.arbitrary::<i32>()?)
        })
    };
    Ok(match old {
        Value::Boolean(_) => Value::Boolean(input.arbitrary()?),
        Value::Integer(_) => Value::Integer(size(input)?),
        Value::Float(_) => match input.arbitrary()? {
            true => Value::Float(f64::from(input.arbitrary::<u16>()?) / 4096.0),
            false => Value::Float(input.arbitrary()?),
        },
        Value::String(text) => match text.split_once(' ') {
            Some((_, unit)) => Value::String(format!("{} {unit}", size(input)?)),
            None => Value::String(text.clone()),
        },
        other => other.clone(),
    })
}

fn event(input: &mut Unstructured<'_>) -> Result<Event> {
    let what: u8 = input.arbitrary()?;
    Ok(match what & 7 {
        0..=2 => Event::Arrive(Packet {
            size: if what & 8 == 0 {
                1500
            } else {
                1 + u32::from(input.arbitrary::<u16>()?)
            },
            ecn: Ecn::from_bits(what >> 4),
            dscp: [0, 10, 12, 46][usize::from(what >> 6)],
            flow: FlowKey(u64::from(input.arbitrary::<u8>()?)),
        }),
        3 | 4 => Event::Depart,
        5 => Event::Pause(Time::from_micros(u64::from(input.arbitrary::<u16>()?))),
        // Up to half a second: ticks in longer ones only take time.
        6 => Event::Pause(Time::from_micros(
            u64::from(input.arbitrary::<u16>()?) << (what >> 6),
        )),
        _ => Event::Rate(1 + u64::from(input.arbitrary::<u32>()?) * u64::from(what >> 3)),
    })
}
