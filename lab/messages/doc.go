// Package messages measures the delay of data messages between two participants of a room. Command vollab messages is
// one participant: a sender, whose messages have the time of sending, or a receiver, which prints the delays. The two
// must have one clock, so they run on one host, for example in two network namespaces.
package messages
