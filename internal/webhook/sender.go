package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/webhook"
)

const (
	// dialTimeout bounds connecting, deliveryTimeout a whole delivery: eight endpoints that never answer keep eight
	// goroutines each.
	dialTimeout     = 3 * time.Second
	deliveryTimeout = 10 * time.Second
	// flushTimeout bounds the time in which the last events are sent when the server stops.
	flushTimeout = 2 * time.Second
	// maxAnswerBytes bounds the body that is read of an answer, so that the connection can be used again.
	maxAnswerBytes = 4 << 10
	// maxAnswerHeaderBytes bounds the header of an answer.
	maxAnswerHeaderBytes = 16 << 10
)

// Stats are the counters of a Sender, summed over endpoints.
type Stats struct {
	// Delivered counts events that an endpoint has accepted, Full events that were dropped because a queue was full,
	// Expired because they were too old.
	Delivered, Full, Expired uint64
	// Accepted counts deliveries that were answered with a status 200 to 299, Rejected those with another status, and
	// Failed those without an answer.
	Accepted, Rejected, Failed uint64
	// Queued is the number of events that wait or are in flight, Stopped of those that were dropped by Stop.
	Queued, Stopped int
}

// Sender posts events to all endpoints. A Sender is safe for concurrent use.
type Sender struct {
	keyFile   string
	keys      atomic.Pointer[[]webhook.Key]
	endpoints []*endpoint
	running   sync.WaitGroup
}

// Start reads the keys and starts to send. The configuration must be valid and name an endpoint.
func Start(c Config, version string, log *zap.Logger) (*Sender, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Sender{keyFile: c.KeyFile}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	for _, address := range c.URLs {
		e := newEndpoint(address, "volsfu/"+version, &s.keys, log)
		s.endpoints = append(s.endpoints, e)
		s.running.Go(e.run)
	}
	return s, nil
}

// Reload reads the keys again. The keys stay as they are if the file is not valid.
func (s *Sender) Reload() error {
	keys, err := readKeys(s.keyFile)
	if err != nil {
		return err
	}
	s.keys.Store(&keys)
	return nil
}

// RoomEvent queues an event for all endpoints and sets its id. RoomEvent does not wait.
func (s *Sender) RoomEvent(e webhook.Event) {
	e.ID = rand.Text()
	body, err := json.Marshal(&e)
	if err != nil {
		panic("events are plain data: " + err.Error())
	}
	for _, endpoint := range s.endpoints {
		endpoint.push(e.Room.Name, event{id: e.ID, body: body, at: e.At})
	}
}

// Stats returns the counters.
func (s *Sender) Stats() (sum Stats) {
	for _, e := range s.endpoints {
		stats := e.stats()
		sum.Delivered += stats.Delivered
		sum.Full += stats.Full
		sum.Expired += stats.Expired
		sum.Stopped += stats.Stopped
		sum.Accepted += stats.Accepted
		sum.Rejected += stats.Rejected
		sum.Failed += stats.Failed
		sum.Queued += stats.Queued
	}
	return sum
}

// Stop sends the waiting events until flushTimeout has passed or the context has ended, and drops the rest. Stop
// returns when no request is in flight. RoomEvent must not be called during Stop or after it.
func (s *Sender) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	for _, e := range s.endpoints {
		e.stop(ctx)
	}
	s.running.Wait()
}

// endpoint posts events to one address.
type endpoint struct {
	url    string
	agent  string
	client *http.Client
	keys   *atomic.Pointer[[]webhook.Key]
	log    *zap.Logger
	// changed is signalled when an event was added or a delivery has ended.
	changed chan struct{}
	// life ends with the endpoint, and with it every request. open ends when only the waiting events are to be sent.
	life, open context.Context
	end, flush context.CancelFunc

	mu    sync.Mutex
	queue *queue
	// counts has the fields of Stats that the queue does not count.
	counts Stats
	// failure is the reason of the last delivery if it failed, empty otherwise.
	failure string
}

