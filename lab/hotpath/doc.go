// Package hotpath measures the cost of forwarding a packet, the time that a packet stays in the server, and the packets
// that the server loses. Package hotpath measures volsfu and, for comparison, the minimal server on Pion's own media
// path (package fanout).
//
// Publishers send prepared frames. Receivers count media by the clear headers of RTP and decrypt nothing, except one
// receiver that measures times. The measured server therefore has the machine almost for itself.
//
// A measurement belongs to the goroutine that calls it. Each client has a goroutine that reads its socket, and each
// publisher has one that sends frames.
package hotpath
