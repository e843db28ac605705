// Package layers measures the claims about frame times. The layers of a frame add up to its latency, on one machine and
// between hosts with different clocks. Frames stay in the server for a short time under the load of the experiment
// layers, which is the load of the paper ("Latency in Real-Time 3D Volumetric Streaming", section III-B). The checks
// run the programs of the repository unchanged and compare their records. A check belongs to the goroutine that runs
// it.
package layers
