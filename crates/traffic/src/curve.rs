//! Tables that are functions: straight lines between knots.

use crate::shipped;

/// A piecewise linear function. Beyond its knots the first and the last line go on: PackMime's
/// tables mean their Pareto tails that way.
#[derive(Clone, Debug)]
pub(crate) struct Curve(Vec<Knot>);

#[derive(Clone, Copy, Debug)]
struct Knot {
    x: f64,
    y: f64,
}

impl Curve {
    /// The knots of a CSV file with the columns x (ascending) and y.
    pub(crate) fn read(csv: &str) -> Self {
        let rows = shipped::rows(csv).into_iter();
        Self(rows.map(|[x, y]| Knot { x, y }).collect())
    }

    pub(crate) fn at(&self, x: f64) -> f64 {
        let after = self.0.partition_point(|knot| knot.x < x);
        let after = after.clamp(1, self.0.len() - 1);
        let (low, high) = (self.0[after - 1], self.0[after]);
        low.y + (x - low.x) * (high.y - low.y) / (high.x - low.x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_through_the_knots_and_beyond() {
        let curve = Curve::read("x,y\n0,1\n1,3\n3,4\n");
        for (x, y) in [
            (-1.0, -1.0),
            (0.0, 1.0),
            (0.5, 2.0),
            (1.0, 3.0),
            (2.0, 3.5),
            (5.0, 5.0),
        ] {
            assert!((curve.at(x) - y).abs() < 1e-12, "{x}");
        }
    }
}
