// Package exposition reads metrics in Prometheus's text exposition format, version 0.0.4, from a running program.
package exposition
