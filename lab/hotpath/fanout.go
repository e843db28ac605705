package hotpath

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/fanout"
	"github.com/volsfu/volsfu/test/exposition"
)

// fanoutServer is the server of package fanout in its own process.
type fanoutServer struct {
	program *lab.ServerProgram
	// batched is set if the server sends through batched sockets.
	batched bool
}

// startFanout starts the server by a command: a program and its arguments.
func startFanout(ctx context.Context, command []string) (*fanoutServer, error) {
	program, err := lab.StartListener(ctx, "fan-out", command[0], command[1:]...)
	if err != nil {
		return nil, err
	}
	return &fanoutServer{program: program, batched: slices.Contains(command, BatchedFlag)}, nil
}

func (f *fanoutServer) name() string { return "pion" }

func (f *fanoutServer) pid() int { return f.program.PID() }

// figures returns the metric names. The server sends each packet by itself, so the number of packets is the number of
// sends. Batched sockets do not count sends, and accept a packet before it is written.
func (f *fanoutServer) figures() metricNames {
	names := metricNames{packets: fanout.MetricPackets, datagrams: fanout.MetricPackets}
	if !f.batched {
		names.residence, names.sends = fanout.MetricResidence, fanout.MetricPackets
	}
	return names
}

func (f *fanoutServer) counts(ctx context.Context) (exposition.Series, error) {
	return exposition.Scrape(ctx, f.program.URL()+fanout.MetricsPath)
}

func (f *fanoutServer) begun(ctx context.Context, tracks int) (bool, error) {
	counts, err := f.counts(ctx)
	return err == nil && int(counts[fanout.MetricTracks]) >= tracks, err
}

func (f *fanoutServer) close() error { return f.program.Stop() }

// attach offers all lines at once. The server sends a receiver the tracks that have begun.
func (f *fanoutServer) attach(ctx context.Context, part part) (*member, error) {
	if part.publishes && part.receives {
		return nil, fmt.Errorf("%w: the other server does not support publishers that receive", ErrLoad)
	}
	p, err := newPeer(part.every)
	if err != nil {
		return nil, err
	}
	c := &member{socket: p.socket, end: p.close}
	path := fanout.ReceivePath
	if part.publishes {
		path = fanout.PublishPath
		err = f.addTracks(p, c, part)
	} else {
		c.receiver = p.reception
		for range part.load.Publishers * part.load.Tracks {
			if _, err = p.pc.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo,
				webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = f.negotiate(ctx, p, path)
	}
	if err == nil {
		err = p.connect(ctx)
	}
	if err != nil {
		_ = p.close()
		return nil, fmt.Errorf("attach %s to the fan-out server: %w", part.identity(), err)
	}
	return c, nil
}

// addTracks adds a publisher to the client.
func (f *fanoutServer) addTracks(p *peer, c *member, part part) error {
	var outlets []outlet
	for i := range part.load.Tracks {
		track, err := p.track(fmt.Sprintf("%s-%d", part.identity(), i))
		if err != nil {
			return err
		}
		if _, err := p.pc.AddTrack(track); err != nil {
			return err
		}
		outlets = append(outlets, track)
	}
	c.publisher = newPublisher(part.load, outlets, make([]uint8, len(outlets)), p.socket.Flush,
		float64(part.number)/float64(part.load.Publishers))
	return nil
}

// negotiate creates the offer with all candidates and applies the answer.
func (f *fanoutServer) negotiate(ctx context.Context, p *peer, path string) error {
	offer, err := p.pc.CreateOffer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(p.pc)
	if err := p.pc.SetLocalDescription(offer); err != nil {
		return err
	}
	select {
	case <-gathered:
	case <-ctx.Done():
		return ctx.Err()
	}
	answer, err := f.post(ctx, path, fanout.Description{SDP: p.pc.LocalDescription().SDP})
	if err != nil {
		return err
	}
	if err := p.negotiated(answer.SDP); err != nil {
		return err
	}
	return p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer.SDP})
}

// post exchanges descriptions.
func (f *fanoutServer) post(ctx context.Context, path string, offer fanout.Description) (answer fanout.Description,
	err error) {
	body, err := json.Marshal(offer)
	if err != nil {
		return answer, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.program.URL()+path, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return answer, fmt.Errorf("%w: %s: %s", errConnection, response.Status, strings.TrimSpace(string(said)))
	}
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}
