//! The program: in the near namespace, with processes and mounts of its own.
//!
//! Its parent is the first process of a process namespace and does nothing but wait. When that
//! process ends, the kernel ends everything that the program has started; and it ends with this
//! process, however that ends.
#![expect(
    unsafe_code,
    reason = "fork, and what happens between fork and exec: system calls on buffers that were made \
              before; unshare of mounts and processes concerns one thread that ends after it"
)]

use std::ffi::{CStr, CString, c_int};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::mem::zeroed;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use std::time::{Duration, Instant};

use rustix::process::Rlimit;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::addresses::{FAR, HOST_NAME, TEST, TEST_NAME};
use crate::bed::Bed;
use crate::error::LiveError;
use crate::routes::Side;

/// Where files are made that then cover others; covered itself for a moment.
const SCRATCH: &str = "/tmp";

/// Signals that end a program, or that it may know: they are passed on.
const PASSED_ON: [c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// What is run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, as an absolute path.
    pub path: CString,
    /// Its name and arguments.
    pub arguments: Vec<CString>,
    /// Its environment, as `NAME=value`.
    pub environment: Vec<CString>,
}

/// A program that was started. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    /// The waiting process, until it has been waited for.
    parent: Arc<Mutex<Option<libc::pid_t>>>,
    status: Receiver<Result<(i32, Instant), LiveError>>,
    ended: bool,
    /// When it was executed.
    began: Instant,
    /// When it was seen to have ended.
    end: Option<Instant>,
}

impl Running {
    /// Starts a program in the namespace of the clients. The thread that starts it lives as long as
    /// the program does: the kernel ends the program with it. The program may have as many open
    /// files as `file_limit` says.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        bed: &'scope Bed,
        program: &'scope Program,
        file_limit: &Rlimit,
    ) -> Result<Self, LiveError> {
        let file_limit = libc::rlimit {
            rlim_cur: file_limit.current.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: file_limit.maximum.unwrap_or(libc::RLIM_INFINITY),
        };
        let parent = Arc::new(Mutex::new(None));
        let known = parent.clone();
        let (started, has_started) = channel();
        let (reporting, status) = channel();
        scope.spawn(move || {
            let terminal = Terminal::of_this_process();
            match launch(bed, program, file_limit, terminal) {
                Ok(pid) => {
                    *known.lock().expect(UNPOISONED) = Some(pid);
                    let _ = started.send(Ok(Instant::now()));
                    attend(&known, pid, &reporting);
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                }
            }
            terminal.take_back();
        });
        let began = has_started
            .recv()
            .unwrap_or_else(|_| Err(failed("starting the program", &"its thread ended")))?;
        Ok(Self {
            parent,
            status,
            ended: false,
            began,
            end: None,
        })
    }

    /// Waits so long for the program's end: its exit status.
    pub(super) fn wait(&mut self, span: Duration) -> Result<Option<i32>, LiveError> {
        match self.status.recv_timeout(span) {
            Ok(status) => {
                self.ended = true;
                let (status, end) = status?;
                self.end = Some(end);
                Ok(Some(status))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(failed("waiting for the program", &"lost")),
        }
    }

    /// How long it took; without an end, its time so far.
    pub(super) fn took(&self) -> Duration {
        self.end.unwrap_or_else(Instant::now) - self.began
    }

    /// Sends the program a signal.
    pub(super) fn signal(&self, number: c_int) {
        if let Some(pid) = *self.parent.lock().expect(UNPOISONED) {
            // SAFETY: a system call; the process has not been waited for, so that it is ours.
            unsafe { libc::kill(pid, number) };
        }
    }

    /// Kills the program and all that it has started.
    pub(super) fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Asks the program to end, and kills it if it has not ended by the end of a span.
    pub(super) fn end(&mut self, grace: Duration) -> Result<(), LiveError> {
        self.signal(libc::SIGTERM);
        if self.wait(grace)?.is_none() {
            self.kill();
            while self.wait(grace)?.is_none() {}
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
        }
    }
}

const UNPOISONED: &str = "nothing panics while it holds the lock";

fn failed(what: &str, error: &dyn std::fmt::Display) -> LiveError {
    LiveError::Bed(format!("{what}: {error}"))
}

