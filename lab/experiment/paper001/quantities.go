package paper001

import (
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// sessionQuantities are the figures of a session. Latencies and stages are of tiles' frames.
var sessionQuantities = []experiment.Quantity{
	{Name: "latency", Unit: "ms", Label: "latency, capture to shown"},
	{Name: "latency_p50", Unit: "ms", Label: "latency, median"},
	{Name: "latency_p95", Unit: "ms", Label: "latency, 95th percentile"},
	{Name: "bandwidth", Unit: "Mbit/s", Label: "received, with the transport's headers"},
	{Name: "content", Unit: "Mbit/s", Label: "received frames"},
	{Name: "fps", Unit: "frames/s", Label: "frame rate shown"},
	{Name: "cpu_publisher", Unit: "% of a core", Label: "CPU of the publisher"},
	{Name: "cpu_watcher", Unit: "% of a core", Label: "CPU of the watcher"},
	{Name: "cpu_server", Unit: "% of a core", Label: "CPU of the server"},
	{Name: "lost", Unit: "%", Label: "frames sent and not shown"},
	{Name: "encoder_dropped", Unit: "%", Label: "captures dropped before the encoder"},
	{Name: "capture", Unit: "ms", Label: "capture and tiling"},
	{Name: "encoder_wait", Unit: "ms", Label: "encoder queue"},
	{Name: "encode", Unit: "ms", Label: "encoding"},
	{Name: "encoder", Unit: "ms", Label: "encoder queue and encoding"},
	{Name: "transport", Unit: "ms", Label: "transport, encoded to complete"},
	{Name: "decoder_wait", Unit: "ms", Label: "decoder queue"},
	{Name: "decode", Unit: "ms", Label: "decoding"},
	{Name: "display", Unit: "ms", Label: "wait for the display"},
}

// danceQuantities are the figures of a dance. Figures with 15 or 30 belong to the peer that watches that rate.
var danceQuantities = []experiment.Quantity{
	{Name: "first_packet", Unit: "ms", Label: "decision to first packet"},
	{Name: "decoded", Unit: "ms", Label: "decision to first frame decoded"},
	{Name: "shown", Unit: "ms", Label: "decision to first frame shown"},
	{Name: "first_packet_p95_15", Unit: "ms", Label: "decision to first packet, 95th percentile, at 15 frames/s"},
	{Name: "bound_15", Unit: "ms", Label: "a frame interval, a round trip and 10 ms, at 15 frames/s"},
	{Name: "first_packet_p95_30", Unit: "ms", Label: "decision to first packet, 95th percentile, at 30 frames/s"},
	{Name: "bound_30", Unit: "ms", Label: "a frame interval, a round trip and 10 ms, at 30 frames/s"},
	{Name: "decoded_p95_15", Unit: "ms", Label: "decision to first frame decoded, 95th percentile, at 15 frames/s"},
	{Name: "decoded_p95_30", Unit: "ms", Label: "decision to first frame decoded, 95th percentile, at 30 frames/s"},
	{Name: "shown_p95_15", Unit: "ms", Label: "decision to first frame shown, 95th percentile, at 15 frames/s"},
	{Name: "shown_p95_30", Unit: "ms", Label: "decision to first frame shown, 95th percentile, at 30 frames/s"},
	{Name: "decisions", Unit: "tiles", Label: "tiles that changed quality"},
	{Name: "unanswered", Unit: "tiles", Label: "tiles without a packet of the quality, including overtaken decisions"},
	{Name: "latency_15", Unit: "ms", Label: "latency of frames captured at 15 frames/s"},
	{Name: "latency_15_p99", Unit: "ms", Label: "latency at 15 frames/s, 99th percentile", Of: "latency_15",
		Share: 0.99},
	{Name: "latency_30", Unit: "ms", Label: "latency of frames captured at 30 frames/s"},
	{Name: "latency_30_p99", Unit: "ms", Label: "latency at 30 frames/s, 99th percentile", Of: "latency_30",
		Share: 0.99},
	{Name: "fps_15", Unit: "frames/s", Label: "shown of 15 frames/s"},
	{Name: "fps_30", Unit: "frames/s", Label: "shown of 30 frames/s"},
	{Name: "uplink", Unit: "Mbit/s", Label: "sent by both peers"},
	{Name: "downlink", Unit: "Mbit/s", Label: "received by both peers"},
	{Name: "cpu_left", Unit: "% of a core", Label: "CPU of the peer at 15 frames/s"},
	{Name: "cpu_right", Unit: "% of a core", Label: "CPU of the peer at 30 frames/s"},
	{Name: "cpu_server", Unit: "% of a core", Label: "CPU of the server"},
}

// stages sets latencies and stages of finished frames.
func stages(o *experiment.Outcome, frames []frametimes.Record) {
	latency := cast.Layer(frames, frametimes.Service)
	o.Sample("latency", latency)
	if len(latency) > 0 {
		o.Set("latency_p50", experiment.Quantile(latency, 0.5))
		o.Set("latency_p95", experiment.Quantile(latency, 0.95))
	}
	for _, s := range []struct {
		name   string
		layers []frametimes.Layer
	}{
		{"capture", []frametimes.Layer{frametimes.Capture, frametimes.Tiling}},
		{"encoder_wait", []frametimes.Layer{frametimes.TilingWait, frametimes.EncoderWait}},
		{"encode", []frametimes.Layer{frametimes.Encoding}},
		{"encoder", []frametimes.Layer{frametimes.TilingWait, frametimes.EncoderWait, frametimes.Encoding}},
		{"decoder_wait", []frametimes.Layer{frametimes.DecoderWait}},
		{"decode", []frametimes.Layer{frametimes.Decoding}},
		{"display", []frametimes.Layer{frametimes.RenderWait, frametimes.Rendering}},
	} {
		o.Sample(s.name, cast.Layer(frames, s.layers...))
	}
	// Not every transport reports the departure of packets. The times of passing a frame to the transport and of its
	// complete arrival are always known.
	o.Sample("transport", cast.Between(frames, frametimes.Encoded, frametimes.Reassembled))
	points := make([][2]float64, 0, len(frames))
	for i := range frames {
		of := frames[i].Layers()
		if d, known := of.Get(frametimes.Service); known {
			points = append(points,
				[2]float64{frames[i].Time(frametimes.Captured).Sub(frames[0].Time(frametimes.Captured)).Seconds(),
					d.Seconds() * 1000})
		}
	}
	o.Series("latency", "s", "ms", points)
}
