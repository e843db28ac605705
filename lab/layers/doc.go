// Package layers measures what is claimed of frame times: that the layers of a frame add up to its latency, on one machine and between hosts whose clocks differ, and how
// long frames stay in the server under the load of the experiment layers, which is the paper's ("Latency in Real-Time 3D Volumetric Streaming", section III-B). The programs of
// the repository run as they are, and what they write is compared. A check belongs to the goroutine that runs it.
package layers
