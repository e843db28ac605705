// Package puppet is a client for tests that says and sends what the test tells it to, right or wrong: whatever a client could put on its
// websocket, into a session description, or into its encrypted RTP and RTCP. Left alone it behaves: it answers offers, acknowledges
// assignments and exchanges candidates.
//
// A Puppet has one goroutine that reads its websocket and one that negotiates; its methods are safe for concurrent use, except that the packets of
// one Line are for one goroutine at a time.
package puppet
