//! Plug-ins that are Python classes, and those that numba compiles.
#![expect(
    unsafe_code,
    reason = "a record is lent to Python for the length of a callback (`Lent`), and functions that \
              numba has compiled are called through their addresses"
)]

use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::mem::{offset_of, size_of};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use aqmlab_plugin::abi::{
    AQMLAB_ABI, AqmlabAck, AqmlabControl, AqmlabDiscipline, AqmlabEvent, AqmlabField, AqmlabHead,
    aqmlab_cbrt, aqmlab_exp, aqmlab_log, aqmlab_pow,
};
use aqmlab_plugin::failure::{self, Failure};
use aqmlab_plugin::{
    Callback, Callbacks, Field, Form, Instance, Maker, Makers, NOTHING, Plugin, PluginKind, Role,
    Value, foreign,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyTuple};

use crate::{AqmlabError, PluginError, modules};

/// Makes a plug-in known: its kind and name.
pub(crate) fn registered(plugin: Plugin) -> PyResult<(String, String)> {
    check_plugin_name(plugin.name)?;
    let plugin = aqmlab_plugin::register(plugin).map_err(AqmlabError::new_err)?;
    Ok((plugin.kind().word().to_owned(), plugin.name.to_owned()))
}

/// An error if a name stands for something else already: results would be taken for its own.
#[pyfunction]
pub(crate) fn check_plugin_name(name: &str) -> PyResult<()> {
    let Some(what) = aqmlab_scenario::built_in(name) else {
        return Ok(());
    };
    let other = format!("my-{}", name.to_ascii_lowercase());
    Err(AqmlabError::new_err(format!(
        "name: found {name:?}, which is {what}; choose another name, such as {other:?}"
    )))
}

/// What the plug-ins that are loaded declare, as JSON.
#[pyfunction]
pub(crate) fn plugins() -> String {
    serde_json::Value::from(aqmlab_scenario::plugins()).to_string()
}

/// The number that a text stands for in a field of a form; an error if it stands for none.
#[pyfunction]
pub(crate) fn plugin_value(form: usize, text: &str) -> PyResult<f64> {
    let value = Form::ALL[form]
        .read_text(text)
        .map_err(AqmlabError::new_err)?;
    Ok(value.number())
}

/// Whether an effective scenario has plug-ins that need the interpreter.
pub(crate) fn interpreted(effective: &str) -> bool {
    let plugins = aqmlab_plugin::registered();
    let mut interpreted = plugins.iter().filter(|plugin| plugin.is_interpreted);
    interpreted.any(|plugin| effective.contains(&plugin.sha256))
}

/// Raises what a plug-in raised on this thread.
pub(crate) fn raise(py: Python<'_>) -> PyResult<()> {
    let Some(Failure {
        plugin,
        callback,
        error,
    }) = failure::take()
    else {
        return Ok(());
    };
    let place = format!("plug-in {plugin}: {callback}");
    match error.downcast::<PyErr>() {
        Err(other) => Err(PluginError::new_err(format!("{place}: {other}"))),
        Ok(raised) => {
            // As a value it has its traceback.
            let raised = raised.into_value(py).into_bound(py).into_any();
            let lines = py
                .import("traceback")?
                .call_method1("format_exception", (&raised,))?;
            let lines: Vec<String> = lines.extract()?;
            let message = format!("{place} raised an exception\n{}", lines.concat().trim_end());
            let failed = PluginError::new_err(message);
            failed.set_cause(py, Some(PyErr::from_value(raised)));
            Err(failed)
        }
    }
}

// --- Python classes -------------------------------------------------------------------------------

/// A record that Python sees for the length of a callback.
struct Lent<E>(AtomicPtr<E>);

