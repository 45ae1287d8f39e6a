//! Plug-ins behind function pointers: those of shared objects, and Python compiled to machine code.
#![expect(
    unsafe_code,
    reason = "reads the description of a plug-in; the user who loaded it vouches for it"
)]

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::mem::size_of;

use crate::abi::{
    AQMLAB_ABI, AQMLAB_OPTIONAL, AQMLAB_REQUIRED, AQMLAB_VARIABLE, AqmlabAck, AqmlabControl,
    AqmlabDiscipline, AqmlabEvent, AqmlabField, AqmlabHead, AqmlabOnAck, AqmlabOnEvent,
};
use crate::declared::{Field, Form, Makers, Plugin, Role, Value};
use crate::instance::{Callback, Callbacks, Instance, Maker, NOTHING};

/// A callback of compiled code.
type Function<E> = extern "C" fn(*mut std::ffi::c_void, *mut E) -> i64;

/// What is called now: enough to name it if it ends the process.
#[derive(Clone, Copy, Debug)]
pub struct AtWork {
    /// The plug-in's name.
    pub plugin: &'static str,
    /// Where its code is from.
    pub origin: &'static str,
    /// The callback.
    pub callback: &'static str,
}

thread_local! {
    static AT_WORK: Cell<Option<AtWork>> = const { Cell::new(None) };
}

/// What this thread calls now. It may be asked in a signal handler.
pub fn at_work() -> Option<AtWork> {
    AT_WORK.get()
}

/// Calls foreign code that is known by these names.
#[inline]
pub fn working<R>(at: AtWork, call: impl FnOnce() -> R) -> R {
    AT_WORK.set(Some(at));
    let answer = call();
    AT_WORK.set(None);
    answer
}

/// Compiled code, and where its record has its fields.
#[derive(Debug)]
struct Compiled<E: 'static> {
    name: &'static str,
    origin: &'static str,
    functions: [Option<Function<E>>; Callback::COUNT],
    /// Eight-byte words of a record.
    words: usize,
    /// The words of the parameters, then those of the variables with their forms.
    parameters: Vec<usize>,
    variables: Vec<(usize, Form)>,
    /// What variables begin with.
    initial: Vec<(usize, Value)>,
}

/// A record and the code that works on it.
#[derive(Clone)]
struct CompiledInstance<E: 'static> {
    code: &'static Compiled<E>,
    record: Box<[u64]>,
}

impl<E> std::fmt::Debug for CompiledInstance<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CompiledInstance({:?})", self.record)
    }
}

impl<E: std::fmt::Debug + 'static> Instance<E> for CompiledInstance<E> {
    #[inline]
    fn call(&mut self, callback: Callback, event: &mut E) -> i64 {
        match self.code.functions[callback as usize] {
            Some(function) => {
                let at = AtWork {
                    plugin: self.code.name,
                    origin: self.code.origin,
                    callback: callback.name(),
                };
                working(at, || function(self.record.as_mut_ptr().cast(), event))
            }
            None => NOTHING,
        }
    }

    fn set(&mut self, values: &[Value]) {
        for (&word, value) in self.code.parameters.iter().zip(values) {
            self.record[word] = u64::from_ne_bytes(value.to_bytes());
        }
    }

    fn variables(&self, out: &mut Vec<f64>) {
        let variables = self.code.variables.iter();
        out.extend(
            variables
                .map(|&(word, form)| form.from_bytes(self.record[word].to_ne_bytes()).number()),
        );
    }

    fn overwritten(&self, values: &[Value]) -> Option<usize> {
        let mut parameters = self.code.parameters.iter().zip(values);
        parameters.position(|(&word, value)| self.record[word].to_ne_bytes() != value.to_bytes())
    }

    fn boxed_clone(&self) -> Box<dyn Instance<E>> {
        Box::new(Self {
            code: self.code,
            record: self.record.clone(),
        })
    }
}

/// Code that lives as long as the process.
#[derive(Debug)]
struct CompiledMaker<E: 'static>(&'static Compiled<E>);

