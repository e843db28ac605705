// Package firstlight measures the claims of the first conference of point clouds: frames arrive complete, at their rate
// and in time, also while qualities are switched, packets are lost and participants join and leave. Each check is a
// type, which measures on the goroutine that calls Run.
package firstlight
