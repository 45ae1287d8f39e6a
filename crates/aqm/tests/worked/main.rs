//! Disciplines follow worked examples row by row; what they are: `tests/data/README.md`.

mod codel;
mod red;
mod trace;
