// Package fidelity measures the accuracy of an emulated network: delays of single packets against those of a model,
// rates, losses and marks.
//
// The package owns the probes, sockets on the network's hosts with a thread each, and the model. The model computes
// from the time at which a packet was handed to the kernel when the packet must leave the link. The result is compared
// with the kernel's own time of reception, so the measuring processes need not be in time.
package fidelity
