package hotpath

import (
	"cmp"
	"context"
	"fmt"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/exposition"
)

// volsfu is the server under measurement, either started for the measurement or already running.
type volsfu struct {
	// title replaces the name in reports.
	title string
	// program is nil if the server was already running.
	program *lab.ServerProgram
	url     string
	metrics string
	// relay is the node that receivers join, nil for the same server.
	relay *Relay
	// seed is the seed of the next impaired path.
	seed uint64
	// reports are those of all receivers.
	reports reports
}

// startVolsfu starts a server with additional arguments.
func startVolsfu(ctx context.Context, path string, arguments ...string) (*volsfu, error) {
	program, err := lab.StartServer(ctx, path, append(arguments, "--media-address", "127.0.0.1")...)
	if err != nil {
		return nil, err
	}
	return &volsfu{program: program, url: program.URL(), metrics: "http://" + program.Admin + "/metrics"}, nil
}

func (v *volsfu) name() string { return cmp.Or(v.title, "volsfu") }

func (v *volsfu) pid() int {
	if v.program == nil {
		return 0
	}
	return v.program.PID()
}

func (v *volsfu) figures() metricNames {
	return metricNames{
		packets: "volsfu_packets_total", residence: "volsfu_residence_seconds", hold: "volsfu_pacer_hold_seconds",
		retransmissions: "volsfu_retransmissions_total",
		datagrams:       "volsfu_send_datagrams_total", sends: "volsfu_send_runs_total", cache: "volsfu_cache_bytes",
	}
}

func (v *volsfu) counts(ctx context.Context) (exposition.Series, error) {
	counts, err := exposition.Scrape(ctx, v.metrics)
	if err != nil || v.relay == nil {
		return counts, err
	}
	there, err := exposition.Scrape(ctx, v.relay.Metrics)
	if err != nil {
		return nil, err
	}
	// The packets are those that the first node has received.
	counts[processTime] += there[processTime]
	return counts, nil
}

// begun returns true: the server assigns announced tracks before their first packet is sent.
func (v *volsfu) begun(context.Context, int) (bool, error) { return true, nil }

func (v *volsfu) close() error {
	if v.program == nil {
		return nil
	}
	return v.program.Stop()
}

// attach joins the room.
func (v *volsfu) attach(ctx context.Context, part part) (*member, error) {
	if part.load.impaired() && !part.publishes {
		return v.attachWhole(ctx, part)
	}
	if part.receives && v.reports.made {
		// The server would pay for waking a receiver that reads all packets, most of all on smooth paths.
		part.reports, part.every = v.reports, 0
	}
	url := v.url
	if v.relay != nil && !part.publishes {
		url = v.relay.URL
	}
	s, err := joinRoom(ctx, url, part)
	if err != nil {
		return nil, fmt.Errorf("join as %s: %w", part.identity(), err)
	}
	m := &member{socket: s.socket, end: s.close,
		trace: func(wanted bool) error { return s.send(&signal.Trace{FrameTimes: wanted}) }}
	if part.publishes {
		m.publisher = s.publisher()
	}
	if part.receives {
		m.receiver = s.reception
	}
	return m, nil
}

// publisher returns a publisher for the tracks that the session has lines for.
func (s *session) publisher() *publisher {
	var outlets []outlet
	var qualities []uint8
	for _, publication := range s.part.load.publications() {
		for tile := range publication.Tiles {
			for q := range publication.Qualities {
				ref := volumetric.TrackRef{Quality: volumetric.Quality(q)}
				ref.Publication, ref.Tile = publication.Name, tile
				outlets = append(outlets, s.tracks[ref])
				qualities = append(qualities, uint8(q))
			}
		}
	}
	return newPublisher(s.part.load, outlets, qualities, s.socket.Flush,
		float64(s.part.number)/float64(s.part.load.Publishers))
}
