// Package paper004 repeats the experiments of paper 004 (Hong et al., Latency in real-time 3D volumetric streaming: a
// comprehensive study): raw frames of a depth camera from one sender through the server to two receivers, with the time
// of each frame in layers, and probe packets with the stamps of kernels and network cards.
//
// A run belongs to the goroutine that started it.
package paper004
