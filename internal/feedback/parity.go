package feedback

import (
	"math"
	"time"
)

const (
	// maxParityShare is the maximum share of parity that publishers make.
	maxParityShare = 0.25
	// parityFrame is the number of packets of the assumed frame: 114 kB, 27 Mbit/s at 30 frames per second. Smaller
	// frames get their share rounded up to whole packets, which is more for each.
	parityFrame = 100
	// parityTarget is the accepted ratio of undecodable frames to lost packets: of 1, 5 and 10 % lost packets 0.25,
	// 1.25 and 2.5 % of the frames. That is half of the required limits (0.5, 2 and 5 %) or a little more: measured
	// losses are never exact.
	parityTarget = 0.25
	// noticing is the time from a frame's first packet to the request for its missing packets if the frame has parity:
	// 13 ms of pacing (0.4 of a frame interval) and up to 15 ms until the silence after the last packet is detected.
	noticing = 30 * time.Millisecond
)

// ParityShare returns the number of parity packets per source packet, 0 to 0.25, with which a receiver completes its
// frames by the deadline if it loses packets at random with the given probability. rtt is the round-trip time to the
// receiver, 0 if it is unknown.
//
// Requests come first. They are made as by a NACKGenerator, and count if their answer arrives by the deadline: eight at
// a round trip of 20 ms, one at 150 ms with the long deadline, none at 250 ms. All missing packets of a frame are
// requested by the same few packets, which are lost like any other. So if j of t requests arrive, each packet of the
// frame is still missing with probability loss^(j+1), and the frame of n source and k parity packets cannot be decoded
// if more than k are missing:
//
//	Σ over j of C(t, j) (1-loss)^j loss^(t-j) × P[binomial(n+k, loss^(j+1)) > k]
//
// The share is the smallest k for which that is at most a quarter of the loss, divided by n = 100:
//
//	loss   20 ms   150 ms   300 ms (no request)
//	 1 %   0       0.02     0.05
//	 5 %   0       0.07     0.11
//	10 %   0       0.13     0.19
//
// The model ignores losses in bursts; they raise the measured loss.
func ParityShare(loss float64, rtt, deadline time.Duration) float64 {
	// A loss that is not a number is none.
	if !(loss > 0) {
		return 0
	}
	loss = min(loss, 1)
	tries := triesWithin(rtt, deadline-noticing)
	for parity := 0; parity < maxParityShare*parityFrame; parity++ {
		if undecodable(loss, tries, parityFrame, parity) <= parityTarget*loss {
			return float64(parity) / parityFrame
		}
	}
	return maxParityShare
}

// JoinParity returns the share for frames that traverse two paths, each of which needs a share of its own. The packets
// that replace the losses of one path do not replace those of the other. Of n + k + l packets, more than k are lost on
// the first path, or more than l on the second, no more often than in a quarter of both losses: the shares add up, to
// 0.25 at most.
func JoinParity(first, second float64) float64 { return min(first+second, maxParityShare) }

// triesWithin returns the number of requests whose answers arrive within the time, at most QuickTries: with more, the
// probability below no longer changes.
func triesWithin(rtt, within time.Duration) int {
	cfg := DefaultConfig().NACK
	if rtt <= 0 {
		rtt = cfg.UnknownRTT
	}
	tries := 0
	for at := time.Duration(0); tries < cfg.QuickTries && at+rtt <= within; {
		tries++
		at += cfg.repeatAfter(tries, rtt)
	}
	return tries
}

// undecodable returns the probability that a frame cannot be decoded after tries requests.
func undecodable(loss float64, tries, source, parity int) float64 {
	sum := 0.0
	ways := 1.0 // C(tries, passed)
	missing := loss
	for passed := range tries + 1 {
		sum += ways * math.Pow(1-loss, float64(passed)) * math.Pow(loss, float64(tries-passed)) *
			moreThan(source+parity, missing, parity)
		ways *= float64(tries-passed) / float64(passed+1)
		missing *= loss
	}
	return sum
}

// moreThan returns the probability that of n packets, each missing with probability p, more than k are missing.
func moreThan(n int, p float64, k int) float64 {
	if p >= 1 {
		return 1
	}
	term := math.Pow(1-p, float64(n))
	rest := 1 - term
	for i := range k {
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
		rest -= term
	}
	return max(rest, 0)
}
