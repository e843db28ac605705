package server

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/internal/transport"
)

func TestWarningsOfBuffers(t *testing.T) {
	wanted := transport.DefaultConfig()
	wanted.ReceiveBuffer, wanted.SendBuffer = 3000, 2000
	for _, test := range []struct {
		name          string
		receive, send int
		advice        []string
	}{
		{"both as wanted", 3000, 2000, nil},
		{"both limited", 2999, 1999, []string{"sysctl -w net.core.rmem_max=3000", "sysctl -w net.core.wmem_max=2000"}},
		{"what is sent", 4000, 1000, []string{"sysctl -w net.core.wmem_max=2000"}},
		{"what is received", 1000, 4000, []string{"sysctl -w net.core.rmem_max=3000"}},
		{"unknown", 0, 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			warnOfBuffers(zap.New(core), wanted, test.receive, test.send)
			var advice []string
			for _, entry := range logs.All() {
				_, command, _ := strings.Cut(entry.Message, "allow them by: ")
				advice = append(advice, command)
			}
			if !slices.Equal(advice, test.advice) {
				t.Errorf("advised %q, want %q", advice, test.advice)
			}
		})
	}
}
