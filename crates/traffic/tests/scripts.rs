//! The programs that scripts stand for.

use aqmlab_net::{Role, Time};
use aqmlab_traffic::vector::{Adu, Body};
use aqmlab_traffic::{Exchange, Script, Step};

fn programs(script: &Script) -> [Vec<Step>; 2] {
    Role::BOTH.map(|party| {
        let steps: Vec<Step> = script.steps(party).collect();
        let closes = steps.iter().position(|step| *step == Step::Close);
        assert_eq!(closes, Some(steps.len() - 1), "{steps:?}");
        steps
    })
}

const fn ms(time: u64) -> Time {
    Time::from_millis(time)
}

const fn exchange(request: u64, think: u64, response: u64, pause: u64) -> Exchange {
    Exchange {
        request,
        think: ms(think),
        response,
        pause: ms(pause),
    }
}

#[test]
fn one_exchange_ends_with_the_close_of_the_server() {
    use Step::{Answered, Close, Pause, Receive, ReceiveClose, Send};
    let script = Script::single(300, 5000);
    let [client, server] = programs(&script);
    assert_eq!(client, [Send(300), ReceiveClose, Answered, Close]);
    assert_eq!(server, [Receive(300), Pause(Time::ZERO), Send(5000), Close]);
    assert_eq!(script.bytes(), [300, 5000]);
    assert!(script.asks_at_once());
}

#[test]
fn exchanges_follow_each_other_and_either_end_closes() {
    use Step::{Answered, Ask, Close, Pause, Receive, ReceiveClose, Send};
    let exchanges = vec![exchange(1, 2, 3, 4), exchange(5, 6, 7, 8)];
    let script = |closer| Script::Exchanges {
        exchanges: exchanges.clone(),
        closer,
    };
    let begin = [Send(1), Receive(3), Answered, Pause(ms(4)), Ask, Send(5)];
    let answers = [
        Receive(1),
        Pause(ms(2)),
        Send(3),
        Receive(5),
        Pause(ms(6)),
        Send(7),
    ];

    let [client, server] = programs(&script(Role::Server));
    assert_eq!(
        client,
        [&begin[..], &[ReceiveClose, Answered, Close]].concat()
    );
    assert_eq!(server, [&answers[..], &[Close]].concat());

    let [client, server] = programs(&script(Role::Client));
    let end = [Receive(7), Answered, Pause(ms(8)), Close];
    assert_eq!(client, [&begin[..], &end].concat());
    assert_eq!(server, [&answers[..], &[ReceiveClose, Close]].concat());
}

fn sequential(adus: &[(Role, u64, u64)]) -> Script {
    let adu = |&(party, bytes, pause)| {
        (
            party,
            Adu {
                bytes,
                pause: ms(pause),
            },
        )
    };
    Script::from(&Body::Sequential(adus.iter().map(adu).collect()))
}

const I: Role = Role::Client;
const A: Role = Role::Server;

#[test]
fn sides_that_speak_in_turn_wait_for_each_other() {
    use Step::{Answered, Ask, Close, Pause, Receive, ReceiveClose, Send};
    // A request in two pieces, an answer in two; the next request is never answered.
    let script = sequential(&[(I, 10, 1), (I, 20, 2), (A, 30, 3), (A, 40, 4), (I, 50, 5)]);
    let [client, server] = programs(&script);
    assert_eq!(
        client,
        [
            Send(10),
            Pause(ms(1)),
            Send(20),
            Receive(70),
            Answered,
            Pause(ms(4)),
            Send(50),
            Pause(ms(5)),
            Close
        ]
    );
    assert_eq!(
        server,
        [
            Receive(30),
            Pause(ms(2)),
            Send(30),
            Pause(ms(3)),
            Send(40),
            Receive(50),
            ReceiveClose,
            Close
        ]
    );
    // The acceptor begins and ends: what it says first is an answer to the connect.
    let script = sequential(&[(A, 10, 1), (I, 20, 2), (A, 30, 3)]);
    let [client, server] = programs(&script);
    assert_eq!(
        client,
        [
            Receive(10),
            Answered,
            Pause(ms(1)),
            Ask,
            Send(20),
            Receive(30),
            Answered,
            ReceiveClose,
            Close
        ]
    );
    assert_eq!(
        server,
        [
            Send(10),
            Receive(20),
            Pause(ms(2)),
            Send(30),
            Pause(ms(3)),
            Close
        ]
    );
    assert!(script.asks_at_once());
    let nobody_answers = sequential(&[(I, 10, 1)]);
    assert!(!nobody_answers.asks_at_once());
    assert_eq!(nobody_answers.bytes(), [10, 0]);
}

#[test]
fn an_adu_without_bytes_is_a_pause() {
    use Step::{Answered, Close, Pause, Receive, ReceiveClose, Send};
    let [client, server] = programs(&sequential(&[(I, 0, 1), (I, 5, 2), (I, 0, 3), (A, 6, 4)]));
    assert_eq!(
        client,
        [
            Pause(ms(1)),
            Send(5),
            Receive(6),
            Answered,
            ReceiveClose,
            Close
        ]
    );
    assert_eq!(
        server,
        [Receive(5), Pause(ms(5)), Send(6), Pause(ms(4)), Close]
    );
}

#[test]
fn sides_that_speak_at_once_do_not_wait() {
    use Step::{Close, Pause, ReceiveClose, Send};
    let adu = |bytes, pause| Adu {
        bytes,
        pause: ms(pause),
    };
    let body = Body::Concurrent([vec![adu(0, 3), adu(5, 1), adu(6, 2)], vec![adu(7, 9)]]);
    let script = Script::from(&body);
    let [client, server] = programs(&script);
    assert_eq!(
        client,
        [
            Pause(ms(3)),
            Send(5),
            Pause(ms(1)),
            Send(6),
            Pause(ms(2)),
            Close
        ]
    );
    assert_eq!(server, [Send(7), Pause(ms(9)), Close]);
    assert!(!script.asks_at_once());
    let [_, silent] = programs(&Script::from(&Body::Concurrent([vec![adu(5, 1)], vec![]])));
    assert_eq!(silent, [ReceiveClose, Close]);
}
