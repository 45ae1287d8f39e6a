//! What a tree may be and hardly anybody wants.

use aqmlab_net::Rate;

use super::plans::{Assured, Drawing, Network, Quantum, bytes, drawing};
use crate::check::Problem;

/// Refuses stated rates of children that exceed the stated rate of their parent.
pub(super) fn refuse_over_subscribed(
    params: &Network<'_>,
    drawing: &Drawing,
) -> Result<(), Problem> {
    let rates: Vec<_> = drawing
        .drawn
        .iter()
        .map(|drawn| match drawn.rate {
            Assured::Stated(rate) => Some(bytes(rate)),
            Assured::Fit => None,
        })
        .collect();
    over_subscribed(params, drawing, &rates).map_or(Ok(()), Err)
}

/// What hardly anybody wants in a tree before a link, where the largest packet is charged so many
/// bytes: a line of each kind.
pub(super) fn notes(params: &Network<'_>, link: Rate, largest: u32) -> Vec<Problem> {
    let Ok(drawing) = drawing(params) else {
        return Vec::new();
    };
    let rates = drawing.rates(bytes(link));
    let assured: Vec<_> = rates.iter().copied().map(Some).collect();
    [
        small_quantum(params, &drawing, (&rates, bytes(link)), largest),
        without_leaves(params, &drawing),
        over_subscribed(params, &drawing, &assured),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first of several, and how many others there are.
fn summed_up(mut found: impl Iterator<Item = Problem>) -> Option<Problem> {
    let (field, message) = found.next()?;
    Some(match found.count() {
        0 => (field, message),
        more => (field, format!("{message} (and {more} more)")),
    })
}

/// Nodes whose children have more assured than they have, as far as rates are known.
fn over_subscribed(
    params: &Network<'_>,
    drawing: &Drawing,
    rates: &[Option<u64>],
) -> Option<Problem> {
    let mut below = vec![0_u64; rates.len()];
    for (drawn, rate) in drawing.drawn.iter().zip(rates) {
        if let Some(parent) = drawn.parent {
            below[parent] += rate.unwrap_or(0);
        }
    }
    let found = members(params, drawing).filter_map(|(name, member)| {
        let own = rates[member].filter(|own| below[member] > *own)?;
        let times = below[member] as f64 / own as f64;
        let member = &drawing.drawn[member].name;
        let message =
            format!("over-subscribed {times:.2} times: the ceiling of {member} will not hold");
        Some((format!("nodes.{name}.rate"), message))
    });
    summed_up(found)
}

/// Nodes that carry nobody.
fn without_leaves(params: &Network<'_>, drawing: &Drawing) -> Option<Problem> {
    let mut carries: Vec<_> = drawing.drawn.iter().map(|it| it.plan.is_some()).collect();
    // Parents stand before their children.
    for (number, drawn) in drawing.drawn.iter().enumerate().rev() {
        if let (Some(parent), true) = (drawn.parent, carries[number]) {
            carries[parent] = true;
        }
    }
    let idle = members(params, drawing).filter(|(_, member)| !carries[*member]);
    let found = idle.map(|(name, member)| {
        let member = &drawing.drawn[member].name;
        let message = format!(
            "found no subscriber below {member}: name it as the parent of a plan, or leave it out"
        );
        (format!("nodes.{name}"), message)
    });
    summed_up(found)
}

/// Plans whose turn is shorter than the largest packet.
fn small_quantum(
    params: &Network<'_>,
    drawing: &Drawing,
    (rates, link): (&[u64], u64),
    largest: u32,
) -> Option<Problem> {
    let mut seen = vec![false; params.plans.0.len()];
    let leaves = drawing.drawn.iter().zip(rates);
    let found = leaves.filter_map(|(drawn, rate)| {
        let plan = drawn.plan?;
        let (name, stated) = &params.plans.0[plan];
        let quantum = stated.quantum.unwrap_or(params.quantum);
        let turn = quantum.bytes(*rate, bytes(drawn.ceil), link);
        if turn >= largest || std::mem::replace(&mut seen[plan], true) {
            return None;
        }
        let field = match stated.quantum {
            Some(_) => format!("plans.{name}.quantum"),
            None => "quantum".to_owned(),
        };
        let turn = match quantum {
            Quantum::Stated(_) => quantum.to_string(),
            _ => format!("{quantum}, {turn} bytes"),
        };
        let message = format!(
            "found {turn}, and a packet is charged up to {largest} bytes: plans take turns in \
             packets, not in bytes"
        );
        Some((field, message))
    });
    summed_up(found)
}

/// The nodes, and the entry that each of them is of.
fn members<'a>(
    params: &'a Network<'_>,
    drawing: &'a Drawing,
) -> impl Iterator<Item = (&'a str, usize)> {
    let nodes = params.nodes.0.iter();
    nodes.flat_map(|(name, _)| {
        drawing.names[name]
            .iter()
            .map(move |it| (name.as_str(), *it))
    })
}
