// Package codepoints counts the datagrams on the loopback interface by ECN codepoint and protocol, for tests of what
// the programs' own sockets send.
package codepoints
