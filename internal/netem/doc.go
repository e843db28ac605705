// Package netem emulates network links in one process: delay, jitter, random and burst loss, a bottleneck whose rate may change over time, with its
// queue, reordering and duplication, and TCP-like flows that compete for the bottleneck; deterministic by seed.
//
// It owns three things. Link is the pure core: one direction of one link, stepped with an explicit now, without goroutines or clocks, bit-exact for a
// seed. CubicFlow, as pure, is an endless transfer through a Link by Cubic, an idealised TCP sender. Both belong to whoever steps them. Network is the thin
// shell around them: an in-memory network of hosts with an access link each, whose sockets (Conn) are net.PacketConns that behave like UDP sockets, and whose
// links may carry CubicFlows beside the sockets' packets. A Network's state, links and flows included, is guarded by one mutex, and one goroutine per
// Network delivers what has become due; a Conn's receive buffer has a mutex of its own. The shell uses only mutexes, condition variables and timers, so it runs
// in real time and, inside a testing/synctest bubble, in virtual time.
//
// # The way of a packet through a Link
//
// A packet waits in the Queue (DropTail, CoDel, FairQueue) until the transmitter is idle, occupies the transmitter for size × 8 / rate, where the rate may follow a RateTrace, and
// is then lost, delayed, held back or copied on the wire. Loss on the wire therefore uses up capacity, as it does behind a real bottleneck, and copies made on the wire do not.
//
// # Seeds
//
// Every effect draws from a random stream of its own, once per packet offered, whatever happens to the packet otherwise. So the fate that an effect has
// in store for the n-th packet depends on the seed, n and the parameters of that effect alone: switching another effect on or off changes neither which packets are lost nor
// which are copied.
package netem
