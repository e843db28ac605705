// Package conversation sends raw frames of a depth camera from one sender through the server to several receivers,
// paced as in paper 004 (Hong et al., Latency in real-time 3D volumetric streaming: a comprehensive study, sections
// III-B and IV), and collects the times of every frame from all participants.
//
// The server is a separate process. Sender and receivers are in this process. A run belongs to the goroutine that
// started it.
package conversation
