package carriage

import "time"

// Summary is the JSON object that a peer prints at its end. Times are in milliseconds, sizes in bytes, rates in Mbit/s.
type Summary struct {
	Transport string `json:"transport"`
	Role      string `json:"role"`
	Name      string `json:"name,omitempty"`
	// Congestion is the kernel's name of TCP's congestion control; empty if frames are not sent over TCP or the system
	// does not report a name.
	Congestion string `json:"congestion,omitempty"`
	// Seconds is the duration of the run; CPU is the processor time of the process since its start.
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
	// Percent is the sum relative to the process's wall-clock time, 100 for one core.
	Percent float64 `json:"percent"`
}

// Published describes one peer's publishing. Captures are clouds; frames are tiles at one quality.
type Published struct {
	// Begun is the beginning of capturing.
	Begun time.Time `json:"begun"`
	// Captures counts the captures that fell due, including missed and dropped ones.
	Captures int64 `json:"captures"`
	// CapturesMissed fell due while the source was behind. CapturesDropped were removed from the full queue before the
	// encoder.
	CapturesMissed  int64 `json:"captures_missed"`
	CapturesDropped int64 `json:"captures_dropped"`
	CapturesEncoded int64 `json:"captures_encoded"`
	Frames          int64 `json:"frames"`
	// FramesUnwanted were not encoded because no receiver requested them. FramesDropped were removed from the full
	// queue before the transport. FramesFailed could not be sent.
	FramesUnwanted int64 `json:"frames_unwanted"`
	FramesDropped  int64 `json:"frames_dropped"`
	FramesFailed   int64 `json:"frames_failed"`
	FramesSent     int64 `json:"frames_sent"`
	// Bytes is the content of the sent frames. Mbps is the transport's mean rate between the first and the last frame,
	// including the transport's headers.
	Bytes int64   `json:"bytes"`
	Mbps  float64 `json:"mbps"`
	// FPS is the number of captures encoded per second.
	FPS float64 `json:"fps"`
	// The stages, in milliseconds: of captures, the time to tile and to wait for the encoder; of frames, the time to
	// encode, to wait for the transport, and to leave.
	Tiling    Percentiles `json:"tiling_ms"`
	QueueWait Percentiles `json:"encoder_queue_ms"`
	Encoding  Percentiles `json:"encoding_ms"`
	SendWait  Percentiles `json:"send_wait_ms"`
	Sending   Percentiles `json:"sending_ms"`
	// Estimates are the estimates of the transport's congestion control. They are empty if the transport does not
	// report estimates.
	Estimates []Estimate `json:"estimates,omitempty"`
}

// NotEncoded returns the number of captures that the source or the encoder did not process.
func (p *Published) NotEncoded() int64 { return p.CapturesMissed + p.CapturesDropped }

// Estimate is a bandwidth estimate.
type Estimate struct {
	// At is in seconds since Begun of the publisher or the receiver. At is negative before Begun, because transports
	// estimate once they are connected.
	At   float64 `json:"t_s"`
	Mbps float64 `json:"mbps"`
}

// Received describes one peer's reception.
type Received struct {
	// Begun is the arrival of the first frame.
	Begun time.Time `json:"begun,omitzero"`
	// FramesReceived arrived completely. FramesDamaged arrived with holes. FramesMissing did not arrive although frames
	// before and after them did. FramesLate arrived after a newer frame of the same tile.
	FramesReceived int64 `json:"frames_received"`
	FramesDamaged  int64 `json:"frames_damaged"`
	FramesMissing  int64 `json:"frames_missing"`
	FramesLate     int64 `json:"frames_late"`
	// FramesSkipped were superseded while they waited for a slow decoder or display. FramesBunched were superseded
	// because the transport delivered the newer frame within half of the time between the captures, as TCP does after
	// the repair of a loss. FramesUndecodable were rejected by the decoder.
	FramesSkipped     int64 `json:"frames_skipped"`
	FramesBunched     int64 `json:"frames_bunched"`
	FramesUndecodable int64 `json:"frames_undecodable"`
	// Undecodable is the decoder's first error.
	Undecodable   string `json:"undecodable,omitempty"`
	FramesDecoded int64  `json:"frames_decoded"`
	FramesShown   int64  `json:"frames_shown"`
	// Lost is the share of the expected frames that did not arrive completely, in percent.
	Lost float64 `json:"lost_percent"`
	// Bytes is the content of the received frames. Mbps is the transport's mean rate between the first and the last
	// received frame, including the transport's headers.
	Bytes int64   `json:"bytes"`
	Mbps  float64 `json:"mbps"`
	// FPS is the number of frames shown per second, the mean over tiles.
	FPS float64 `json:"fps"`
	// Latency is from capture to shown, Decoded from capture to decoded, Arrived from capture to complete arrival.
	// Receiving is from the first packet to the last of a frame. DecoderWait, Decoding and DisplayWait are stages. All
	// are in milliseconds.
	Latency     Percentiles `json:"latency_ms"`
	Decoded     Percentiles `json:"decoded_latency_ms"`
	Arrived     Percentiles `json:"arrival_latency_ms"`
	Receiving   Percentiles `json:"receiving_ms"`
	DecoderWait Percentiles `json:"decoder_wait_ms"`
	Decoding    Percentiles `json:"decoding_ms"`
	DisplayWait Percentiles `json:"display_wait_ms"`
	// Decisions are the outcomes of decisions on quality, one for each changed tile.
	Decisions []DecisionOutcome `json:"decisions,omitempty"`
	// DecisionLatency is the time from sending a decision to the first packet received of the quality. DecisionDecoded
	// and DecisionShown end with the first frame of the quality.
	DecisionLatency Percentiles `json:"decision_first_packet_ms"`
	DecisionDecoded Percentiles `json:"decision_decoded_ms"`
	DecisionShown   Percentiles `json:"decision_shown_ms"`
	// Estimates are the server's estimates of the path to this peer, empty if the server does not report estimates.
	// Each estimate is in force until the next.
	Estimates []Estimate `json:"estimates,omitempty"`
}

// DecisionOutcome is the outcome of one decision on one tile. Times are in milliseconds after the decision was sent,
// negative if the event did not happen.
type DecisionOutcome struct {
	// At is when the decision was sent, in seconds since the beginning of the run.
	At      float64 `json:"t_s"`
	Tile    int     `json:"tile"`
	Before  int     `json:"before"`
	Quality int     `json:"quality"`
	// FirstPacket, Decoded and Shown belong to the first frame of the quality whose arrival began after the decision.
	FirstPacket float64 `json:"first_packet_ms"`
	Decoded     float64 `json:"decoded_ms"`
	Shown       float64 `json:"shown_ms"`
	// Superseded is set if another decision on the tile was sent before the frame was shown.
	Superseded bool `json:"superseded,omitempty"`
}

// Relayed describes the forwarding of a server of the lab.
type Relayed struct {
	FramesReceived int64 `json:"frames_received"`
	FramesSent     int64 `json:"frames_sent"`
	// FramesDropped were not sent to a receiver, or not completely, because the receiver's queue was full or the frames
	// had waited too long.
	FramesDropped int64 `json:"frames_dropped"`
	BytesReceived int64 `json:"bytes_received"`
	BytesSent     int64 `json:"bytes_sent"`
}

// Percentiles are of values in milliseconds; all are 0 if there are no values.
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
