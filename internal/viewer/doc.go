// Package viewer serves the pages for browsers: addresses, cache times, and their content security policy. The handler
// keeps compressed copies of files, which any goroutine may read.
package viewer
