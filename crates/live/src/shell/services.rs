//! What a program finds at the far end: a file server, and an echo of TCP and of UDP.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{set_ip_recvtos, set_ip_tos};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Interest};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout_at};

use super::listening::{Door, PAUSE};
use crate::kernel::{receive_with_tos, round_trip};
use crate::outside::Outside;

/// Port of the file server.
const FILES: u16 = 8000;
/// Port of the echo, of TCP and UDP (RFC 862).
const ECHO: u16 = 7;

/// Whether one of the services has a port.
pub(super) const fn have(is_tcp: bool, port: u16) -> bool {
    port == ECHO || (is_tcp && port == FILES)
}

/// Bytes that are written or read at a time.
const CHUNK: usize = 1 << 16;
/// Largest request head that is read.
const LARGEST_HEAD: u64 = 1 << 16;
/// Largest file: what a client can ask for by its size.
const LARGEST: u64 = 1 << 50;

/// What files are filled with.
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// Bytes of text files: space that means nothing.
static SPACES: [u8; CHUNK] = [b' '; CHUNK];

/// A web page: a style sheet, scripts and pictures, 34 files of 1 MB together.
const PAGE: &str = "/page";
const SCRIPTS: u32 = 3;
const PICTURES: u32 = 30;

/// The text of the web page.
fn page() -> String {
    let scripts =
        (1..=SCRIPTS).map(|number| format!("<script src=\"/70kB.js?{number}\"></script>\n"));
    let pictures = (1..=PICTURES).map(|number| {
        format!("<img src=\"/25kB.svg?{number}\" width=\"32\" height=\"32\" alt=\"\">\n")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>34 objects, 1 MB</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/40kB.css\">\n{}{}</html>\n",
        scripts.collect::<String>(),
        pictures.collect::<String>(),
    )
}

/// What a file is besides its size, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    kind: &'static str,
    /// What it begins with.
    begin: &'static str,
    fill: &'static [u8; CHUNK],
}

const OCTETS: Content = Content {
    kind: "application/octet-stream",
    begin: "",
    fill: &ZEROS,
};

/// Files that browsers take for what they are.
const NAMED: [(&str, Content); 3] = [
    (
        ".css",
        Content {
            kind: "text/css",
            begin: "",
            fill: &SPACES,
        },
    ),
    (
        ".js",
        Content {
            kind: "text/javascript",
            begin: "",
            fill: &SPACES,
        },
    ),
    (
        ".svg",
        Content {
            kind: "image/svg+xml",
            begin: "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\">\
                    <rect width=\"1\" height=\"1\"/></svg>",
            fill: &SPACES,
        },
    ),
];

/// What the round trips of downloads are asked by.
const ROUND_TRIPS: &str = "/round-trips";
/// How often a download's round trip is noted.
const NOTED_EVERY: Duration = Duration::from_millis(100);
/// Round trips that are kept; the oldest go first.
const MOST_NOTED: usize = 100_000;

/// Round trips of downloads in microseconds, since they were last asked for.
#[derive(Debug, Default)]
struct RoundTrips(RefCell<VecDeque<u32>>);

impl RoundTrips {
    fn note(&self, stream: &TcpStream) {
        let mut noted = self.0.borrow_mut();
        if noted.len() == MOST_NOTED {
            noted.pop_front();
        }
        noted.extend(round_trip(stream));
    }

    /// A line for each; then none is left.
    fn take(&self) -> String {
        let lines = self.0.take().into_iter().map(|time| format!("{time}\n"));
        lines.collect()
    }
}