impl<E: std::fmt::Debug + 'static> Maker<E> for CompiledMaker<E> {
    fn make(&self, values: &[Value]) -> Box<dyn Instance<E>> {
        let mut instance = CompiledInstance {
            code: self.0,
            record: vec![0; self.0.words].into_boxed_slice(),
        };
        for (word, value) in &self.0.initial {
            instance.record[*word] = u64::from_ne_bytes(value.to_bytes());
        }
        instance.set(values);
        Box::new(instance)
    }
}

/// The plug-in that a description is of; `sha256` is that of its source, `origin` names it.
///
/// # Errors
///
/// What is wrong with the description.
///
/// # Safety
///
/// `description` points to an [`AqmlabDiscipline`] whose texts and fields can be read, and whose
/// functions follow the rules of `aqmlab.h` as long as the process lives.
pub unsafe fn discipline(
    description: *const AqmlabDiscipline,
    sha256: String,
    origin: &'static str,
) -> Result<Plugin, String> {
    if description.is_null() {
        return Err(format!("aqmlab_discipline: {NULL}"));
    }
    // SAFETY: of a description of any version the head can be read; the rest once it is checked.
    let head = unsafe { &*description.cast::<AqmlabHead>() };
    check_sizes(
        head,
        size_of::<AqmlabDiscipline>(),
        size_of::<AqmlabEvent>(),
    )?;
    // SAFETY: the caller vouches for it, and its size is that of the type.
    let all = unsafe { *description };
    let functions: [AqmlabOnEvent; 11] = [
        all.start,
        all.on_arrival,
        all.on_overflow,
        all.on_departure,
        all.on_idle,
        all.tick,
        all.on_link,
        all.on_change,
        all.enqueue,
        all.dequeue,
        all.on_head,
    ];
    let table = Callback::DISCIPLINE.iter().copied().zip(functions);
    // SAFETY: the caller vouches for it.
    let (plugin, code) = unsafe { described(head, table, origin) }?;
    Ok(plugin(
        sha256,
        Makers::Discipline(Box::new(CompiledMaker(code))),
    ))
}

/// The plug-in that a description is of, as [`discipline`].
///
/// # Errors
///
/// What is wrong with the description.
///
/// # Safety
///
/// As of [`discipline`], for [`AqmlabControl`].
pub unsafe fn control(
    description: *const AqmlabControl,
    sha256: String,
    origin: &'static str,
) -> Result<Plugin, String> {
    if description.is_null() {
        return Err(format!("aqmlab_control: {NULL}"));
    }
    // SAFETY: of a description of any version the head can be read; the rest once it is checked.
    let head = unsafe { &*description.cast::<AqmlabHead>() };
    check_sizes(head, size_of::<AqmlabControl>(), size_of::<AqmlabAck>())?;
    // SAFETY: the caller vouches for it, and its size is that of the type.
    let all = unsafe { *description };
    let functions: [AqmlabOnAck; 7] = [
        all.start,
        all.on_ack,
        all.on_recovery_ack,
        all.on_send,
        all.on_loss,
        all.on_timeout,
        all.on_undo,
    ];
    let table = Callback::CONTROL.iter().copied().zip(functions);
    // SAFETY: the caller vouches for it.
    let (plugin, code) = unsafe { described(head, table, origin) }?;
    Ok(plugin(
        sha256,
        Makers::Control(Box::new(CompiledMaker(code))),
    ))
}

/// What a function answers that has no description.
const NULL: &str = "returned a null pointer; expected a description";

/// More bytes in the record of an instance are a mistake; connections have one each.
const MOST_BYTES: u64 = 1 << 20;

/// More parameters and variables are a mistake.
const MOST_FIELDS: u64 = 1000;

