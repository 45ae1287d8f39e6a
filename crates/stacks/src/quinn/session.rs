//! A session without cryptography: the messages of TLS 1.3 by their lengths, keys that change
//! nothing, and authentication tags of the right length.
//!
//! What the network sees is what it sees of TLS: the sizes, the times and the number of the
//! datagrams. The messages carry the transport parameters of both ends, and zeros.

use std::any::Any;
use std::sync::Arc;

use aqmlab_net::{FNV_BASIS, fnv1a};
use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Bytes of the tag behind every packet, and of the sample that protects its header.
const TAG: usize = 16;

/// Bytes of a client's hello without its transport parameters: 278 with them, from rustls.
const CLIENT_HELLO: usize = 200;

/// Bytes of a server's hello, in an Initial packet.
const SERVER_HELLO: usize = 90;

/// Bytes of a client's last message.
const FINISHED: usize = 52;

/// Bytes of the two tickets that a server sends behind the handshake.
const TICKETS: usize = 178;

/// Keys that change nothing.
pub(super) struct NullKey;

impl HeaderKey for NullKey {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl PacketKey for NullKey {
    fn encrypt(&self, _packet: u64, _buf: &mut [u8], _header_len: usize) {}

    fn decrypt(
        &self,
        _packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HmacKey for NullKey {
    /// A digest of the data, so that tokens of different connection ids differ: FNV-1a.
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let mut hash = FNV_BASIS;
        for (place, out) in signature_out.iter_mut().enumerate() {
            hash = fnv1a(hash, data.iter().copied().chain([place as u8]));
            *out = (hash >> 32) as u8;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        (expected == signature).then_some(()).ok_or(CryptoError)
    }
}

impl HandshakeTokenKey for NullKey {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NullKey {
    fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&[0; TAG]);
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        _additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(NullKey),
            remote: Box::new(NullKey),
        },
        packet: KeyPair {
            local: Box::new(NullKey),
            remote: Box::new(NullKey),
        },
    }
}

/// Makes sessions of client and server.
pub(super) struct NullCrypto {
    /// Bytes of the server's messages behind its hello, without its transport parameters.
    pub(super) server_flight: usize,
}

impl NullCrypto {
    fn session(&self, side: Side, params: &TransportParameters) -> Box<dyn Session> {
        let mut own = Vec::new();
        params.write(&mut own);
        Box::new(NullSession {
            side,
            own,
            peer: None,
            server_flight: self.server_flight,
            unread: Vec::new(),
            read: 0,
            has_spoken: false,
            level: Level::Initial,
        })
    }
}

impl ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Side::Client, params))
    }
}

impl ServerConfig for NullCrypto {
    fn initial_keys(
        &self,
        _version: u32,
        _dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        self.session(Side::Server, params)
    }
}

/// A session: an end's own parameters, and how far it has come.
struct NullSession {
    side: Side,
    /// The transport parameters of this end, as they travel.
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    server_flight: usize,
    /// What has been read of a message that is not complete.
    unread: Vec<u8>,
    /// Messages that have been read.
    read: u32,
    /// Whether a client has sent its hello, or a server its tickets.
    has_spoken: bool,
    /// How far the keys are: of the handshake, then of the data.
    level: Level,
}

/// What an end has keys for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Initial,
    Handshake,
    Data,
}

/// Writes a message: its length, the length of what it holds, that, and zeros.
fn write(message: &mut Vec<u8>, length: usize, content: &[u8]) {
    let start = message.len();
    let length = length + content.len();
    message.extend_from_slice(&(length as u32).to_be_bytes());
    message.extend_from_slice(&(content.len() as u16).to_be_bytes());
    message.extend_from_slice(content);
    message.resize(start + length, 0);
}

impl NullSession {
    /// Takes a message off what has been read, if it is complete: what it holds.
    fn message(&mut self) -> Option<Vec<u8>> {
        let length = u32::from_be_bytes(*self.unread.first_chunk()?) as usize;
        if self.unread.len() < length {
            return None;
        }
        let message: Vec<u8> = self.unread.drain(..length).collect();
        let content = u16::from_be_bytes([message[4], message[5]]) as usize;
        Some(message[6..6 + content].to_vec())
    }

    /// Notes the parameters of the other end.
    fn take_parameters(&mut self, content: &[u8]) -> Result<(), TransportError> {
        let parameters = TransportParameters::read(self.side, &mut &content[..]);
        self.peer = Some(parameters.map_err(|_| TransportError {
            code: TransportErrorCode::TRANSPORT_PARAMETER_ERROR,
            frame: None,
            reason: String::new(),
        })?);
        Ok(())
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => self.level != Level::Data,
            // It has read the client's last message, and answered.
            Side::Server => !self.has_spoken,
        }
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.unread.extend_from_slice(buf);
        while let Some(content) = self.message() {
            self.read += 1;
            if !content.is_empty() {
                self.take_parameters(&content)?;
            }
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.level, self.read) {
            (Side::Client, Level::Initial, 0) if !self.has_spoken => {
                write(buf, CLIENT_HELLO, &self.own);
                self.has_spoken = true;
                return None;
            }
            (Side::Client, Level::Initial, 1..) => self.level = Level::Handshake,
            (Side::Client, Level::Handshake, 2..) => {
                write(buf, FINISHED, &[]);
                self.level = Level::Data;
            }
            (Side::Server, Level::Initial, 1..) => {
                write(buf, SERVER_HELLO, &[]);
                self.level = Level::Handshake;
            }
            (Side::Server, Level::Handshake, _) => {
                write(buf, self.server_flight, &self.own);
                self.level = Level::Data;
            }
            (Side::Server, Level::Data, 2..) if !self.has_spoken => {
                write(buf, TICKETS, &[]);
                self.has_spoken = true;
                return None;
            }
            _ => return None,
        }
        Some(keys())
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = keys();
        Some(keys.packet)
    }

    fn is_valid_retry(
        &self,
        _orig_dst_cid: &ConnectionId,
        _header: &[u8],
        _payload: &[u8],
    ) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}
