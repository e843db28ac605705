// Package firstlight measures the claims of the first conference of point clouds: that frames arrive whole, at their rate, in time, also while
// qualities are switched, packets are lost and people come and go. Each check is a type of its own; each measures on the goroutine that calls Run.
package firstlight
