// Package fuzz finds, builds and runs native fuzz tests, for the test suite and for checks of the lab. It is stateless.
package fuzz
