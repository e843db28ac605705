// Package fidelity measures the accuracy of an emulated network: delays of single packets compared with a model, rates,
// losses and marks.
//
// The package owns the probes, which are sockets on the network's hosts with a thread each, and the model. From the
// time at which a packet was passed to the kernel, the model computes the time at which the packet must leave the link.
// The result is compared with the kernel's own time of reception, so that the measuring processes need not be in time.
package fidelity
