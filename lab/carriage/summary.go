package carriage

import "time"

// Summary is the JSON object that a peer leaves when it ends. Times are milliseconds, sizes bytes, rates Mbit/s.
type Summary struct {
	Transport string `json:"transport"`
	Role      string `json:"role"`
	Name      string `json:"name,omitempty"`
	// Congestion is TCP's congestion control as the kernel names it, empty where no TCP carries frames, or the system has no name for it.
	Congestion string `json:"congestion,omitempty"`
	// Seconds is from the beginning to the end of the run; CPU what the process has used since it was started.
	Seconds float64    `json:"seconds"`
	CPU     CPU        `json:"cpu"`
	Sent    *Published `json:"published,omitempty"`
	Got     *Received  `json:"received,omitempty"`
	Server  *Relayed   `json:"relayed,omitempty"`
}

// CPU is processor time in seconds.
type CPU struct {
	User   float64 `json:"user_seconds"`
	System float64 `json:"system_seconds"`
	// Percent is both over the process's wall-clock time, 100 for one core.
	Percent float64 `json:"percent"`
}

// Published is what one peer published. Captures are clouds; frames are tiles at one quality.
type Published struct {
	// Begun is when it began to capture.
	Begun time.Time `json:"begun"`
	// Captures fell due: those that were missed and dropped are among them.
	Captures int64 `json:"captures"`
	// CapturesMissed fell due while the source was behind; CapturesDropped were taken out of the full queue before the encoder.
	CapturesMissed  int64 `json:"captures_missed"`
	CapturesDropped int64 `json:"captures_dropped"`
	CapturesEncoded int64 `json:"captures_encoded"`
	Frames          int64 `json:"frames"`
	// FramesUnwanted were not encoded since nobody takes them, FramesDropped left the full queue before the transport, FramesFailed could not be sent.
	FramesUnwanted int64 `json:"frames_unwanted"`
	FramesDropped  int64 `json:"frames_dropped"`
	FramesFailed   int64 `json:"frames_failed"`
	FramesSent     int64 `json:"frames_sent"`
	// Bytes is the content of the frames sent, Mbps what the transport moved in each second between the first and the last frame, its headers included.
	Bytes int64   `json:"bytes"`
	Mbps  float64 `json:"mbps"`
	// FPS is the captures encoded per second.
	FPS float64 `json:"fps"`
	// The stages, in milliseconds: of captures the time to tile and to wait for the encoder; of frames the time to encode, to wait for the transport,
	// and to leave.
	Tiling    Percentiles `json:"tiling_ms"`
	QueueWait Percentiles `json:"encoder_queue_ms"`
	Encoding  Percentiles `json:"encoding_ms"`
	SendWait  Percentiles `json:"send_wait_ms"`
	Sending   Percentiles `json:"sending_ms"`
	// Estimates are what the transport's congestion control estimated, where it has one that tells.
	Estimates []Estimate `json:"estimates,omitempty"`
}

// NotEncoded are the captures that the source or the encoder did not get to.
func (p *Published) NotEncoded() int64 { return p.CapturesMissed + p.CapturesDropped }

// Estimate is a bandwidth estimate.
type Estimate struct {
	// At is in seconds since Begun of what was published or received, below 0 before that: transports estimate once they are connected.
	At   float64 `json:"t_s"`
	Mbps float64 `json:"mbps"`
}

