package kubernetes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/volsfu/volsfu/lab"
)

// tally decides from the results of a probe whether a container is well.
type tally struct {
	successes, failures int
	// well is the present decision.
	well bool
	// inARow counts results that contradict well.
	inARow int
}

// newTally starts with a decision. The thresholds are at least 1.
func newTally(p *Probe, well bool) *tally {
	return &tally{successes: max(p.Successes, 1), failures: max(p.Failures, 1), well: well}
}

// add adds a result, and reports whether the decision has changed.
func (t *tally) add(success bool) bool {
	if success == t.well {
		t.inARow = 0
		return false
	}
	t.inARow++
	threshold := t.successes
	if t.well {
		threshold = t.failures
	}
	if t.inARow < threshold {
		return false
	}
	t.well, t.inARow = success, 0
	return true
}

// probe repeats the requests of a probe on a host until the context ends, and calls changed with each new decision. The
// first request follows the start of the container at once, or after the delay of the probe.
func probe(ctx context.Context, network Network, host string, p *Probe, well bool, changed func(well bool)) {
	t := newTally(p, well)
	client := &http.Client{
		Timeout: time.Duration(max(p.Timeout, 1)) * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, kind, address string) (c net.Conn, err error) {
				inside := network.Inside(host, func() error {
					c, err = new(net.Dialer).DialContext(ctx, kind, address)
					return err
				})
				return c, inside
			}},
	}
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("http://%s:%d%s", p.HTTP.Host, p.HTTP.Port, p.HTTP.Path)
	if lab.Pause(ctx, time.Duration(p.Delay)*time.Second) != nil {
		return
	}
	for {
		success := request(ctx, client, url)
		if ctx.Err() != nil {
			return
		}
		if t.add(success) {
			changed(t.well)
		}
		if lab.Pause(ctx, time.Duration(max(p.Period, 1))*time.Second) != nil {
			return
		}
	}
}

// request reports whether a probe's request succeeds.
func request(ctx context.Context, client *http.Client, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(r)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusBadRequest
}
