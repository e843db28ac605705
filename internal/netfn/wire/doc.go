// Package wire encodes and decodes the messages between the two edges of a pair: the header of data packets, and the
// control messages. It is pure: it has no sockets and no clock, and any bytes give an error or a valid message.
package wire