impl<E> Lent<E> {
    const fn nothing() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Lends `record` while `work` is done, by a thread that holds the interpreter.
    fn lend<R>(&self, record: &mut E, work: impl FnOnce() -> R) -> R {
        struct Back<'a, E>(&'a AtomicPtr<E>);
        impl<E> Drop for Back<'_, E> {
            fn drop(&mut self) {
                self.0.store(ptr::null_mut(), Ordering::Release);
            }
        }
        self.0.store(record, Ordering::Release);
        let _back = Back(&self.0);
        work()
    }

    /// Reads or writes the record. The caller holds the interpreter (`_py`), and `work` does not
    /// let go of it.
    #[inline]
    fn with<R>(&self, _py: Python<'_>, work: impl FnOnce(&mut E) -> R) -> PyResult<R> {
        let record = self.0.load(Ordering::Acquire);
        if record.is_null() {
            return Err(PyRuntimeError::new_err(
                "a record of an event holds only during the callback that it is given to",
            ));
        }
        // SAFETY: `lend` has borrowed the record exclusively and is waiting for Python's callback;
        // it takes the pointer back before its borrow ends. The thread that gets here
        // holds the interpreter, so there is one at a time.
        Ok(work(unsafe { &mut *record }))
    }
}

/// What the classes of records have in common.
trait Record: Sized + fmt::Debug + 'static {
    type Class: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync;
    fn new(py: Python<'_>) -> PyResult<Py<Self::Class>>;
    fn lent(class: &Self::Class) -> &Lent<Self>;
}

/// The class of a record: its fields as attributes. Those behind the semicolon can be set.
macro_rules! record_class {
    ($class:ident, $python:literal, $record:ident {
        $($field:ident: $type:ty),* ; $($settable:ident $set:ident: $set_type:ty),*
    } $($more:tt)*) => {
        /// A record of an event.
        #[pyclass(frozen, module = "aqmlab._native", name = $python)]
        pub(crate) struct $class(Lent<$record>);

        impl Record for $record {
            type Class = $class;
            fn new(py: Python<'_>) -> PyResult<Py<$class>> {
                Py::new(py, $class(Lent::nothing()))
            }
            fn lent(class: &$class) -> &Lent<Self> {
                &class.0
            }
        }

        #[pymethods]
        impl $class {
            $(
                #[getter]
                fn $field(&self, py: Python<'_>) -> PyResult<$type> {
                    self.0.with(py, |record| record.$field)
                }
            )*
            $(
                #[getter]
                fn $settable(&self, py: Python<'_>) -> PyResult<$set_type> {
                    self.0.with(py, |record| record.$settable)
                }
                #[setter]
                fn $set(&self, py: Python<'_>, value: $set_type) -> PyResult<()> {
                    self.0.with(py, |record| record.$settable = value)
                }
            )*
            $($more)*
        }

        /// Name, kind as NumPy has it, and offset of each field.
        impl $class {
            fn fields() -> Vec<(&'static str, &'static str, usize)> {
                vec![
                    $((stringify!($field), numpy::<$type>(), offset_of!($record, $field)),)*
                    $((stringify!($settable), numpy::<$set_type>(), offset_of!($record, $settable)),)*
                ]
            }
        }
    };
}

/// What NumPy calls a type of eight bytes.
fn numpy<T: 'static>() -> &'static str {
    use std::any::TypeId;
    match TypeId::of::<T>() {
        id if id == TypeId::of::<f64>() => "f8",
        id if id == TypeId::of::<u64>() => "u8",
        _ => "i8",
    }
}

record_class!(EventRecord, "Event", AqmlabEvent {
    now: i64, arrived: i64, flow: u64, size: i64, ecn: i64, dscp: i64, marks: i64, packets: i64,
    bytes: i64, queue: i64, queue_packets: i64, queue_bytes: i64, rate: i64, framing: i64, seed: u64 ;
}
    /// The next random number, uniform on [0, 1).
    fn draw(&self, py: Python<'_>) -> PyResult<f64> {
        let drawn = self.0.with(py, |event| event.has_draws().then(|| event.draw()))?;
        drawn.ok_or_else(|| {
            PyRuntimeError::new_err(
                "random numbers can be drawn in on_arrival, enqueue, dequeue and on_head",
            )
        })
    }
);

