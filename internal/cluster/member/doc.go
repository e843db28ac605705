// Package member makes this server a node of a cluster: it joins the state of the cluster (cluster.Replica), the
// messages between nodes (fabric.Fabric) and the rooms of this node (sfu.Node).
//
// One goroutine owns the replica. Rooms tell their events to a queue (Tell), and receive those of other nodes by
// sfu.Node.Remote. Neither side waits for the other.
package member
