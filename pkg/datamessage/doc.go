// Package datamessage orders data messages (signal.Data) that travel in two ways: each reliable message goes over the
// websocket, which delivers all messages in order, and short ones are copied to a data channel, which delivers most
// messages without a wait for lost packets. A Receiver takes the first copy of each message, a Sender numbers messages
// and repeats those that a broken websocket has not delivered.
//
// The types are pure. Each value belongs to one goroutine, or to the holder of a lock.
package datamessage
