// Package plan computes what a cluster carries: media of clients, media between nodes, processor time, messages of the
// state, and the work after the death of a node. docs/cluster.md has the model with the sources of its figures.
//
// The package is pure. The lengths of messages are those of the encoders of internal/cluster.
package plan
