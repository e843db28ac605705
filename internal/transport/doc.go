// Package transport is the layer below RTP: one UDP port with batched sockets, ICE-TCP on the same port number, and
// peer connections made of ICE (pion/ice), DTLS (pion/dtls) and the project's own SRTP contexts. The package is the
// same for servers and clients: a server's peers offer, a client's peer answers.
//
// An Endpoint owns its sockets, one reading goroutine per socket, and one goroutine that steps the ICE mux and the
// consent of the peers. Protected RTP and RTCP bypass ICE. The goroutine that reads the socket decrypts packets from
// the address of a peer's selected candidate pair and calls the peer's Sink. The goroutine that writes to an Outlet
// encrypts packets straight into the peer's send buffer. Packets leave in runs of equal length (UDP_SEGMENT).
// Everything else passes through ICE, as do packets that arrive before ICE has selected a pair and packets over TCP.
//
// A Peer has an ICE agent (iceAgent), a path to the remote peer (path), a receiving side (incoming), a sending side
// (outbox) and data channels. The methods for negotiation belong to one goroutine of the owner. The methods for sending
// are safe for any goroutine. The owner reads connection states and candidates from the peer's event list.
//
// Subpackages: icemux delivers datagrams to ICE agents, within limits. icetcp accepts ICE-TCP connections. secure makes
// the DTLS connection and the SRTP contexts. datachannels carries messages over SCTP. hostnet describes this host's
// networks. ratelimit has token buckets.
package transport
