// Package foreign opens C libraries at run time and calls their functions, so that a program starts without them and
// needs no C compiler. Libraries are never closed, because their threads may outlive the last call.
package foreign
