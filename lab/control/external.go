package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab/rival"
)

// RunExternal runs a case end to end with a sender of others in place of the server and its clients, from the server's
// host to the receiver's. The result has no figures about frames and estimates: Utilisation and ShareOfCapacity are the
// share of the link's rate, with headers. The error wraps ErrCase if the case has no single receiver, and otherwise is
// as that of RunLive.
func RunExternal(ctx context.Context, text string, o Options, e *rival.External) (result *Result, err error) {
	sc, err := newLiveScenario(text, o)
	if err != nil {
		return nil, err
	}
	if sc.receivers != 1 || sc.uplink || sc.participants > 0 || sc.bleach != "" {
		return nil, fmt.Errorf("%w: %s with %s, expected a case with one receiver other than uplink and bleach",
			ErrCase, text, e.Name)
	}
	err = onHosts(ctx, sc, func(h *hosted) error {
		if err := h.runExternal(ctx, e); err != nil {
			return err
		}
		result = h.externalResult()
		return nil
	})
	return result, err
}

// runExternal runs the case with a sender of others.
func (h *hosted) runExternal(ctx context.Context, e *rival.External) error {
	sc := h.scenario
	limits := sc.options.Estimator.Limits()
	bounds := rival.Bounds{Min: int64(limits.Min), Start: int64(limits.Start), Max: int64(limits.Max)}
	var flow *rival.ExternalFlow
	err := h.play(ctx, func(ctx context.Context) (err error) {
		flow, err = e.Start(ctx, h.network, hostServer, hostReceiver, bounds, sc.options.Duration-sc.begin)
		return err
	})
	if flow != nil {
		defer flow.Stop()
	}
	if err != nil {
		return err
	}
	h.end = time.Since(h.begun)
	return errors.Join(h.rivals.failure(), flow.Failure())
}

// externalResult returns the figures of the run.
func (h *hosted) externalResult() *Result {
	sc := h.scenario
	r := &Record{scenario: sc}
	now := h.read()
	h.queues(r, now)
	h.beside(r, now)
	result := &Result{Case: sc.name, Queue: r.queue, LowLatency: r.lowLatency, Classic: r.classic,
		PacketsDiscarded: r.discarded, Others: r.others, Emulation: r.emulation}
	var arrived, capacity float64
	for _, x := range h.ledgers[0].samples {
		if x.at > sc.measured {
			arrived += x.goodput
			capacity += x.capacity
		}
	}
	result.ShareOfCapacity = arrived / max(capacity, 1)
	result.Utilisation = result.ShareOfCapacity
	if n := float64(sc.cubics + sc.pragues); n > 0 {
		result.ShareOfFair = figure(arrived / (sc.ofL4S() * capacity / (n + 1)))
	}
	if sc.cliff {
		result.Cliff = h.ledgers[0].cliff(sc.options.Duration)
	}
	return result
}
