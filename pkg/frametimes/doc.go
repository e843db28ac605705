// Package frametimes tells where the time of a frame goes, in layers, as the paper "Latency in Real-Time 3D Volumetric Streaming" defines them (sections III-B and
// IV): stamps of the stages that one tile frame passes, from capture to display, become a Record, and the differences between stamps its Layers.
//
// All stamps of a record are by one clock, the reference: the server's, where there is one. How the time of each host was turned into it, and how far that may be off,
// stands beside them. Records are plain data, written and read as JSON lines and CSV; nobody owns them.
package frametimes
