// Package paper000 repeats the experiments of paper 000 (De Fré et al., Low-latency volumetric video conferencing in
// congested networks through L4S): volumetric video over WebRTC and over L4S, beside TCP Cubic and Prague at a
// bottleneck of 200 Mbit/s, with the paper's queue or a plain one; the stages of a frame's latency; and the similarity
// of captured and shown pictures.
package paper000
