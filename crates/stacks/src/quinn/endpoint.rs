//! The configuration of an end: all that is random comes from the seed, and nothing from a clock.

use std::sync::Arc;
use std::time::SystemTime;

use aqmlab_net::{RandomStream, Role};
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig,
    MtuDiscoveryConfig, NoneTokenStore, ServerConfig, TimeSource, TransportConfig, VarInt,
};

use super::control::{Seen, Watched};
use super::session::{NullCrypto, NullKey};
use crate::settings::{Control, Quinn};

/// Bytes of connection ids, as quinn has them.
const ID: usize = 8;

/// Bytes of a client's first guess of its server's connection id, as quinn has it.
const FIRST_ID: usize = 20;

/// Stream windows that may be sent and not yet acknowledged, as quinn has it.
const SEND_WINDOWS: u64 = 8;

fn bytes(draws: &mut RandomStream, bytes: &mut [u8]) {
    bytes.fill_with(|| (draws.uniform() * 256.0) as u8);
}

/// Draws connection ids.
struct Ids(RandomStream);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; ID];
        bytes(&mut self.0, &mut id);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        ID
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// Where tokens have a date, it is always the same.
struct FixedClock;

impl TimeSource for FixedClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// The transport of both ends of a connection.
pub(super) fn transport(settings: &Quinn, seen: &Arc<Seen>) -> Arc<TransportConfig> {
    let window = settings.initial_window.0;
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match settings.congestion_control {
        Control::Cubic => {
            let mut cubic = CubicConfig::default();
            cubic.initial_window(window);
            Arc::new(cubic)
        }
        Control::NewReno => {
            let mut reno = NewRenoConfig::default();
            reno.initial_window(window);
            Arc::new(reno)
        }
    };
    let datagram = settings.datagram.0 as u16;
    let stream = settings.receive_window.0;
    let search = settings.mtu_discovery.then(MtuDiscoveryConfig::default);
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(datagram)
        .min_mtu(datagram)
        .mtu_discovery_config(search)
        .stream_receive_window(VarInt::from_u32(stream as u32))
        .send_window(SEND_WINDOWS * stream)
        .congestion_controller_factory(Arc::new(Watched {
            factory,
            seen: Arc::clone(seen),
        }));
    Arc::new(transport)
}

/// The endpoint of one end of a connection.
pub(super) fn endpoint(
    settings: &Quinn,
    role: Role,
    (seed, connection): (u64, u64),
    transport: &Arc<TransportConfig>,
) -> Endpoint {
    let end = connection << 1 | role as u64;
    let mut draws = RandomStream::new(seed, "quinn", end);
    let mut own = [0; 32];
    bytes(&mut draws, &mut own);
    // The defaults would draw a key of their own.
    let mut config = EndpointConfig::new(Arc::new(NullKey));
    config.rng_seed(Some(own));
    config.cid_generator(move || Box::new(Ids(RandomStream::new(seed, "quinn-id", end))));
    let most = settings.datagram.0.max(1452).max(1472) as u16;
    config
        .max_udp_payload_size(most)
        .expect("datagrams are within its bounds");
    let server = (role == Role::Server).then(|| {
        let crypto = Arc::new(NullCrypto {
            server_flight: settings.server_flight.0 as usize,
        });
        let mut server = ServerConfig::new(crypto, Arc::new(NullKey));
        server.time_source(Arc::new(FixedClock));
        server.transport_config(Arc::clone(transport));
        Arc::new(server)
    });
    Endpoint::new(Arc::new(config), server, true, None)
}

/// The configuration of a client.
pub(super) fn client(
    settings: &Quinn,
    (seed, connection): (u64, u64),
    transport: Arc<TransportConfig>,
) -> ClientConfig {
    let mut first = [0; FIRST_ID];
    bytes(
        &mut RandomStream::new(seed, "quinn-first-id", connection),
        &mut first,
    );
    let mut client = ClientConfig::new(Arc::new(NullCrypto {
        server_flight: settings.server_flight.0 as usize,
    }));
    client.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first)));
    client.token_store(Arc::new(NoneTokenStore));
    client.transport_config(transport);
    client
}