// Received is what one peer received.
type Received struct {
	// Begun is when the first frame had arrived.
	Begun time.Time `json:"begun,omitzero"`
	// FramesReceived came whole; FramesDamaged came with holes, FramesMissing did not come though frames around them did; FramesLate came after a
	// newer one of their tile.
	FramesReceived int64 `json:"frames_received"`
	FramesDamaged  int64 `json:"frames_damaged"`
	FramesMissing  int64 `json:"frames_missing"`
	FramesLate     int64 `json:"frames_late"`
	// FramesSkipped were superseded while they waited for the decoder or the display, since those were slow; FramesBunched, since the transport brought the
	// newer frame within half of the time that lay between their captures, as TCP does once it has repaired a loss. FramesUndecodable the decoder refused.
	FramesSkipped     int64 `json:"frames_skipped"`
	FramesBunched     int64 `json:"frames_bunched"`
	FramesUndecodable int64 `json:"frames_undecodable"`
	// Undecodable is why the first of them was refused.
	Undecodable   string `json:"undecodable,omitempty"`
	FramesDecoded int64  `json:"frames_decoded"`
	FramesShown   int64  `json:"frames_shown"`
	// Lost is the part of the frames expected that did not come whole, in percent.
	Lost float64 `json:"lost_percent"`
	// Bytes is the content of the frames received, Mbps what the transport moved in each second between the first and the last of them, its headers included.
	Bytes int64   `json:"bytes"`
	Mbps  float64 `json:"mbps"`
	// FPS is the frames shown per second, the mean over tiles.
	FPS float64 `json:"fps"`
	// Latency is from capture to shown, Decoded from capture to decoded, Arrived from capture to whole; Receiving from the first packet to the last
	// of a frame, DecoderWait, Decoding and DisplayWait are stages, all in milliseconds.
	Latency     Percentiles `json:"latency_ms"`
	Decoded     Percentiles `json:"decoded_latency_ms"`
	Arrived     Percentiles `json:"arrival_latency_ms"`
	Receiving   Percentiles `json:"receiving_ms"`
	DecoderWait Percentiles `json:"decoder_wait_ms"`
	Decoding    Percentiles `json:"decoding_ms"`
	DisplayWait Percentiles `json:"display_wait_ms"`
	// Decisions are those on quality, one for each tile that was to change.
	Decisions []DecisionOutcome `json:"decisions,omitempty"`
	// DecisionLatency is from a decision being sent to the first packet of the quality received, DecisionDecoded and DecisionShown to the first frame of it.
	DecisionLatency Percentiles `json:"decision_first_packet_ms"`
	DecisionDecoded Percentiles `json:"decision_decoded_ms"`
	DecisionShown   Percentiles `json:"decision_shown_ms"`
	// Estimates are what a server told of the way to this peer, where it tells: each holds until the next.
	Estimates []Estimate `json:"estimates,omitempty"`
}

// DecisionOutcome is what became of one decision on one tile. Times are milliseconds after it was sent, negative where that did not happen.
type DecisionOutcome struct {
	// At is when it was sent, in seconds since the beginning of the run.
	At      float64 `json:"t_s"`
	Tile    int     `json:"tile"`
	Before  int     `json:"before"`
	Quality int     `json:"quality"`
	// FirstPacket, Decoded and Shown are those of the first frame of the quality that began to arrive after the decision.
	FirstPacket float64 `json:"first_packet_ms"`
	Decoded     float64 `json:"decoded_ms"`
	Shown       float64 `json:"shown_ms"`
	// Superseded says that another decision on the tile came before it was shown.
	Superseded bool `json:"superseded,omitempty"`
}

// Relayed is what a server of the lab passed on.
type Relayed struct {
	FramesReceived int64 `json:"frames_received"`
	FramesSent     int64 `json:"frames_sent"`
	// FramesDropped were not passed on to a receiver, or not whole, since its queue was full, or they had waited for it for too long.
	FramesDropped int64 `json:"frames_dropped"`
	BytesReceived int64 `json:"bytes_received"`
	BytesSent     int64 `json:"bytes_sent"`
}

// Percentiles are of values in milliseconds; all are 0 where there are none.
type Percentiles struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	// Deviation is the standard deviation of the values.
	Deviation float64 `json:"deviation"`
	P50       float64 `json:"p50"`
	P95       float64 `json:"p95"`
	P99       float64 `json:"p99"`
	Max       float64 `json:"max"`
}
