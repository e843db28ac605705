// Package paper001 repeats the experiments of "WebRTC-Based Volumetric Video Conferencing: SFU Architecture Evaluation
// and Benchmarking": transports, tiles, qualities, frame rates and delays of a one-way session, and the latency of
// decisions on quality between two peers that move around each other.
//
// Package paper001 has no state.
package paper001
