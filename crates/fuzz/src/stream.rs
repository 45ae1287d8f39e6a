//! Two end points with any stacks over a network that loses, copies, marks and delays as it likes:
//! the streams arrive exactly once and whole, or a connection gives up.

use aqmlab_net::{Bytes, Time};
use aqmlab_tcp::Profile;
use arbitrary::{Result, Unstructured};

use crate::stack;

#[path = "../../tcp/tests/net/mod.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod net;

use net::{Harm, Net};

/// No connection takes as long.
const LONG: Time = Time::from_secs(200_000);

/// Two stacks, and a network between them.
pub fn check(input: &[u8]) {
    let mut input = Unstructured::new(input);
    // Without a byte left every choice is the first one.
    let _ = transfer(&mut input);
}

fn transfer(input: &mut Unstructured<'_>) -> Result<()> {
    let same = input.arbitrary()?;
    let Some(ours) = stack::any(input)? else {
        return Ok(());
    };
    let theirs = if same {
        Some(ours.clone())
    } else {
        stack::any(input)?
    };
    let Some(theirs) = theirs else {
        return Ok(());
    };
    let share = |input: &mut Unstructured<'_>| Ok(f64::from(input.arbitrary::<u8>()?) / 1024.0);
    let harm = Harm {
        loss: share(input)?,
        duplication: share(input)?,
        marking: share(input)?,
        jitter: Time::from_millis(u64::from(input.arbitrary::<u8>()?)),
    };
    let writes = [
        input.int_in_range(1..=60_000)?,
        input.int_in_range(0..=60_000)?,
    ];
    let seed = input.arbitrary()?;
    let stacks = if same {
        [ours, theirs]
    } else {
        [ours, theirs].map(|stack| Profile {
            handshake: true,
            // The window of both: it is not carried.
            receive_buffer: Bytes(40_000),
            ..stack
        })
    };
    if stacks.iter().any(|stack| stack.check().is_err()) {
        return Ok(());
    }
    let mut net = Net::new([&stacks[0], &stacks[1]], writes, harm, seed);
    net.run(LONG);
    assert!(net.received[1] <= writes[0] && net.received[0] <= writes[1]);
    if !net.failed {
        assert_eq!(net.received, [writes[1], writes[0]], "at {}", net.now);
        assert_eq!(net.eof, [true; 2]);
    }
    Ok(())
}
