// Package reproduction compares the results of experiments with every table and figure of the five papers that this
// project succeeds (vollab reproduce). The items are data: items.yaml names the experiments and cells of each item; the
// values of the papers stand in the files of the experiments.
package reproduction