record_class!(AckRecord, "Ack", AqmlabAck {
    now: i64, acked: i64, una: i64, max: i64, rtt: i64, segments: i64, flight: i64, mss: i64,
    cause: i64, resent: i64, slow_start: i64, reno: f64, base: f64 ;
    cwnd set_cwnd: f64, ssthresh set_ssthresh: f64, pacing set_pacing: f64
});

/// An object of a Python class at work.
struct PythonInstance<E: Record> {
    plugin: &'static str,
    methods: [Option<Py<PyAny>>; Callback::COUNT],
    object: Py<PyAny>,
    record: Py<E::Class>,
    arguments: Py<PyTuple>,
    fields: &'static PythonFields,
    has_failed: bool,
}

/// Names of the parameters and variables of a class, and what they hold.
#[derive(Debug)]
struct PythonFields {
    parameters: Vec<(&'static str, Form)>,
    variables: Vec<(&'static str, Form)>,
}

impl<E: Record> fmt::Debug for PythonInstance<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PythonInstance({})", self.plugin)
    }
}

impl<E: Record> PythonInstance<E> {
    fn new(
        py: Python<'_>,
        plugin: &'static str,
        object: Py<PyAny>,
        callbacks: Callbacks,
        fields: &'static PythonFields,
    ) -> PyResult<Self> {
        let mut methods = [const { None }; Callback::COUNT];
        for &callback in Callback::DISCIPLINE.iter().chain(Callback::CONTROL) {
            if callbacks.has(callback) {
                methods[callback as usize] = Some(object.getattr(py, callback.name())?);
            }
        }
        let record = E::new(py)?;
        let arguments = PyTuple::new(py, [record.clone_ref(py).into_any()])?.unbind();
        Ok(Self {
            plugin,
            methods,
            object,
            record,
            arguments,
            fields,
            has_failed: false,
        })
    }

    #[cold]
    fn fail(&mut self, callback: &'static str, error: PyErr) -> i64 {
        self.has_failed = true;
        failure::set(Failure {
            plugin: self.plugin,
            callback,
            error: Box::new(error),
        });
        NOTHING
    }
}

impl<E: Record> Instance<E> for PythonInstance<E>
where
    E: Send + Sync,
{
    fn call(&mut self, callback: Callback, event: &mut E) -> i64 {
        if self.has_failed {
            return NOTHING;
        }
        let answer = Python::attach(|py| {
            let Some(method) = &self.methods[callback as usize] else {
                return Ok(NOTHING);
            };
            let lent = E::lent(self.record.get());
            let answer = lent.lend(event, || {
                method.bind(py).call(self.arguments.bind(py), None)
            });
            let answer = answer?;
            if answer.is_none() {
                Ok(NOTHING)
            } else {
                answer.extract::<i64>()
            }
        });
        answer.unwrap_or_else(|error| self.fail(callback.name(), error))
    }

    fn set(&mut self, values: &[Value]) {
        let set = Python::attach(|py| {
            for (&(name, form), &value) in self.fields.parameters.iter().zip(values) {
                match value {
                    Value::Number(number) => self.object.setattr(py, name, number)?,
                    Value::Whole(whole) if form == Form::Boolean => {
                        self.object.setattr(py, name, whole != 0)?;
                    }
                    Value::Whole(whole) => self.object.setattr(py, name, whole)?,
                }
            }
            Ok(())
        });
        if let Err(error) = set {
            self.fail("setting its parameters", error);
        }
    }

    fn variables(&self, out: &mut Vec<f64>) {
        Python::attach(|py| {
            for &(name, form) in &self.fields.variables {
                let value = self.object.bind(py).getattr(name);
                out.push(
                    value
                        .and_then(|value| number(name, form, &value))
                        .unwrap_or_else(|error| {
                            failure::set(Failure {
                                plugin: self.plugin,
                                callback: "its variables",
                                error: error.value(py).to_string().into(),
                            });
                            f64::NAN
                        }),
                );
            }
        });
    }

    fn overwritten(&self, values: &[Value]) -> Option<usize> {
        Python::attach(|py| {
            let mut parameters = self.fields.parameters.iter().zip(values);
            parameters.position(|(&(name, _), &value)| {
                let found = self.object.bind(py).getattr(name);
                !found.is_ok_and(|found| match value {
                    Value::Number(number) => found.extract::<f64>().is_ok_and(|it| it == number),
                    Value::Whole(whole) => found.extract::<i64>().is_ok_and(|it| it == whole),
                })
            })
        })
    }

    fn boxed_clone(&self) -> Box<dyn Instance<E>> {
        let copied = Python::attach(|py| {
            let copy = py
                .import("copy")?
                .call_method1("deepcopy", (&self.object,))?;
            let mut callbacks = Callbacks::default();
            for &callback in Callback::DISCIPLINE.iter().chain(Callback::CONTROL) {
                if self.methods[callback as usize].is_some() {
                    callbacks = callbacks.with(callback);
                }
            }
            Self::new(py, self.plugin, copy.unbind(), callbacks, self.fields)
        });
        match copied {
            Ok(copy) => Box::new(copy),
            Err(error) => Box::new(Broken::new(self.plugin, "copying it", error)),
        }
    }
}

