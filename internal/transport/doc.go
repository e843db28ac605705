// Package transport owns what lies under RTP: the one UDP port with its batched sockets, ICE-TCP on the same number, and peer connections made of
// ICE (pion/ice), DTLS (pion/dtls) and SRTP contexts of our own. It knows neither servers nor clients: a server's peers offer, a client's
// peer answers.
//
// An Endpoint owns its sockets and one goroutine per socket that reads it. Protected RTP and RTCP never pass through ICE on their way: what
// comes from the address of a peer's selected candidate pair is opened by the goroutine that reads the socket, and goes to the peer's Sink;
// what is sent is sealed by whoever writes to an Outlet, straight into the peer's send buffer, and leaves in runs of equal length
// (UDP_SEGMENT). Everything else, and what comes before ICE has found the remote peer or over TCP, takes the way through ICE.
//
// A Peer's methods for negotiation belong to one goroutine of its owner; those for sending are safe for any. What happens to the connection is
// taken from the peer's event list.
package transport
