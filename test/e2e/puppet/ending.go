package puppet

// EndMedia closes the peer connection, which the server is notified of, while the websocket stays open.
func (p *Puppet) EndMedia() { _ = p.peer.Close() }