/// What a variable holds, as records have it.
fn number(name: &str, form: Form, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if form.is_number() || value.is_instance_of::<PyFloat>() {
        if let Ok(number) = value.extract::<f64>() {
            return Ok(number);
        }
    } else if let Ok(whole) = value.extract::<i64>() {
        return Ok(whole as f64);
    }
    let expected = match form.is_number() {
        true => "a finite number",
        false => "a whole number of 64 bits",
    };
    let found = value.repr()?.to_string();
    let shown: String = found.chars().take(60).collect();
    Err(AqmlabError::new_err(format!(
        "found {name} = {shown}; expected {expected}"
    )))
}

/// What stands where there is no object, because its class raised an exception.
#[derive(Clone, Debug)]
struct Broken {
    variables: usize,
}

impl Broken {
    fn new(plugin: &'static str, callback: &'static str, error: PyErr) -> Self {
        failure::set(Failure {
            plugin,
            callback,
            error: Box::new(error),
        });
        Self { variables: 0 }
    }
}

impl<E> Instance<E> for Broken {
    fn call(&mut self, _: Callback, _: &mut E) -> i64 {
        NOTHING
    }

    fn set(&mut self, _: &[Value]) {}

    fn variables(&self, out: &mut Vec<f64>) {
        out.resize(out.len() + self.variables, f64::NAN);
    }

    fn overwritten(&self, _: &[Value]) -> Option<usize> {
        None
    }

    fn boxed_clone(&self) -> Box<dyn Instance<E>> {
        Box::new(self.clone())
    }
}

/// What executes a module anew, and the name of a class in it.
type Renewed = (Py<PyAny>, String);

/// Makes objects of a Python class.
#[derive(Debug)]
struct ClassMaker {
    class: Py<PyAny>,
    /// How its module is executed anew, and its name there; nothing for a class without a file.
    renewed: Option<Renewed>,
    plugin: &'static str,
    callbacks: Callbacks,
    fields: &'static PythonFields,
}

impl ClassMaker {
    /// An error if an object begins with parameters of its own: those of the scenario come after.
    fn refuse_own_values(&self, py: Python<'_>, object: &Py<PyAny>) -> PyResult<()> {
        // A look at `__dict__` makes every later use of an attribute slower: CPython keeps
        // attributes in the object itself until then.
        let (object, class) = (object.bind(py), object.bind(py).get_type());
        for &(name, _) in &self.fields.parameters {
            let is_own = match (object.getattr_opt(name)?, class.getattr_opt(name)?) {
                (Some(own), Some(default)) => !own.is(&default),
                (own, _) => own.is_some(),
            };
            if is_own {
                return Err(AqmlabError::new_err(format!(
                    "__init__ sets the parameter {name}, which a scenario sets; a default stands \
                     in the class"
                )));
            }
        }
        Ok(())
    }
}

