// Package transport owns what lies under RTP: the one UDP port with its ICE mux, ICE-TCP on the same number, and peer connections whose
// media is tapped before Pion's tracks. It knows neither servers nor clients: a server's peers offer, a client's peer answers.
//
// An Endpoint owns its sockets. A Peer's methods for negotiation belong to one goroutine of its owner; decrypted RTP and RTCP reach the
// peer's Sink on one goroutine of Pion's each. What happens to the connection is taken from the peer's event list.
package transport
