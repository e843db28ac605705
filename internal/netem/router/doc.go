// Package router emulates a network between processes in real time: network namespaces with a TUN or TAP device for
// each of their interfaces, and one thread that reads packets from one device and writes them to another, over the
// links of internal/netem.
//
// The package owns the namespaces, the devices and the thread. Mesh is the pure core: links, the routes over them and
// the changes of their parameters, stepped with an explicit now. Router is a thin shell around it. Its thread owns the
// Mesh and all counters; the methods of Router may be called from any goroutine and send requests to the thread.
//
// # Time
//
// A packet enters its first link when the thread has read it, enters each further link exactly when it leaves the
// previous one, and is written when the thread processes it after it has left the last. The lateness of a packet
// therefore has two parts: the time in the device before it was read, and the time from its arrival to writing. Both
// are counted for every packet, the first as an upper bound (see Packet.Late), and Validity reports whether they were
// small enough for a meaningful run.
//
// Nothing outlives the process: namespaces are held by file descriptors, and devices end with their descriptors. Even
// SIGKILL leaves nothing behind, except a namespace without a device that other processes still use.
package router