/// Has the services listen at an address, as long as the tasks of this thread run.
///
/// What this machine lacks for their connections is counted.
pub(super) async fn listen(address: Ipv4Addr, outside: &Arc<Outside>) -> io::Result<()> {
    let mut files = Door::open((address, FILES), outside).await?;
    let mut echo = Door::open((address, ECHO), outside).await?;
    let datagrams = UdpSocket::bind((address, ECHO)).await?;
    let round_trips = Rc::new(RoundTrips::default());
    spawn_local(async move {
        loop {
            let (stream, _) = files.accept().await;
            let round_trips = round_trips.clone();
            spawn_local(async move {
                // A client may leave when it likes.
                let _ = serve(stream, &round_trips).await;
            });
        }
    });
    spawn_local(async move {
        loop {
            let (mut stream, _) = echo.accept().await;
            spawn_local(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    set_ip_recvtos(&datagrams, true)?;
    spawn_local(echo_datagrams(datagrams));
    Ok(())
}

/// The bits of the type of service that are the code point; the others are the ECN field.
const CODE_POINT: u8 = 0xfc;

/// Sends datagrams back, with the code point that they came with.
async fn echo_datagrams(socket: UdpSocket) {
    let mut datagram = vec![0; CHUNK];
    let mut last = 0;
    loop {
        let Ok(from) = socket.peek_sender().await else {
            sleep(PAUSE).await;
            continue;
        };
        let read = || receive_with_tos(&socket, &mut datagram);
        let Ok((size, tos)) = socket.async_io(Interest::READABLE, read).await else {
            continue;
        };
        let tos = tos & CODE_POINT;
        if tos != last {
            let _ = set_ip_tos(&socket, tos);
            last = tos;
        }
        let _ = socket.send_to(&datagram[..size], from).await;
    }
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    method: String,
    path: String,
    /// Bytes of the body; nothing if it comes in chunks.
    body: Option<u64>,
    expects_continue: bool,
    closes: bool,
}

impl Request {
    /// Reads a head, without its last line; nothing if it is none of HTTP/1.
    fn read(head: &str) -> Option<Self> {
        let mut lines = head.lines();
        let mut words = lines.next()?.split_whitespace();
        let (method, path, version) = (words.next()?, words.next()?, words.next()?);
        let mut request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            body: Some(0),
            expects_continue: false,
            closes: version == "HTTP/1.0",
        };
        version.strip_prefix("HTTP/1.")?;
        for line in lines {
            let (name, value) = line.split_once(':')?;
            let value = value.trim().to_ascii_lowercase();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => request.body = Some(value.parse().ok()?),
                "transfer-encoding" => request.body = None,
                "expect" => request.expects_continue = value == "100-continue",
                "connection" => request.closes = value == "close",
                _ => {}
            }
        }
        Some(request)
    }
}

/// The bytes that a path such as `/5000000`, `/200kB` or `/5MB.svg` asks for, and of what.
fn file_of(path: &str) -> Option<(u64, Content)> {
    let path = path.strip_prefix('/')?;
    let path = path.split('?').next()?;
    let named = NAMED.into_iter().find_map(|(end, content)| {
        let size = path.strip_suffix(end)?;
        Some((size, content))
    });
    let (path, content) = named.unwrap_or((path, OCTETS));
    let digits = path.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = match path[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    (bytes <= LARGEST).then_some((bytes, content))
}

/// Answers the requests of a connection (HTTP/1.1).
async fn serve(stream: TcpStream, round_trips: &RoundTrips) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(CHUNK, stream);
    while let Some(request) = read_head(&mut stream).await? {
        if request.expects_continue {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let received = match request.body {
            Some(bytes) => skip(&mut stream, bytes).await?,
            None => skip_chunks(&mut stream).await?,
        };
        let text_of = |text: String| (text.len() as u64, "text/plain", Some(text));
        let file = file_of(&request.path);
        let (status, (size, kind, text)) = match (request.method.as_str(), file) {
            ("GET" | "HEAD", Some((bytes, content))) => ("200 OK", (bytes, content.kind, None)),
            ("GET", None) if request.path == PAGE => {
                let text = page();
                ("200 OK", (text.len() as u64, "text/html", Some(text)))
            }
            ("GET", None) if request.path == ROUND_TRIPS => ("200 OK", text_of(round_trips.take())),
            ("PUT" | "POST", _) => ("200 OK", text_of(format!("{received} bytes received\n"))),
            _ => {
                let text = "GET /5000000 or /5MB: a file of that size. GET /page: a web page. \
                            PUT or POST: an upload.\n";
                ("404 Not Found", text_of(text.to_owned()))
            }
        };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {size}\r\nContent-Type: {kind}\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        if let Some(text) = text {
            stream.write_all(text.as_bytes()).await?;
        } else if let Some((_, content)) = file.filter(|_| request.method == "GET") {
            let begin = &content.begin.as_bytes()[..content.begin.len().min(size as usize)];
            stream.write_all(begin).await?;
            let mut left = size - begin.len() as u64;
            let mut next = Instant::now() + NOTED_EVERY;
            while left > 0 {
                let part = left.min(CHUNK as u64);
                match timeout_at(next, stream.write(&content.fill[..part as usize])).await {
                    Ok(written) => left -= written? as u64,
                    Err(_) => {
                        round_trips.note(stream.get_ref());
                        next += NOTED_EVERY;
                    }
                }
            }
        }
        stream.flush().await?;
        if request.closes {
            break;
        }
    }
    stream.shutdown().await
}

/// The next request; nothing if the connection ends or what comes is no request.
async fn read_head(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut head = String::new();
    let mut limited = stream.take(LARGEST_HEAD);
    loop {
        let before = head.len();
        if limited.read_line(&mut head).await? == 0 {
            return Ok(None);
        }
        if head[before..].trim_end().is_empty() {
            return Ok(Request::read(head.trim_end()));
        }
    }
}

/// Reads so many bytes and forgets them.
async fn skip(stream: &mut BufReader<TcpStream>, bytes: u64) -> io::Result<u64> {
    let mut left = bytes;
    while left > 0 {
        let found = stream.fill_buf().await?.len();
        if found == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let part = left.min(found as u64);
        stream.consume(part as usize);
        left -= part;
    }
    Ok(bytes)
}

/// Reads a body that comes in chunks; how long it was.
async fn skip_chunks(stream: &mut BufReader<TcpStream>) -> io::Result<u64> {
    let mut received = 0;
    loop {
        let mut line = String::new();
        stream.take(LARGEST_HEAD).read_line(&mut line).await?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
        // The line's end behind each chunk, and behind the last.
        received += skip(stream, size).await?;
        skip(stream, 2).await?;
        if size == 0 {
            return Ok(received);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as StdSocket;

    use tokio::net::TcpListener;
    use tokio::task::LocalSet;

    use super::*;

    /// Does something with tasks on this thread.
    fn on_tasks<T>(work: impl Future<Output = io::Result<T>>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        LocalSet::new().block_on(&runtime, work).unwrap()
    }

    #[test]
    fn round_trips_of_downloads_can_be_asked_for() {
        let answers = on_tasks(async {
            let files = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = files.local_addr()?;
            let round_trips = Rc::new(RoundTrips::default());
            for _ in 0..2 {
                let (accepting, round_trips) = (files.accept(), round_trips.clone());
                let mut client = TcpStream::connect(address).await?;
                let (stream, _) = accepting.await?;
                let served = spawn_local(async move { serve(stream, &round_trips).await });
                client.write_all(b"GET /1GB HTTP/1.1\r\n\r\n").await?;
                // It waits for a reader meanwhile, and notes a round trip now and then.
                sleep(3 * NOTED_EVERY).await;
                drop(client);
                assert!(served.await.unwrap().is_err());
            }
            Ok((round_trips.take(), round_trips.take()))
        });
        let times: Vec<u32> = answers
            .0
            .lines()
            .map(|line| line.parse().unwrap())
            .collect();
        assert!((2..=10).contains(&times.len()), "{times:?}");
        assert!(times.iter().all(|time| (1..1_000_000).contains(time)));
        assert_eq!(answers.1, "");
    }

    #[test]
    fn datagrams_come_back_with_their_code_point() {
        let found = on_tasks(async {
            let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            set_ip_recvtos(&server, true)?;
            let client = StdSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            client.set_nonblocking(true)?;
            client.connect(server.local_addr()?)?;
            set_ip_recvtos(&client, true)?;
            spawn_local(echo_datagrams(server));
            let client = UdpSocket::from_std(client)?;
            let mut found = Vec::new();
            // The second is marked: a mark is not sent back.
            for tos in [0xb8, 0x23, 0] {
                set_ip_tos(&client, tos)?;
                client.send(b"hello").await?;
                let mut buffer = [0; 16];
                let read = || receive_with_tos(&client, &mut buffer);
                found.push(client.async_io(Interest::READABLE, read).await?);
            }
            Ok(found)
        });
        assert_eq!(found, [(5, 0xb8), (5, 0x20), (5, 0)]);
    }

    #[test]
    fn paths_name_sizes() {
        for (path, bytes) in [
            ("/0", Some(0)),
            ("/5000000", Some(5_000_000)),
            ("/5MB", Some(5_000_000)),
            ("/20k?x=1", Some(20_000)),
            ("/20kB.svg?1", Some(20_000)),
            ("/20kB.png", None),
            ("/1G", Some(1_000_000_000)),
            ("/", None),
            ("/x", None),
            ("/5TB", None),
            ("/99999999999999999999", None),
            ("/9999999999G", None),
        ] {
            assert_eq!(file_of(path).map(|(bytes, _)| bytes), bytes, "{path}");
        }
    }

    #[test]
    fn the_page_has_a_megabyte_of_files() {
        let page = page();
        let files: Vec<_> = page
            .split('"')
            .filter_map(|text| file_of(text).map(|(bytes, content)| (bytes, content.kind)))
            .collect();
        assert_eq!(files.len(), 34);
        assert_eq!(files.iter().map(|(bytes, _)| bytes).sum::<u64>(), 1_000_000);
        assert_eq!(files[0], (40_000, "text/css"));
        assert_eq!(files[33], (25_000, "image/svg+xml"));
    }

    #[test]
    fn a_picture_is_one() {
        let answer = on_tasks(async {
            let files = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let mut client = TcpStream::connect(files.local_addr()?).await?;
            let (stream, _) = files.accept().await?;
            spawn_local(async move { serve(stream, &RoundTrips::default()).await });
            let request = b"GET /1kB.svg HTTP/1.1\r\nConnection: close\r\n\r\n";
            client.write_all(request).await?;
            let mut answer = String::new();
            client.read_to_string(&mut answer).await?;
            Ok(answer)
        });
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Type: image/svg+xml"), "{head}");
        assert_eq!(body.len(), 1000);
        assert!(body.starts_with("<svg ") && body.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn heads_are_read() {
        let head = "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-continue";
        let request = Request::read(head).unwrap();
        assert_eq!(request.body, Some(12));
        assert!(request.expects_continue && !request.closes);
        let chunked = Request::read("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked").unwrap();
        assert_eq!(chunked.body, None);
        assert!(Request::read("GET /1 HTTP/1.0").unwrap().closes);
        for wrong in ["", "GET /1", "GET /1 HTTP/2", "GET /1 HTTP/1.1\nnonsense"] {
            assert_eq!(Request::read(wrong), None, "{wrong}");
        }
    }
}
