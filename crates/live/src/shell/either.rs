//! Waiting for one of two things.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// What has happened first.
pub(super) enum Either<A, B> {
    First(A),
    Second(B),
}

/// Waits for one of two things. If both have happened, it is the second where that `has_turn`.
pub(super) async fn either<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
    has_turn: bool,
) -> Either<A, B> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|context| {
        if has_turn && let Poll::Ready(found) = second.as_mut().poll(context) {
            return Poll::Ready(Either::Second(found));
        }
        if let Poll::Ready(found) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(found));
        }
        match has_turn {
            true => Poll::Pending,
            false => second.as_mut().poll(context).map(Either::Second),
        }
    })
    .await
}
