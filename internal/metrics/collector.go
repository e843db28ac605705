package metrics

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// errHistogram is the sentinel of an inconsistent histogram in a snapshot.
var errHistogram = errors.New("histogram without one count more than bounds")

// dataPlaneFamilies are the metrics derived from a Snapshot.
var dataPlaneFamilies = []string{
	tracks, slots, packets, octets, framesForwarded, framesDropped, switches, switchDelay, residence, pacerHold,
	frameSeconds, nacks, nackPackets,
	retransmissions, transportFeedback, transportPackets, receiverEstimate, receiverWanted, receiverSent, receiverLoss,
	receiverRoundTrip,
	probes, probesMeasured, overuses, feedbackSilences, packetsDropped, keyFrameRequests, cacheBytes, receiveQueueDrops,
	receivedDatagrams, receiveCalls,
	sentDatagrams, sendRuns, sendCalls, sendErrors, ecnPackets, l4sHops, ecnPublisherHops, ecnFallbacks,
	copiedPackets, copiedBytes, secondPaths, outages,
}

// collector converts snapshots of the data plane to metrics.
type collector struct {
	plane DataPlane
	descs map[string]*prometheus.Desc
}

// RegisterDataPlane registers the metrics of a data plane, whose Snapshot is called at each scrape.
func RegisterDataPlane(registerer prometheus.Registerer, plane DataPlane) error {
	c := &collector{plane: plane, descs: make(map[string]*prometheus.Desc, len(dataPlaneFamilies))}
	for _, name := range dataPlaneFamilies {
		c.descs[name] = descOf(name)
	}
	if err := registerer.Register(c); err != nil {
		return fmt.Errorf("register metrics of the data plane: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.plane.Snapshot()
	e := emitter{c.descs, to}
	e.gauge(tracks, float64(s.Tracks))
	e.gauge(slots, float64(s.Slots.Idle), "idle")
	e.gauge(slots, float64(s.Slots.Waiting), "waiting")
	e.gauge(slots, float64(s.Slots.Active), "active")
	e.traffic(in, s.Received)
	e.traffic(out, s.Sent)
	e.count(framesForwarded, s.FramesForwarded)
	e.count(framesDropped, s.FramesDropped.Late, "late")
	e.count(framesDropped, s.FramesDropped.Overrun, "overrun")
	e.count(framesDropped, s.FramesDropped.Budget, "budget")
	e.count(framesDropped, s.FramesDropped.Expired, "expired")
	e.count(framesDropped, s.FramesDropped.Incomplete, "incomplete")
	e.count(framesDropped, s.FramesDropped.Blocked, "blocked")
	e.count(switches, s.Switches)
	e.histogram(switchDelay, s.SwitchDelay)
	e.histogram(residence, s.Residence)
	if s.Paced {
		e.histogram(pacerHold, s.PacerHold)
	}
	e.histogram(frameSeconds, s.FrameHold, "hold")
	e.histogram(frameSeconds, s.FrameReception, "reception")
	e.histogram(frameSeconds, s.FrameDistribution, "distribution")
	e.nacks(s.NACKsReceived, s.NACKsSent)
	e.count(retransmissions, s.Received.Retransmission.Packets, in)
	e.count(retransmissions, s.Sent.Retransmission.Packets, out)
	e.count(transportFeedback, s.TransportFeedback.Received, in)
	e.count(transportFeedback, s.TransportFeedback.Sent, out)
	e.count(transportPackets, s.TransportFeedback.PacketsReceived, "received")
	e.count(transportPackets, s.TransportFeedback.PacketsLost, "lost")
	e.count(transportPackets, s.TransportFeedback.PacketsUnmatched, "unmatched")
	e.count(transportPackets, s.TransportFeedback.PacketsMarked, "marked")
	e.count(transportPackets, s.TransportFeedback.FalseMarks, "false_mark")
	e.receivers(s.Receivers)
	e.count(probes, s.Probes.Sent)
	e.count(probesMeasured, s.Probes.Measured)
	e.count(overuses, s.Overuses)
	e.count(feedbackSilences, s.FeedbackSilences)
	e.count(keyFrameRequests, s.KeyFramesAsked, in)
	e.count(keyFrameRequests, s.KeyFramesRequested, out)
	e.count(packetsDropped, s.PacketsDropped.MalformedRTP, "malformed_rtp")
	e.count(packetsDropped, s.PacketsDropped.MalformedRTCP, "malformed_rtcp")
	e.count(packetsDropped, s.PacketsDropped.MalformedPayload, "malformed_payload")
	e.count(packetsDropped, s.PacketsDropped.UnknownSSRC, "unknown_ssrc")
	e.count(packetsDropped, s.PacketsDropped.Duplicate, "duplicate")
	e.count(packetsDropped, s.PacketsDropped.Late, "late")
	e.count(packetsDropped, s.PacketsDropped.Feedback, "feedback")
	e.gauge(cacheBytes, float64(s.CacheBytes))
	e.count(receiveQueueDrops, s.ReceiveQueueDrops)
	e.count(receivedDatagrams, s.Sockets.Received.Datagrams)
	e.count(receiveCalls, s.Sockets.Received.Calls)
	e.count(sentDatagrams, s.Sockets.Sent.Datagrams)
	e.count(sendRuns, s.Sockets.Runs)
	e.count(sendCalls, s.Sockets.Sent.Calls)
	e.count(sendErrors, s.Sockets.SendErrors)
	e.codepoints(in, s.Sockets.Received.Codepoints)
	e.codepoints(out, s.Sockets.Sent.Codepoints)
	e.l4s(s.L4SHops, s.PublisherHops, s.ECNFallbacks)
	e.redundancy(s.Redundancy)
}

// emitter writes the metrics of one scrape.
type emitter struct {
	descs map[string]*prometheus.Desc
	to    chan<- prometheus.Metric
}

func (e emitter) gauge(name string, value float64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.descs[name], prometheus.GaugeValue, value, labels...)
}

func (e emitter) count(name string, value uint64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.descs[name], prometheus.CounterValue, float64(value), labels...)
}

