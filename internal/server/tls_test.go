package server

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
)

// TestCertificateThatIsMissing: a server that could not start leaves nothing listening.
func TestCertificateThatIsMissing(t *testing.T) {
	s := &Server{log: zap.NewNop(), config: config.DefaultConfig()}
	s.config.Server.Listen = "127.0.0.1:0"
	s.config.Server.TLSCert, s.config.Server.TLSKey = filepath.Join(t.TempDir(), "certificate"), filepath.Join(t.TempDir(), "key")
	if err := s.listen(http.NotFoundHandler()); err == nil {
		t.Fatal("there is no certificate, and it listens")
	}
	if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closing the listener gave %v: it was open still", err)
	}
}
