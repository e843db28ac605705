// Package fidelity measures how true an emulated network is: delays of single packets against those of a model, rates, losses and marks.
//
// It owns the probes, sockets inside the network's hosts with a thread each, and the model. The model is told when a packet was handed to the kernel, and computes when it has to come out of the
// link; the kernel's own time of reception is compared with that, so that the processes that measure do not have to be in time.
package fidelity
