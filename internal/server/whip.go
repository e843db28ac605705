package server

import "github.com/volsfu/volsfu/internal/dialect/whip"

// serveWHIP serves encoders and players that use WHIP and WHEP.
func (s *startup) serveWHIP() {
	c := s.config.Signalling
	whip.NewServer(c, s.limits, onlyNode{s.node}, s.clients, s.counts, s.requests).
		Register(s.mux, c.Pages(s.config.Server.Dev))
}
