// Package transport owns what lies under RTP: the one UDP port with its batched sockets, ICE-TCP on the same number,
// and peer connections made of ICE (pion/ice), DTLS (pion/dtls) and SRTP contexts of our own. It knows neither servers
// nor clients: a server's peers offer, a client's peer answers.
//
// An Endpoint owns its sockets, one goroutine per socket that reads it, and one that steps the ICE mux and the consent
// of peers. Protected RTP and RTCP do not pass through ICE: what comes from the address of a peer's selected candidate
// pair is opened by the goroutine that reads the socket, and goes to the peer's Sink. What is sent is sealed by the
// goroutine that writes to an Outlet, straight into the peer's send buffer, and leaves in runs of equal length
// (UDP_SEGMENT). Everything else, and what comes before ICE has found the remote peer or over TCP, passes through ICE.
//
// A Peer has an ICE agent (iceAgent), a path to the remote peer (path), what it receives (incoming), what it sends
// (outbox) and data channels. Its methods for negotiation belong to one goroutine of its owner. Those for sending are
// safe for any. The owner takes what happens to the connection from the peer's event list.
//
// The packages below: icemux gives ICE agents the datagrams that are for them, within bounds; icetcp accepts ICE-TCP
// connections; secure makes the DTLS connection and the SRTP contexts; datachannels carries messages over SCTP; hostnet
// knows this host's networks; ratelimit has token buckets.
package transport