func (e emitter) traffic(direction string, t Traffic) {
	for kind, count := range map[string]Count{
		"media": t.Media, "retransmission": t.Retransmission, "parity": t.Parity, "probe": t.Probe, "audio": t.Audio,
	} {
		e.count(packets, count.Packets, direction, kind)
		e.count(octets, count.Bytes, direction, kind)
	}
}

func (e emitter) nacks(received NACKsReceived, sent NACKsSent) {
	e.count(nacks, received.Messages, in)
	e.count(nacks, sent.Messages, out)
	e.count(nackPackets, received.Answered, in, "answered")
	e.count(nackPackets, received.Owed, in, "owed")
	e.count(nackPackets, received.Unknown, in, "unknown")
	e.count(nackPackets, received.Expired, in, "expired")
	e.count(nackPackets, received.Suppressed, in, "suppressed")
	e.count(nackPackets, received.Limited, in, "limited")
	e.count(nackPackets, received.Refused, in, "refused")
	e.count(nackPackets, sent.Recovered, out, "recovered")
	e.count(nackPackets, sent.Delayed, out, "delayed")
	e.count(nackPackets, sent.Lost, out, "lost")
	e.count(nackPackets, sent.Limited, out, "limited")
}

func (e emitter) codepoints(direction string, c Codepoints) {
	e.count(ecnPackets, c.NotECT, direction, "not_ect")
	e.count(ecnPackets, c.ECT1, direction, "ect1")
	e.count(ecnPackets, c.ECT0, direction, "ect0")
	e.count(ecnPackets, c.CE, direction, "ce")
}

