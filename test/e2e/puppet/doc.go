// Package puppet is a client for tests that sends what the test specifies, valid or not: any data on its websocket, in
// a session description, or in its encrypted RTP and RTCP. By default it behaves correctly: it answers offers,
// acknowledges assignments and exchanges candidates.
//
// A Puppet has one goroutine that reads its websocket and one that negotiates; the methods are safe for concurrent use,
// except that the packets of one Line are sent by one goroutine at a time.
package puppet
