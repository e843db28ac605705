// Package control runs the server's congestion control in virtual time. The server steps the same sender.Sender as the
// real one, which TestStories of both packages shows. The budget, the allocator, feedback, requests for lost packets and
// parity are the server's and the client's own pure parts, too. Simulated are the publisher's frames, the link and what
// competes for it.
//
// A Simulation is one run of a Case. It belongs to the goroutine that runs it; there are no clocks, and a seed gives the same run bit by bit.
//
//	publisher   frames of 4 tiles at the qualities that the server asks for, 30 per second, sizes varying by ±20 %
//	server      the server towards one receiver: allocation before each frame, pacing, retransmissions, probes, parity
//	bottleneck  netem's Link with a queue that is watched; every flow of the run passes it
//	receiver    reports of arrivals, requests for what is missing, frames completed within their deadline
//	ledger      what became of each frame, and rates over time
//
// Requests for lost packets are answered by the round trip as the estimator measures it, queues included, and retransmissions leave as fast as frames do and no faster. Each
// of both keeps a full queue from being filled with what it has dropped.
//
// The publisher's uplink is not part of it: frames are at the server at once when they are captured. Neither is audio.
//
// RunLive has the same cases happen to a server and its clients in this process, over an emulated network in real time. Both leave a Record.
package control
