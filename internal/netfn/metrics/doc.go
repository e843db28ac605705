// Package metrics owns the Prometheus metrics of an edge: names, labels, and a collector that reads the state of the
// edge at each scrape. Labels are names of the configuration, or have a fixed set of values.
package metrics
