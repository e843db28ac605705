// Package direct runs vollab direct produce and vollab direct consume in two hosts of an emulated network, and reads what they know of each frame. The
// experiments of papers 000 and 002 are made of it.
//
// A Run belongs to the goroutine that starts it; frames are plain data.
package direct
