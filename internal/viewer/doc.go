// Package viewer serves the pages for browsers: which addresses they have, how long browsers keep them, and what they may load. Its handler keeps compressed copies of
// files, which any goroutine reads.
package viewer