func (e emitter) l4s(hops L4SHops, publishers PublisherHops, fallbacks ECNFallbacks) {
	e.gauge(l4sHops, float64(hops.Off), "off")
	e.gauge(l4sHops, float64(hops.Testing), "testing")
	e.gauge(l4sHops, float64(hops.Capable), "capable")
	e.gauge(l4sHops, float64(hops.Marked), "marked")
	e.gauge(l4sHops, float64(hops.Classic), "classic")
	e.gauge(l4sHops, float64(hops.Failed), "failed")
	e.gauge(ecnPublisherHops, float64(publishers.NotECT), "not_ect")
	e.gauge(ecnPublisherHops, float64(publishers.ECT1), "ect1")
	e.gauge(ecnPublisherHops, float64(publishers.ECT0), "ect0")
	e.gauge(ecnPublisherHops, float64(publishers.CE), "ce")
	e.count(ecnFallbacks, fallbacks.Bleached, "bleached")
	e.count(ecnFallbacks, fallbacks.Rewritten, "rewritten")
	e.count(ecnFallbacks, fallbacks.AllMarked, "all_marked")
	e.count(ecnFallbacks, fallbacks.Dropped, "dropped")
	e.count(ecnFallbacks, fallbacks.Classic, "classic")
}

func (e emitter) redundancy(r Redundancy) {
	for class, count := range map[string]Count{
		"audio": r.Copied.Audio, "lowest_quality": r.Copied.LowestQuality, "frame_end": r.Copied.FrameEnd,
		"repair": r.Copied.Repair, "other": r.Copied.Other,
	} {
		e.count(copiedPackets, count.Packets, class)
		e.count(copiedBytes, count.Bytes, class)
	}
	e.gauge(secondPaths, float64(r.SecondPaths.Untested), "untested")
	e.gauge(secondPaths, float64(r.SecondPaths.Carrying), "carrying")
	e.gauge(secondPaths, float64(r.SecondPaths.Limited), "limited")
	e.gauge(secondPaths, float64(r.SecondPaths.Silent), "silent")
	e.count(outages, r.Outages)
}

// quantiles are the quantiles of the distributions over receivers.
var quantiles = []float64{0, 0.1, 0.5, 0.9, 1}

// receivers writes the distributions over receivers, each as a summary of the current values; the count is the number
// of receivers. Without receivers the quantiles are NaN, as usual.
func (e emitter) receivers(paths []ReceiverPath) {
	values := make([]float64, len(paths))
	for name, value := range map[string]func(ReceiverPath) float64{
		receiverEstimate:  func(p ReceiverPath) float64 { return p.Estimate / 8 },
		receiverWanted:    func(p ReceiverPath) float64 { return p.Wanted / 8 },
		receiverSent:      func(p ReceiverPath) float64 { return p.Sent / 8 },
		receiverLoss:      func(p ReceiverPath) float64 { return p.Loss },
		receiverRoundTrip: func(p ReceiverPath) float64 { return p.RoundTrip.Seconds() },
	} {
		for i, p := range paths {
			values[i] = value(p)
		}
		e.summary(name, values)
	}
}

// summary writes the quantiles of current values, and sorts them.
func (e emitter) summary(name string, values []float64) {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	slices.Sort(values)
	at := make(map[float64]float64, len(quantiles))
	for _, q := range quantiles {
		at[q] = quantile(values, q)
	}
	e.to <- prometheus.MustNewConstSummary(e.descs[name], uint64(len(values)), sum, at)
}

// quantile returns the smallest of the sorted values that the share q of them does not exceed.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

// histogram writes cumulative buckets. A zero Histogram is written as an empty histogram.
func (e emitter) histogram(name string, h Histogram, labels ...string) {
	desc := e.descs[name]
	if len(h.Bounds)+len(h.Counts) > 0 && len(h.Counts) != len(h.Bounds)+1 {
		e.to <- prometheus.NewInvalidMetric(desc,
			fmt.Errorf("%s: %w: %d and %d", name, errHistogram, len(h.Counts), len(h.Bounds)))
		return
	}
	buckets := make(map[float64]uint64, len(h.Bounds))
	var total uint64
	for i, count := range h.Counts {
		total += count
		if i < len(h.Bounds) {
			buckets[h.Bounds[i].Seconds()] = total
		}
	}
	e.to <- prometheus.MustNewConstHistogram(desc, total, h.Sum.Seconds(), buckets, labels...)
}
