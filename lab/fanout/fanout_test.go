package fanout

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pion/webrtc/v4"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/exposition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(said)
}

// offer returns an offer to receive a track.
func offer(t *testing.T) string {
	t.Helper()
	engine := &webrtc.MediaEngine{}
	if err := RegisterCodecs(engine); err != nil {
		t.Fatal(err)
	}
	pc, err := webrtc.NewAPI(webrtc.WithMediaEngine(engine)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pc.Close() }()
	receive := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	if _, err := pc.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, receive); err != nil {
		t.Fatal(err)
	}
	description, err := pc.CreateOffer(nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(Description{SDP: description.SDP})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestServe(t *testing.T) {
	for name, sockets := range map[string]Sockets{"single": Single, "batched": Batched} {
		t.Run(name, func(t *testing.T) { serve(t, sockets) })
	}
}

func serve(t *testing.T, sockets Sockets) {
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, sockets, writer) }()
	var ready lab.Ready
	if err := json.NewDecoder(reader).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	url := ready.URL()
	tests := []struct {
		name, path, body string
		status           int
	}{
		{"an offer to receive, while there are no tracks", ReceivePath, offer(t), http.StatusOK},
		{"no JSON", PublishPath, "v=0", http.StatusBadRequest},
		{"no description", PublishPath, `{"sdp":"nonsense"}`, http.StatusUnprocessableEntity},
		{"elsewhere", "/nowhere", "", http.StatusNotFound},
	}
	for _, test := range tests {
		if status, said := post(t, url+test.path, test.body); status != test.status {
			t.Errorf("%s: status %d, %q; want %d", test.name, status, said, test.status)
		}
	}
	counts, err := exposition.Scrape(ctx, url+MetricsPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range []string{MetricPackets + `{direction="in"}`, MetricPackets + `{direction="out"}`,
		MetricTracks, MetricResidence + "_count"} {
		if v, err := counts.Value(series); err != nil || v != 0 {
			t.Errorf("%s: got %g, %v; want 0", series, v, err)
		}
	}
	if _, err := counts.Value("go_memstats_mallocs_total"); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestPortTaken(t *testing.T) {
	s, err := Listen("127.0.0.1:0", Batched)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if other, err := Listen(s.Address(), Single); err == nil {
		_ = other.Close()
		t.Error("two servers listen on one port")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.answer(Description{}, s.receive); err == nil {
		t.Error("a closed server answers")
	}
	var log bytes.Buffer
	if s.run(func() { log.WriteString("x") }) || log.Len() > 0 {
		t.Error("a closed server runs goroutines")
	}
}
