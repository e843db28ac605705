// Package service makes a network available to other processes by its name: over a socket in a folder, the processes
// query the network's hosts, change links and end the network.
//
// The package owns that folder, /run/vollab unless FolderVariable is set, and the messages over the socket: JSON, with
// one request and one answer per line. A Service has a goroutine that accepts connections and one per connection; the
// methods of its Network are safe for concurrent use. The next process that finds the socket of a killed process
// removes the socket.
package service
