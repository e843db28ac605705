// Package fabric carries messages between the nodes of a cluster over core NATS, without JetStream and without a store.
//
// The NATS server runs inside this process and connects to the servers of the other nodes (routes), or it is external.
// In both cases a Fabric is one client of NATS, with rights on the subjects volsfu.<cluster>.> only. The last part of
// each subject is the name of the sending node. A message may be
// lost: the logs that nodes replicate have numbers, and a missing number is requested.
//
// The goroutines are those of NATS, and one that bounds the queue of received messages. Messages are taken from the
// queue by the owner of the Fabric (Notify, Messages). No message of a node waits for this node. Each node has a share
// of the queue: the messages beyond the share are dropped and counted, and those of other nodes are not affected.
package fabric

import "errors"

var (
	// ErrAddress is wrapped with the invalid address.
	ErrAddress = errors.New("invalid address of a cluster")
	// ErrStart is wrapped with the reason for which the embedded server did not start.
	ErrStart = errors.New("the embedded NATS server did not start")
	// ErrTooLarge is wrapped with the size of a message and the limit.
	ErrTooLarge = errors.New("message too large")
	// ErrDisconnected is the error of sending while no NATS server is reachable.
	ErrDisconnected = errors.New("no NATS server is reachable")
)
