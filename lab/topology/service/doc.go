// Package service makes a network one that other processes find by its name: a socket in a folder, over which they learn where its hosts are, change links and end it.
//
// It owns that folder, /run/vollab unless FolderVariable names another, and the messages over the socket, which are JSON, one request and one answer per line. A Service has a goroutine that accepts
// and one per connection; the Network that it serves guards itself. A socket whose process was killed is removed by whoever finds it next.
package service