/// Waits for the program's parent and reports its exit status.
fn attend(
    parent: &Mutex<Option<libc::pid_t>>,
    pid: libc::pid_t,
    reporting: &Sender<Result<(i32, Instant), LiveError>>,
) {
    let mut info: libc::siginfo_t = unsafe_zeroed();
    loop {
        // The process stays until it is taken away below, so that its number stays ours.
        // SAFETY: the kernel writes one siginfo_t, which is ours.
        let done = unsafe {
            let wait = libc::WEXITED | libc::WNOWAIT;
            libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut info, wait)
        };
        if done == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
    let end = Instant::now();
    let mut number = parent.lock().expect(UNPOISONED);
    *number = None;
    let mut status = 0;
    // SAFETY: the kernel writes one integer, which is ours.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    let _ = reporting.send(if waited == pid {
        Ok((shell_status(status), end))
    } else {
        Err(failed(
            "waiting for the program",
            &io::Error::last_os_error(),
        ))
    });
}

/// A `siginfo_t` that the kernel fills.
fn unsafe_zeroed() -> libc::siginfo_t {
    // SAFETY: plain integers and pointers, for which zero is a value.
    unsafe { zeroed() }
}

/// The exit status as shells have it: 128 and the signal's number for one that was killed.
const fn shell_status(status: c_int) -> i32 {
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    }
}

/// Whether standard input is a terminal that this process has, so that the program gets it.
#[derive(Clone, Copy, Debug)]
struct Terminal {
    group: Option<libc::pid_t>,
}

impl Terminal {
    fn of_this_process() -> Self {
        // SAFETY: system calls without memory.
        let (group, own) = unsafe { (libc::tcgetpgrp(0), libc::getpgrp()) };
        Self {
            group: (group == own).then_some(own),
        }
    }

    /// Gives the terminal to this process again.
    fn take_back(self) {
        if let Some(group) = self.group {
            // SAFETY: system calls on a set that is ours; the thread ends after it.
            unsafe { take_terminal(group) };
        }
    }
}

/// Gives the terminal to a process group.
///
/// # Safety
///
/// Blocks a signal for this thread.
unsafe fn take_terminal(group: libc::pid_t) {
    // SAFETY: the set is ours. Who takes a terminal from the background is stopped otherwise.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, null_mut());
        libc::tcsetpgrp(0, group);
    }
}

/// Has this thread leave its namespaces and starts the waiting process and the program; the number
/// of the first.
fn launch(
    bed: &Bed,
    program: &Program,
    file_limit: libc::rlimit,
    terminal: Terminal,
) -> Result<libc::pid_t, LiveError> {
    bed.enter(Side::Clients)?;
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    // SAFETY: mounts and the processes of children concern this thread alone.
    unsafe { unshare_unsafe(own) }
        .map_err(|error| failed("making namespaces of mounts and processes", &error))?;
    cover_files()
        .map_err(|error| failed("mounting the program's hosts and resolv.conf", &error))?;
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        let pointers = strings.iter().map(|string| string.as_ptr());
        pointers.chain([null()]).collect()
    };
    let (arguments, environment) = (pointers(&program.arguments), pointers(&program.environment));
    let (mut errors, failing) = pipe().map_err(|error| failed("pipe", &error))?;
    let (waiting, going) = pipe().map_err(|error| failed("pipe", &error))?;
    // SAFETY: between fork and exec there are only system calls, on memory that was made before.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let start = Start {
            path: &program.path,
            arguments: &arguments,
            environment: &environment,
            waiting: waiting.as_raw_fd(),
            going: going.as_raw_fd(),
            failing: failing.as_raw_fd(),
            file_limit,
            is_foreground: terminal.group.is_some(),
        };
        // SAFETY: this is the child.
        unsafe { start.first_process() }
    }
    if pid < 0 {
        return Err(failed("fork", &io::Error::last_os_error()));
    }
    drop((failing, waiting));
    // It has asked to be killed with this thread before it reads that it may go on: if this process
    // ended in between, it reads nothing.
    // SAFETY: one byte that is ours.
    unsafe { libc::write(going.as_raw_fd(), [0_u8].as_ptr().cast(), 1) };
    drop(going);
    let mut number = [0; 4];
    if errors.read_exact(&mut number).is_ok() {
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(number));
        // SAFETY: the child ends by itself.
        unsafe { libc::waitpid(pid, null_mut(), 0) };
        return Err(LiveError::Refused(format!(
            "{}: cannot be run: {error}",
            program.path.to_string_lossy()
        )));
    }
    Ok(pid)
}

fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two integers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both are new and nobody else's.
    Ok(unsafe { (File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Names in the program's view: the far end has one, and answers for all others if it can.
fn cover_files() -> io::Result<()> {
    let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
    let covers = [
        (
            "/etc/hosts",
            format!("{FAR} {HOST_NAME}\n{TEST} {TEST_NAME}\n{hosts}"),
        ),
        ("/etc/resolv.conf", format!("nameserver {FAR}\n")),
    ];
    // What is mounted here is seen nowhere else.
    mount(None, "/", None, libc::MS_REC | libc::MS_SLAVE)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some(c"tmpfs"), SCRATCH, Some(c"tmpfs"), flags)?;
    for (number, (file, text)) in covers.iter().enumerate() {
        let made = format!("{SCRATCH}/{number}");
        fs::write(&made, text)?;
        // A machine without that file needs no other.
        if fs::metadata(file).is_ok() {
            let made = CString::new(made).expect("it has no NUL");
            mount(Some(&made), file, None, libc::MS_BIND)?;
        }
    }
    let scratch = CString::new(SCRATCH).expect("it has no NUL");
    // SAFETY: a system call on a string that lives.
    match unsafe { libc::umount2(scratch.as_ptr(), libc::MNT_DETACH) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn mount(
    source: Option<&CStr>,
    target: &str,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let target = CString::new(target)?;
    let pointer = |text: Option<&CStr>| text.map_or(null(), CStr::as_ptr);
    // SAFETY: a system call on strings that live.
    let done = unsafe {
        let (source, kind) = (pointer(source), pointer(kind));
        libc::mount(source, target.as_ptr(), kind, flags, null())
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The program's number, in the process that waits for it.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

/// Passes a signal on to the program's process group.
extern "C" fn pass_on(number: c_int) {
    let program = PROGRAM.load(Relaxed);
    if program > 0 {
        // SAFETY: a system call that signal handlers may make.
        unsafe { libc::kill(-program, number) };
    }
}

/// What the new processes need, all of it made before the fork.
struct Start<'a> {
    path: &'a CStr,
    arguments: &'a [*const libc::c_char],
    environment: &'a [*const libc::c_char],
    waiting: c_int,
    going: c_int,
    failing: c_int,
    /// Open files that the program may have.
    file_limit: libc::rlimit,
    is_foreground: bool,
}

impl Start<'_> {
    /// The first process of its namespace: starts the program, takes away what has ended, and ends
    /// with the program.
    ///
    /// # Safety
    ///
    /// Only in a new process, which never returns from it.
    unsafe fn first_process(&self) -> ! {
        // SAFETY: system calls, on memory that is on the stack.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::close(self.going);
            let mut go = [0_u8];
            if libc::read(self.waiting, go.as_mut_ptr().cast(), 1) != 1 {
                libc::_exit(1);
            }
            // Containers may forbid it: then tools such as ps show the processes of the machine.
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            let proc = c"proc".as_ptr();
            libc::mount(proc, c"/proc".as_ptr(), proc, flags, null());
            let mut none: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut none);
            for number in 1..=libc::SIGRTMIN() {
                let mut action: libc::sigaction = zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(number, &raw const action, null_mut());
            }
            let program = libc::fork();
            if program == 0 {
                self.program(&none);
            }
            if program < 0 {
                self.fail();
            }
            PROGRAM.store(program, Relaxed);
            for number in PASSED_ON {
                let mut action: libc::sigaction = zeroed();
                action.sa_sigaction = pass_on as extern "C" fn(c_int) as libc::sighandler_t;
                libc::sigaction(number, &raw const action, null_mut());
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, null_mut());
            // Nothing of this process is needed here, and pipes of its caller shall end.
            if libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) < 0 {
                (0..1024).for_each(|file| {
                    libc::close(file);
                });
            }
            loop {
                let mut status = 0;
                let ended = libc::waitpid(-1, &raw mut status, libc::WUNTRACED);
                if ended == program {
                    if libc::WIFSTOPPED(status) {
                        // Nobody could wake it from outside.
                        libc::kill(-program, libc::SIGCONT);
                    } else {
                        libc::_exit(shell_status(status));
                    }
                }
            }
        }
    }

    /// Becomes the program.
    unsafe fn program(&self, none: &libc::sigset_t) -> ! {
        // SAFETY: system calls, on memory that was made before the fork.
        unsafe {
            libc::setpgid(0, 0);
            if self.is_foreground {
                take_terminal(libc::getpid());
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, none, null_mut());
            // What this process may do in its namespaces is not for the program.
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_CLEAR_ALL,
                0,
                0,
                0,
            );
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const self.file_limit);
            libc::execve(
                self.path.as_ptr(),
                self.arguments.as_ptr(),
                self.environment.as_ptr(),
            );
            self.fail()
        }
    }

    /// Reports the last error and ends.
    unsafe fn fail(&self) -> ! {
        // SAFETY: system calls on an integer on the stack.
        unsafe {
            let number = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            libc::write(self.failing, number.to_ne_bytes().as_ptr().cast(), 4);
            libc::_exit(127)
        }
    }
}