fn check_sizes(head: &AqmlabHead, size: usize, event_size: usize) -> Result<(), String> {
    let found = [head.abi, head.size, head.event_size, head.field_size].map(|it| it as usize);
    let expected = [
        AQMLAB_ABI as usize,
        size,
        event_size,
        size_of::<AqmlabField>(),
    ];
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "abi, size, event_size and field_size: found {found:?}; this aqmlab has {expected:?}: \
         compile the plug-in with its header"
    ))
}

/// What is left to say of a plug-in: its hash and how it is made.
type Rest = Box<dyn FnOnce(String, Makers) -> Plugin>;

/// All that a description says, and the code with its record.
///
/// # Safety
///
/// As of [`discipline`].
unsafe fn described<E: 'static>(
    head: &AqmlabHead,
    functions: impl Iterator<Item = (Callback, Option<Function<E>>)>,
    origin: &'static str,
) -> Result<(Rest, &'static Compiled<E>), String> {
    // SAFETY: the caller vouches for texts and fields.
    let name = unsafe { text(head.name) }?;
    // SAFETY: as above.
    let purpose = unsafe { text(head.purpose) }?;
    if head.record_size > MOST_BYTES {
        return Err(format!(
            "{name}: record_size: found {}; expected at most {MOST_BYTES} bytes",
            head.record_size
        ));
    }
    if head.field_count > MOST_FIELDS || (head.field_count > 0 && head.fields.is_null()) {
        return Err(format!(
            "{name}: field_count and fields: found {} at {:?}; expected at most {MOST_FIELDS} \
             fields, and where they are",
            head.field_count, head.fields
        ));
    }
    let declared: &[AqmlabField] = match head.field_count {
        0 => &[],
        // SAFETY: as above.
        count => unsafe { std::slice::from_raw_parts(head.fields, count as usize) },
    };
    let mut code = Compiled {
        name,
        origin,
        functions: [None; Callback::COUNT],
        words: head.record_size.div_ceil(8) as usize,
        parameters: Vec::new(),
        variables: Vec::new(),
        initial: Vec::new(),
    };
    let mut fields = Vec::new();
    for field in declared {
        // SAFETY: as above.
        let name = unsafe { text(field.name) }?;
        let Some(&form) = Form::ALL.get(field.form as usize) else {
            return Err(format!(
                "{name}: form: found {}; expected one of aqmlab.h",
                field.form
            ));
        };
        let word = field.offset as usize / 8;
        if field.offset % 8 != 0 || word >= code.words {
            return Err(format!(
                "{name}: offset: found {}; expected a multiple of 8 below record_size, {}",
                field.offset, head.record_size
            ));
        }
        let role = match field.role {
            AQMLAB_REQUIRED => Role::Required,
            AQMLAB_OPTIONAL => Role::Optional(form.value(field.preset)),
            AQMLAB_VARIABLE => Role::Variable,
            other => {
                return Err(format!(
                    "{name}: role: found {other}; expected one of aqmlab.h"
                ));
            }
        };
        match role {
            Role::Variable => {
                code.variables.push((word, form));
                code.initial.push((word, form.value(field.preset)));
            }
            _ => code.parameters.push(word),
        }
        // SAFETY: as above.
        let meaning = unsafe { text(field.meaning) }?;
        fields.push(Field {
            name,
            meaning,
            form,
            role,
        });
    }
    let mut callbacks = Callbacks::default();
    for (callback, function) in functions {
        code.functions[callback as usize] = function;
        if function.is_some() {
            callbacks = callbacks.with(callback);
        }
    }
    let plugin =
        move |sha256, makers| Plugin::new((name, purpose), sha256, fields, callbacks, makers);
    Ok((Box::new(plugin), Box::leak(Box::new(code))))
}

/// A text of a description, for as long as the process lives.
///
/// # Safety
///
/// `text` is null or ends with a zero byte.
unsafe fn text(text: *const c_char) -> Result<&'static str, String> {
    if text.is_null() {
        return Ok("");
    }
    // SAFETY: it is not null.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    let text = text.map_err(|_| "a text of the description is not UTF-8".to_owned())?;
    Ok(Box::leak(text.to_owned().into_boxed_str()))
}
