package server

import (
	"net/http"

	"github.com/volsfu/volsfu/internal/dialect/whip"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/signalling"
)

// openWHIP serves encoders and players that use WHIP and WHEP.
func (s *Server) openWHIP(
	mux *http.ServeMux, limits *signalling.AddressLimits, pages signalling.Pages, auth signalling.Authenticator,
	counts *metrics.Metrics, log *signalling.Log,
) {
	whip.NewServer(s.config.Signalling, limits, onlyNode{s.node}, auth, counts, log).Register(mux, pages)
}
