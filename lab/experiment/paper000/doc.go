// Package paper000 repeats the WebRTC half of the experiments of paper 000 (De Fré et al., Low-latency volumetric video conferencing in congested networks through
// L4S): volumetric video beside TCP Cubic at a bottleneck of 200 Mbit/s, with the paper's queue or a plain one; where the time of a frame goes; and how alike
// what was captured and what was shown look.
package paper000