impl<E: Record + Send + Sync> Maker<E> for ClassMaker {
    fn make(&self, values: &[Value]) -> Box<dyn Instance<E>> {
        let made = Python::attach(|py| {
            let object = match &self.renewed {
                Some((renew, name)) => modules::class(py, renew, name)?.call0()?.unbind(),
                None => self.class.call0(py)?,
            };
            self.refuse_own_values(py, &object)?;
            PythonInstance::new(py, self.plugin, object, self.callbacks, self.fields)
        });
        match made {
            Ok(mut instance) => {
                instance.set(values);
                Box::new(instance)
            }
            Err(error) => {
                let mut broken = Broken::new(self.plugin, "making an object of its class", error);
                broken.variables = self.fields.variables.len();
                Box::new(broken)
            }
        }
    }
}

/// A field as Python declares it: name, meaning, form, role and default.
type Declared = (String, String, u32, u32, f64);

pub(crate) fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn named(kind: &str) -> PyResult<&'static [Callback]> {
    match kind {
        "discipline" => Ok(Callback::DISCIPLINE),
        "control" => Ok(Callback::CONTROL),
        other => Err(AqmlabError::new_err(format!(
            "kind: found {other:?}; expected discipline or control"
        ))),
    }
}

/// Makes a Python class known as a plug-in.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "Python's values come by value"
)]
pub(crate) fn register_class(
    kind: &str,
    name: &str,
    purpose: &str,
    sha256: String,
    fields: Vec<Declared>,
    callbacks: Vec<String>,
    class: (Py<PyAny>, Option<Renewed>),
) -> PyResult<(String, String)> {
    let mut declared = Vec::new();
    for (field, meaning, form, role, preset) in &fields {
        let form = Form::ALL[*form as usize];
        declared.push(Field {
            name: leaked(field),
            meaning: leaked(meaning),
            form,
            role: match role {
                0 => Role::Required,
                1 => Role::Optional(form.value(*preset)),
                _ => Role::Variable,
            },
        });
    }
    let chosen = |is_parameter| {
        let fields = declared
            .iter()
            .filter(move |field| field.is_parameter() == is_parameter);
        fields.map(|field| (field.name, field.form)).collect()
    };
    let python: &'static PythonFields = Box::leak(Box::new(PythonFields {
        parameters: chosen(true),
        variables: chosen(false),
    }));
    let mut own = Callbacks::default();
    for &callback in named(kind)? {
        if callbacks.iter().any(|name| name == callback.name()) {
            own = own.with(callback);
        }
    }
    let plugin = leaked(name);
    let (class, renewed) = class;
    let maker = Box::new(ClassMaker {
        class,
        renewed,
        plugin,
        callbacks: own,
        fields: python,
    });
    let makers = match kind {
        "discipline" => Makers::Discipline(maker),
        _ => Makers::Control(maker),
    };
    let mut made = Plugin::new((plugin, leaked(purpose)), sha256, declared, own, makers);
    made.is_interpreted = true;
    registered(made)
}

// --- Python that numba has compiled -----------------------------------------------------------------

