package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/signalling"
)

// TestWebsocketsFromOneAddress: an address has one limit for all dialects, and other addresses and this host are not
// affected.
func TestWebsocketsFromOneAddress(t *testing.T) {
	s := newStage(t, func(c *config.Config) {
		c.Signalling.AddressWebsockets, c.Signalling.AddressRate, c.Signalling.AddressBurst = 2, 1e-9, 100
		c.Signalling.TrustedProxies = []string{"127.0.0.1"}
		c.Admin.Listen = "127.0.0.1:0"
	})
	for _, entry := range []struct {
		what, path, of string
		status         int
	}{
		{"the first", "/v1/signal", "203.0.113.9", http.StatusSwitchingProtocols},
		{"the second in the other dialect", "/websocket?clientid=3", "203.0.113.9", http.StatusSwitchingProtocols},
		{"the third", "/v1/signal", "203.0.113.9", http.StatusTooManyRequests},
		{"the third in the other dialect", "/r/lab/websocket?clientid=4", "203.0.113.9", http.StatusTooManyRequests},
		{"the third that asks for the rooms", signalling.RoomsPath, "203.0.113.9", http.StatusTooManyRequests},
		{"another", "/v1/signal", "203.0.113.10", http.StatusSwitchingProtocols},
		{"nobody", "/v1/signal", "nobody", http.StatusBadRequest},
		{"this host", "/v1/signal", "", http.StatusSwitchingProtocols},
		{"this host again", "/v1/signal", "", http.StatusSwitchingProtocols},
		{"this host once more", "/v1/signal", "", http.StatusSwitchingProtocols},
	} {
		header := http.Header{}
		if entry.of != "" {
			header.Set("X-Forwarded-For", entry.of)
		}
		conn, response, err := websocket.DefaultDialer.Dial(s.URL()+entry.path, header)
		if response == nil {
			t.Fatal(err)
		}
		if response.StatusCode != entry.status {
			t.Errorf("%s: status %d, expected %d", entry.what, response.StatusCode, entry.status)
		}
		if again := response.Header.Get("Retry-After"); response.StatusCode == http.StatusTooManyRequests &&
			again != "5" {
			t.Errorf("%s: Retry-After is %q", entry.what, again)
		}
		if err == nil {
			defer func() { _ = conn.Close() }()
		}
	}
	scraped := s.scrape(t)
	for _, line := range []string{
		`volsfu_websockets_refused_total{reason="address_open"} 3`,
		`volsfu_websockets_refused_total{reason="proxy_header"} 1`,
		`volsfu_websockets_refused_total{reason="address_rate"} 0`, `volsfu_ice_tcp_refused_total{reason="address"} 0`,
		`volsfu_ice_tcp_refused_total{reason="peer"} 0`, `volsfu_ice_tcp_refused_total{reason="total"} 0`,
		`volsfu_ice_tcp_refused_total{reason="unproven"} 0`,
		`volsfu_ice_tcp_connections{state="proven"} 0`, `volsfu_ice_tcp_connections{state="stranger"} 0`,
		`volsfu_ice_tcp_stale_packets_total 0`,
		`volsfu_key_frame_requests_limited_total 0`, `volsfu_ice_checks_refused_total 0`,
	} {
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("%s is not among the metrics", line)
		}
	}
}

// scrape returns the metrics in Prometheus' text format.
func (s *stage) scrape(t *testing.T) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + s.AdminAddress() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
