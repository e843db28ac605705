// Package service makes a network available to other processes by its name: a socket in a folder, over which they query
// its hosts, change links and end it.
//
// The package owns that folder, /run/vollab unless FolderVariable names another, and the messages over the socket,
// which are JSON, one request and one answer per line. A Service has a goroutine that accepts connections and one per
// connection; the methods of its Network are safe for concurrent use. The socket of a killed process is removed by the
// next process that finds it.
package service
