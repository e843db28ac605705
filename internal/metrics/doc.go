// Package metrics owns the Prometheus metrics of a server: their names, their labels, and how they reach a registry that the caller
// injects. The control plane counts through the methods of Metrics, which any goroutine may call. The data plane counts by itself, without
// a lock that receivers share, and is asked for a Snapshot when Prometheus scrapes.
//
// No label ever has the name of a room or a participant, and every label has a fixed set of values: what a client sends is never one.
package metrics