func newEndpoint(
	address, agent string, keys *atomic.Pointer[[]webhook.Key], log *zap.Logger,
) *endpoint {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	e := &endpoint{
		url: address, agent: agent, keys: keys, changed: make(chan struct{}, 1), queue: newQueue(),
		log: log.With(zap.String("webhook", host)),
	}
	e.life, e.end = context.WithCancel(context.Background())
	e.open, e.flush = context.WithCancel(e.life)
	e.client = &http.Client{
		Timeout: deliveryTimeout,
		// A redirect is answered like any other status: the address of an endpoint is that of its configuration.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
			MaxConnsPerHost: maxInFlight, MaxIdleConnsPerHost: maxInFlight, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: maxAnswerHeaderBytes, DisableCompression: true,
		},
	}
	return e
}

func (e *endpoint) push(room string, added event) {
	e.mu.Lock()
	e.queue.push(room, added)
	e.mu.Unlock()
	e.signal()
}

func (e *endpoint) signal() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

func (e *endpoint) stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.counts
	s.Delivered, s.Full, s.Expired = e.queue.delivered, e.queue.full, e.queue.expired
	s.Queued = e.queue.length
	return s
}

// stop ends the endpoint when its queue is empty or the context has ended.
func (e *endpoint) stop(ctx context.Context) {
	e.flush()
	context.AfterFunc(ctx, e.end)
}

// run starts the deliveries that are due until the endpoint ends.
func (e *endpoint) run() {
	var requests sync.WaitGroup
	timer := time.NewTimer(0)
	defer func() {
		timer.Stop()
		requests.Wait()
		e.end()
		e.client.CloseIdleConnections()
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.counts.Stopped = e.queue.length; e.counts.Stopped > 0 {
			e.log.Warn("webhooks dropped because the server stops", zap.Int("events", e.counts.Stopped))
		}
	}()
	flushing := e.open.Done()
	for {
		now := time.Now()
		e.mu.Lock()
		for l := e.queue.next(now); l != nil; l = e.queue.next(now) {
			sent := l.events[0]
			requests.Go(func() { e.deliver(l, sent) })
		}
		wake, empty := e.queue.wake(), e.queue.length == 0
		e.mu.Unlock()
		if empty && flushing == nil {
			return
		}
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(max(0, wake.Sub(now)))
		}
		select {
		case <-e.changed:
		case <-timer.C:
		case <-flushing:
			flushing = nil
		case <-e.life.Done():
			return
		}
	}
}

// deliver posts the oldest event of a line once.
func (e *endpoint) deliver(l *line, sent event) {
	status, err := e.post(sent)
	if e.life.Err() != nil {
		return
	}
	accepted := err == nil && status >= 200 && status < 300
	e.mu.Lock()
	e.queue.finish(l, accepted, time.Now())
	failure := ""
	switch {
	case err != nil:
		e.counts.Failed++
		failure = reason(err)
	case !accepted:
		e.counts.Rejected++
		failure = "status " + strconv.Itoa(status)
	default:
		e.counts.Accepted++
	}
	former := e.failure
	e.failure = failure
	e.mu.Unlock()
	e.signal()
	switch {
	case failure != "" && former == "":
		e.log.Warn("webhook not delivered; it will be repeated", zap.String("reason", failure))
	case failure == "" && former != "":
		e.log.Info("webhooks are delivered again")
	}
}

// reason returns the text of an error without the address, whose query may be secret.
func reason(err error) string {
	if inner := new(url.Error); errors.As(err, &inner) {
		err = inner.Err
	}
	return err.Error()
}

// post makes one request and returns the status of its answer.
func (e *endpoint) post(sent event) (int, error) {
	request, err := http.NewRequestWithContext(e.life, http.MethodPost, e.url, bytes.NewReader(sent.body))
	if err != nil {
		return 0, err
	}
	now := time.Now()
	var signatures []string
	for _, key := range *e.keys.Load() {
		signatures = append(signatures, key.Sign(sent.id, now, sent.body))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", e.agent)
	request.Header.Set(webhook.HeaderID, sent.id)
	request.Header.Set(webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(webhook.HeaderSignature, strings.Join(signatures, " "))
	response, err := e.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	// The answer has a status: an error of the body has no meaning.
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBytes)
	return response.StatusCode, nil
}
