// Package direct runs vollab direct produce and vollab direct consume on two hosts of an emulated network, and reads
// their log of frames. The experiments of papers 000 and 002 are based on it.
//
// A Run belongs to the goroutine that starts it; frames are plain data.
package direct
