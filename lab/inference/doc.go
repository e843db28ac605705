// Package inference computes confidence intervals and tests for means of repeated measurements: few values, of unequal
// variances, that do not depend on one another.
package inference
