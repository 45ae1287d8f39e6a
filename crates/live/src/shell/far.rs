//! The far end: a thread in the servers' namespace, with the built-in services and the gateway.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::Scope;

use rustix::thread::Pid;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::addresses::{FAR, TEST};
use super::gateway::Gateway;
use super::services;
use crate::bed::Bed;
use crate::error::LiveError;
use crate::outside::Outside;
use crate::routes::Side;
use crate::world::introduce;

/// As in a scenario's run: who sends comes behind the router.
const PRIORITY: i32 = 1;

/// Ends the far end when it is dropped.
pub(super) struct Served(Option<oneshot::Sender<()>>);

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            let _ = end.send(());
        }
    }
}

/// Starts the far end; returns when its services listen.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    bed: &'scope Bed,
    has_services: bool,
    gateway: Option<Gateway>,
    outside: Arc<Outside>,
    introducing: Sender<(&'static str, Pid)>,
) -> Result<Served, LiveError> {
    let (end, ended) = oneshot::channel();
    let (listening, is_listening) = channel();
    scope.spawn(move || {
        introduce("far end", PRIORITY, &introducing);
        drop(introducing);
        let done = bed.enter(Side::Servers).and_then(|()| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.map_err(|error| failed(&error))
        });
        let runtime = match done {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = listening.send(Err(error));
                return;
            }
        };
        let stands_for_host = gateway.as_ref().is_some_and(Gateway::stands_for_host);
        let set = LocalSet::new();
        set.block_on(&runtime, async {
            let services = async {
                if has_services {
                    services::listen(TEST, &outside).await?;
                    if !stands_for_host {
                        services::listen(FAR, &outside).await?;
                    }
                }
                Ok(())
            };
            match services.await {
                Ok(()) => {
                    if let Some(gateway) = gateway {
                        gateway.start();
                    }
                    let _ = listening.send(Ok(()));
                    let _ = ended.await;
                }
                Err(error) => {
                    let _ = listening.send(Err(failed(&error)));
                }
            }
        });
    });
    is_listening
        .recv()
        .unwrap_or_else(|_| Err(LiveError::Bed("the far end ended".to_owned())))?;
    Ok(Served(Some(end)))
}

fn failed(error: &io::Error) -> LiveError {
    LiveError::Bed(format!("the built-in services: {error}"))
}
