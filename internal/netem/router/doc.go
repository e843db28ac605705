// Package router emulates a network between processes in real time: network namespaces with a TUN device for each of their interfaces, and one thread that takes packets from the one,
// over the links of internal/netem, to the other.
//
// It owns the namespaces, the devices and that thread. Mesh is the pure core: links, the routes over them and the changes of their parameters, stepped with an explicit now. Router is the
// thin shell around it. Its thread owns the Mesh and all counters; the methods of Router may be called from any goroutine and ask the thread.
//
// # Time
//
// A packet enters its first link when the thread has read it, enters each further one at the very time at which it leaves the one before, and is written when the thread
// comes to it after it has left the last. So it is late by two things: how long it lay in the device before it was read, and how long after its time it was written. Both are
// counted for every packet, the first as an upper bound (see lateness), and Validity says whether they were small enough for the run to mean something.
//
// Nothing outlives the process: namespaces are held by file descriptors, devices end with theirs, and so even SIGKILL leaves nothing behind but what other processes still
// use, a namespace without a device.
package router
