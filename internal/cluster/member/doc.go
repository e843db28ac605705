// Package member makes this server a node of a cluster: it joins the state of the cluster (cluster.Replica), the
// messages between nodes (fabric.Fabric), the media between nodes (trunk.Host) and the rooms of this node (sfu.Node).
//
// One goroutine owns the Member. Its parts are the queue of what the rooms have published, the directory with the
// replica and the records of sessions, the rooms, the payloads for trunks, and the view for other goroutines. Rooms
// publish their events to the queue (Tell), and receive those of other nodes by sfu.Node.Remote. Neither side waits for
// the other.
//
// A room receives the difference between the claims of the replica and what the room knows (room). So no event of a
// participant has to wait in a queue while the room has no place for it, and none can be lost. Data messages wait in
// bounded queues (room, outbox).
//
// This node has a trunk to another node while both have a common room, and for 30 s afterwards (links). A reliable data
// message that is sent before the trunk is open waits for the trunk.
package member
