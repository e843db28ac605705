// Package entry decides on which node of a cluster a client joins or resumes, and moves clients to other nodes.
//
// Every node accepts every websocket. Entry implements signalling.Cluster: for each join, Entry opens the client's
// ticket, if the client has one, and chooses a node. The decisions depend on the nodes and sessions that this node
// knows (View) and not on messages to other nodes, so that a join waits for no node. Two nodes that decide differently
// cause one move more, and no fault: every node can serve every room.
package entry
