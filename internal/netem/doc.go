// Package netem emulates network links in one process: delay, jitter, random and burst loss, a bottleneck with a queue
// and a rate that may change over time, reordering and duplication, and TCP-like flows that compete for the bottleneck.
// Results are deterministic for a seed.
//
// The package has three parts. Link is the pure core: one direction of one link, stepped with an explicit now, without
// goroutines or clocks, bit-exact for a seed. CubicFlow and PragueFlow, also pure, are endless transfers through a Link
// by idealised senders: Cubic, as most of TCP uses it, and Prague, the scalable sender of L4S. All of them belong to
// the goroutine that steps them. Network is a thin shell around them: an in-memory network of hosts with an access link
// each, whose sockets (Conn) are net.PacketConns that behave like UDP sockets, and whose links may carry CubicFlows in
// addition to the sockets' packets. One mutex guards a Network's state, links and flows included, and one goroutine per
// Network delivers packets that are due; a Conn's receive buffer has a mutex of its own. The shell uses only mutexes,
// condition variables and timers, so it runs in real time and, inside a testing/synctest bubble, in virtual time.
//
// # The path of a packet through a Link
//
// A packet waits in the Queue (DropTail, CoDel, FairQueue) until the transmitter is idle, and occupies the transmitter
// for size × 8 / rate; the rate may follow a RateTrace. On the wire it is then lost, delayed, held back or copied. Loss
// on the wire therefore uses capacity, as behind a real bottleneck; copies made on the wire do not.
//
// # Seeds
//
// Every effect has a random stream of its own, with one draw per offered packet, whatever happens to the packet
// otherwise. The decision of an effect for the n-th packet therefore depends only on the seed, on n and on the
// parameters of that effect: enabling or disabling another effect changes neither which packets are lost nor which are
// copied.
package netem
