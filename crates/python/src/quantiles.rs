//! Student's t, for the confidence intervals of Python.

use pyo3::prelude::*;
use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

/// Newton's steps on the quantile of `statrs`, which is good to six digits only where there are
/// many degrees of freedom.
const POLISH: usize = 2;

#[pyfunction]
pub(crate) fn student_t_cdf(freedom: f64, value: f64) -> PyResult<f64> {
    Ok(student_t(freedom)?.cdf(value))
}

#[pyfunction]
pub(crate) fn student_t_quantile(freedom: f64, share: f64) -> PyResult<f64> {
    let distribution = student_t(freedom)?;
    if !(share > 0.0 && share < 1.0) {
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "share = {share}: a share between 0 and 1 is expected"
        )));
    }
    let mut value = distribution.inverse_cdf(share);
    for _ in 0..POLISH {
        value -= (distribution.cdf(value) - share) / distribution.pdf(value);
    }
    Ok(value)
}

fn student_t(freedom: f64) -> PyResult<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).map_err(|_| {
        pyo3::exceptions::PyValueError::new_err(format!(
            "freedom = {freedom}: a number above 0 is expected"
        ))
    })
}
