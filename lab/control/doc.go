// Package control runs the server's congestion control in virtual time. The server steps the same sender.Sender as the
// real server, as TestStories of both packages proves. Budget, allocator, feedback, NACK and parity are also the pure
// parts that the server and the client use. The publisher's frames, the link and the competing traffic are simulated.
//
// A Simulation is one run of a case. A Simulation belongs to the goroutine that runs it; there are no clocks, and the
// same seed reproduces the run bit by bit.
//
//	publisher   frames of 4 tiles at the qualities that the server requests, 30 per second, sizes varying by ±20 %
//	server      the server towards one receiver: allocation before each frame, pacing, retransmissions, probes, parity
//	bottleneck  netem's Link with a watched queue, shared by every flow of the run
//	receiver    arrival reports, NACKs, frames completed within their deadline
//	ledger      the result of each frame, and rates over time
//
// NACKs are answered according to the round trip that the estimator measures, queues included, and retransmissions are
// paced like frames. Both rules prevent a full queue from being filled with the packets it has dropped.
//
// The publisher's uplink is not simulated: frames are at the server as soon as they are captured.
//
// RunLive runs the same cases with a server and its clients in this process, over an emulated network in real time: a
// netem.Network inside the process, or for cases about L4S hosts with real sockets (package topology), beside real
// competitors (package rival). All kinds of run produce a Record.
package control
