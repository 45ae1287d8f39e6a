//! Disciplines follow worked examples row by row; what they are: `tests/data/README.md`.

mod ared;
mod ared_feng;
mod avq;
mod bernoulli;
mod blue;
mod codel;
mod lqd;
mod pi;
mod pie;
mod red;
mod rem;
mod sred;
mod step;
mod trace;