/// Makes known a plug-in whose callbacks have been compiled: `functions` has the address of each,
/// in the order of the ABI, 0 where there is none. Fields lie in the record one after the other.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "Python's values come by value"
)]
pub(crate) fn register_compiled(
    kind: &str,
    name: &str,
    purpose: &str,
    sha256: String,
    fields: Vec<Declared>,
    functions: Vec<usize>,
) -> PyResult<(String, String)> {
    let text = |text: &str| CString::new(text).map(|text| text.into_raw().cast_const());
    let mut declared = Vec::new();
    for (index, (field, meaning, form, role, preset)) in fields.iter().enumerate() {
        declared.push(AqmlabField {
            name: text(field)?,
            meaning: text(meaning)?,
            form: *form,
            role: *role,
            offset: 8 * index as u64,
            preset: *preset,
        });
    }
    let names: (*const c_char, *const c_char) = (text(name)?, text(purpose)?);
    let head = |size: usize, event_size: usize| AqmlabHead {
        abi: AQMLAB_ABI,
        size: size as u32,
        event_size: event_size as u32,
        field_size: size_of::<AqmlabField>() as u32,
        name: names.0,
        purpose: names.1,
        record_size: 8 * declared.len().max(1) as u64,
        fields: declared.as_ptr(),
        field_count: declared.len() as u64,
    };
    if functions.len() != named(kind)?.len() {
        return Err(AqmlabError::new_err(
            "functions: expected one for each callback",
        ));
    }
    let plugin = if kind == "discipline" {
        let at = |index: usize| -> Option<extern "C" fn(*mut c_void, *mut AqmlabEvent) -> i64> {
            // SAFETY: numba has compiled a function of this type, which stays; 0 is none.
            unsafe { std::mem::transmute(functions[index]) }
        };
        let description = AqmlabDiscipline {
            head: head(size_of::<AqmlabDiscipline>(), size_of::<AqmlabEvent>()),
            start: at(0),
            on_arrival: at(1),
            on_overflow: at(2),
            on_departure: at(3),
            on_idle: at(4),
            tick: at(5),
            on_link: at(6),
            on_change: at(7),
            enqueue: at(8),
            dequeue: at(9),
            on_head: at(10),
        };
        // SAFETY: its texts and fields are those of above.
        unsafe { foreign::discipline(&raw const description, sha256, "numba") }
    } else {
        let at = |index: usize| -> Option<extern "C" fn(*mut c_void, *mut AqmlabAck) -> i64> {
            // SAFETY: as above.
            unsafe { std::mem::transmute(functions[index]) }
        };
        let description = AqmlabControl {
            head: head(size_of::<AqmlabControl>(), size_of::<AqmlabAck>()),
            start: at(0),
            on_ack: at(1),
            on_recovery_ack: at(2),
            on_send: at(3),
            on_loss: at(4),
            on_timeout: at(5),
            on_undo: at(6),
        };
        // SAFETY: its texts and fields are those of above.
        unsafe { foreign::control(&raw const description, sha256, "numba") }
    };
    registered(plugin.map_err(AqmlabError::new_err)?)
}

extern "C" fn aqmlab_draw(event: *mut AqmlabEvent) -> f64 {
    // SAFETY: compiled callbacks hand on the record that they were given.
    unsafe { (*event).draw() }
}

/// The callbacks that a plug-in has; none if there is no such plug-in.
#[pyfunction]
pub(crate) fn plugin_callbacks(kind: &str, name: &str) -> PyResult<Vec<&'static str>> {
    let callbacks = named(kind)?;
    let wanted = match kind {
        "discipline" => PluginKind::Discipline,
        _ => PluginKind::Control,
    };
    let found = aqmlab_plugin::find(wanted, name);
    let has = found.map_or(Callbacks::default(), |it| it.callbacks);
    let own = callbacks.iter().filter(|&&callback| has.has(callback));
    Ok(own.map(|callback| callback.name()).collect())
}

/// How the records lie in memory (name, kind, offset of each field, and the size), the callbacks by
/// kind, and the addresses of the functions that compiled callbacks may call.
#[pyfunction]
pub(crate) fn plugin_records(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let known = PyDict::new(py);
    let mut event = EventRecord::fields();
    event.push(("nan", numpy::<i64>(), AqmlabEvent::NAN));
    known.set_item("event", (event, size_of::<AqmlabEvent>()))?;
    known.set_item("ack", (AckRecord::fields(), size_of::<AqmlabAck>()))?;
    let names =
        |callbacks: &[Callback]| -> Vec<_> { callbacks.iter().map(|it| it.name()).collect() };
    known.set_item("discipline", names(Callback::DISCIPLINE))?;
    known.set_item("control", names(Callback::CONTROL))?;
    let functions = PyDict::new(py);
    functions.set_item("draw", aqmlab_draw as extern "C" fn(_) -> _ as usize)?;
    functions.set_item("pow", aqmlab_pow as extern "C" fn(_, _) -> _ as usize)?;
    functions.set_item("cbrt", aqmlab_cbrt as extern "C" fn(_) -> _ as usize)?;
    functions.set_item("exp", aqmlab_exp as extern "C" fn(_) -> _ as usize)?;
    functions.set_item("log", aqmlab_log as extern "C" fn(_) -> _ as usize)?;
    known.set_item("functions", functions)?;
    Ok(known)
}
