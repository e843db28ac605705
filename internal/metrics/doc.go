// Package metrics owns the Prometheus metrics of a server: names, labels, and registration in a registry that the
// caller passes. The control plane counts through the methods of Metrics, which any goroutine may call. The data plane
// counts by itself, without a lock shared by receivers, and returns a Snapshot at each scrape.
//
// No label has the name of a room or a participant, and every label has a fixed set of values, none of which comes from
// a client.
package metrics
