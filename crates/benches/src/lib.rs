//! What single parts of the engine cost, each by itself: `make bench-micro`. `make bench` measures
//! whole runs. A crate of their own, so that tests do not build what only benchmarks need.
