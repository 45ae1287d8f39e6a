//! Traffic models: who talks, how much, when.
//!
//! A [`Source`] is one class of traffic at work. It says which connections to open, with a
//! [`Script`] for each, and when it wants to be woken; it learns when a connection is over. It
//! knows no network and no clock: time comes in as an argument, wishes go out as [`Action`]s.
//!
//! Each [`Model`] is one file, which has its parameters ([`ModelParameters`]) and its source
//! ([`ModelSource`]); to add one takes a line in the list below.
//!
//! A [`Player`] plays the script of a connection, over whatever transport there is.

mod abr_video;
mod bulk;
pub mod cbr;
mod curve;
mod datagrams;
mod e_model;
mod error;
mod ftp;
mod game;
mod gcc;
pub mod general_tcp;
mod http2_web;
mod http3_web;
pub mod ideal;
mod long_memory;
pub mod mah_web;
mod members;
mod model;
mod normal;
mod offered;
mod on_off;
pub mod packmime;
mod page;
mod player;
mod poisson;
mod quality;
mod registry;
mod replay;
mod rtt;
mod script;
mod setting;
mod shipped;
mod sizes;
mod source;
mod starts;
mod subset;
mod telnet;
mod unc_web;
mod users;
pub mod vector;
mod vectors;
mod video_conference;
mod voip;
mod web_sessions;
mod when;
mod written;

pub use error::{PopulationUnset, SourceError};
pub use model::{
    Changing, ModelParameters, ModelSource, OpenFile, Opening, PopulationKey, Received,
};
pub use offered::Offered;
pub use player::{Answered, AppAction, Delivery, Player};
pub use quality::{Quality, Samples, Video, Voice};
pub use rtt::{GeneralFit, PackmimeRtt, Rtt};
pub use script::{Action, Connect, Exchange, Limits, OpenDatagrams, Script, Step};
pub use setting::{Direction, HostCounts, Setting};
pub use sizes::Sizes;
pub use source::{Activity, Source};
pub use starts::Starts;
pub use subset::Subset;
pub use vectors::VectorFile;
pub use when::{When, time_of};
pub use written::Pause;

registry::models! {
    /// Closed loop: web users who fetch pages over HTTP/1.0 (Mah 1997).
    MahWeb(mah_web),
    /// Closed loop: web users whose pages come from several servers, some over persistent
    /// connections (UNC, Smith et al. 2001; reconstructed).
    UncWeb(unc_web),
    /// Closed loop: sessions that fetch a transfer, think, fetch the next (Zhang and Qiu 2000).
    WebSessions(web_sessions),
    /// Open loop: connections arrive as a Poisson process, each with one exchange.
    Poisson(poisson),
    /// Open loop: HTTP connections with long memory (PackMime, Cao et al. 2004).
    Packmime(packmime),
    /// Open loop: connection vectors, from a file.
    Vectors(vectors),
    /// Open loop: connections of many applications with heavy-tailed sizes, in the manner of a
    /// backbone (Le 2005, chapters 6 and 7).
    GeneralTcp(general_tcp),
    /// Long-lived transfers.
    Bulk(bulk),
    /// Datagrams (UDP) at a constant rate that nothing slows down.
    Cbr(cbr),
    /// Datagrams (UDP) in bursts of Pareto length.
    OnOff(on_off),
    /// Keystrokes and their echoes, with the pauses of tcplib's telnet.
    Telnet(telnet),
    /// Closed loop: users who fetch pages of many objects over HTTP/2.
    Http2Web(http2_web),
    /// Closed loop: users who fetch pages of many objects over HTTP/3.
    Http3Web(http3_web),
    /// Closed loop: viewers of streamed video who choose the bit rate of each segment.
    AbrVideo(abr_video),
    /// Interactive video whose bit rate follows delay and loss (GCC).
    VideoConference(video_conference),
    /// Voice calls, and their mean opinion score.
    Voip(voip),
    /// Players of a game that runs at a server: inputs up, frames down.
    Game(game),
    /// Files after the FTP models of the 3GPP.
    Ftp(ftp),
}
