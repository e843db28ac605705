package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
)

const (
	// nodeTimeout bounds a request to another node: its answerTimeout, and some round trips between continents.
	nodeTimeout = answerTimeout + time.Second
	// maxAnswerBytes bounds the answer of another node.
	maxAnswerBytes = 256 << 20
)

// ForNodes returns the handler of the requests of other nodes, which are admitted without the gate. The requests
// concern this node only: a request for a room or participant that this node does not have is answered with status 421.
func (a *API) ForNodes() http.Handler { return a.own }

// ownRoutes returns the handlers of requests that concern this node only.
func (a *API) ownRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /drain":       a.drain,
		"GET /rooms":        a.ownRooms,
		"GET /rooms/{room}": a.ifPresent(a.ownRoom),

		"PUT /rooms/{room}":                            a.ifPresent(a.putRoom),
		"PATCH /rooms/{room}":                          a.ifPresent(a.patchRoom),
		"DELETE /rooms/{room}":                         a.ifPresent(a.closeRoom),
		"POST /rooms/{room}/messages":                  a.ifPresent(a.send),
		"PATCH /rooms/{room}/participants/{identity}":  a.ifPresent(a.patchParticipant),
		"DELETE /rooms/{room}/participants/{identity}": a.kickHere,
		"POST /rooms/{room}/recording":                 a.ifPresent(a.startRecording),
		"DELETE /rooms/{room}/recording":               a.ifPresent(a.stopRecording),
		"POST /rooms/{room}/move":                      a.ifPresent(a.moveFrom),

		"GET /bans":                            a.bans,
		"DELETE /rooms/{room}/bans/{identity}": a.unban,
		"GET /revocations":                     a.revocations,
		"PUT /revocations/{id}":                a.revoke,
		"DELETE /revocations/{id}":             a.restore,
	}
}

// ifPresent answers with status 421 if this node does not have the room of a request, or is not the home of its
// participant.
func (a *API) ifPresent(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		room, identity := r.PathValue("room"), r.PathValue("identity")
		states, err := a.states(r.Context(), room, false)
		if err != nil {
			a.fail(w, err)
			return
		}
		present := len(states) > 0 && (identity == "" || slices.ContainsFunc(states[0].Participants,
			func(p sfu.ParticipantState) bool { return p.Identity == identity }))
		if !present {
			refuse(w, http.StatusMisdirectedRequest, "the room or the participant is not on this node")
			return
		}
		handler(w, r)
	}
}

// kickHere removes a participant. A ban applies even if the participant is not present.
func (a *API) kickHere(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("ban") != "" {
		a.kick(w, r)
		return
	}
	a.ifPresent(a.kick)(w, r)
}

// ownRooms and ownRoom reply with the rooms of this node.
func (a *API) ownRooms(w http.ResponseWriter, r *http.Request) {
	states, err := a.states(r.Context(), "", r.URL.Query().Get("past") == "1")
	if err != nil {
		a.fail(w, err)
		return
	}
	reply(w, http.StatusOK, map[string][]sfu.RoomState{"rooms": states})
}

func (a *API) ownRoom(w http.ResponseWriter, r *http.Request) {
	states, err := a.states(r.Context(), r.PathValue("room"), r.URL.Query().Get("past") == "1")
	switch {
	case err != nil:
		a.fail(w, err)
	case len(states) == 0:
		refuse(w, http.StatusMisdirectedRequest, "the room has just ended on this node")
	default:
		reply(w, http.StatusOK, states[0])
	}
}

// clusterRoutes returns the handlers of requests that concern all nodes, in place of those of the same route.
func (a *API) clusterRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"PUT /rooms/{room}":                            a.putAnywhere,
		"PATCH /rooms/{room}":                          a.onAll,
		"DELETE /rooms/{room}":                         a.onAny,
		"POST /rooms/{room}/messages":                  a.onFirst,
		"PATCH /rooms/{room}/participants/{identity}":  a.onAny,
		"DELETE /rooms/{room}/participants/{identity}": a.onAny,
		"POST /rooms/{room}/recording":                 a.onFirst,
		"DELETE /rooms/{room}/recording":               a.onAny,

		"GET /bans":                            a.allBans,
		"DELETE /rooms/{room}/bans/{identity}": a.onAll,
		"GET /revocations":                     a.allRevocations,
		"PUT /revocations/{id}":                a.onAll,
		"DELETE /revocations/{id}":             a.onAll,
	}
}

// onAny passes a request to all nodes. The request has succeeded if one node has done it: the home of a participant, or
// any node for changes that nodes pass on to each other.
func (a *API) onAny(w http.ResponseWriter, r *http.Request) { a.distribute(w, r, false) }

// onAll passes a request to all nodes. The request has succeeded if all nodes that it concerns have done it.
func (a *API) onAll(w http.ResponseWriter, r *http.Request) { a.distribute(w, r, true) }

func (a *API) distribute(w http.ResponseWriter, r *http.Request, all bool) {
	answers, err := a.everywhere(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	a.conclude(w, r, answers, all)
}

// everywhere passes a request to all nodes that answer, this one included.
func (a *API) everywhere(w http.ResponseWriter, r *http.Request) ([]result, error) {
	q, err := copyOf(w, r)
	if err != nil {
		return nil, err
	}
	nodes := a.answering()
	answers := make([]result, 0, len(nodes))
	for answer := range a.askAll(r.Context(), nodes, q) {
		answers = append(answers, answer)
	}
	slices.SortFunc(answers, func(a, b result) int { return strings.Compare(a.node, b.node) })
	return answers, nil
}

// conclude replies with the result of a request that several nodes have answered.
func (a *API) conclude(w http.ResponseWriter, r *http.Request, answers []result, all bool) {
	var done, failed, absent, refused []result
	for _, answer := range answers {
		switch {
		case answer.ok():
			done = append(done, answer)
		case answer.err != nil || answer.status >= http.StatusInternalServerError:
			failed = append(failed, answer)
		case answer.status == http.StatusMisdirectedRequest || answer.status == http.StatusNotFound:
			absent = append(absent, answer)
		default:
			refused = append(refused, answer)
		}
	}
	switch {
	case len(refused) > 0:
		a.pass(w, refused[0])
	case len(failed) > 0 && (all || len(done) == 0):
		a.fail(w, failedOn(failed))
	case len(done) > 0:
		a.pass(w, done[0])
	default:
		// A node that is concerned explains more precisely what is absent.
		i := slices.IndexFunc(absent, func(a result) bool { return a.status == http.StatusNotFound })
		if i < 0 {
			a.fail(w, nowhere(r))
			return
		}
		a.pass(w, absent[i])
	}
}

// nowhere is the error of a request for a room or participant that no node has.
func nowhere(r *http.Request) error {
	room, identity := r.PathValue("room"), r.PathValue("identity")
	if identity == "" {
		return fmt.Errorf("%w: room %q on any node", sfu.ErrNotFound, room)
	}
	return fmt.Errorf("%w: %q in room %q on any node", sfu.ErrNotFound, identity, room)
}

// failedOn returns an error that names the nodes that have failed. The error wraps errNodes.
func failedOn(answers []result) error {
	texts := make([]string, len(answers))
	for i, answer := range answers {
		failure := answer.failure()
		texts[i] = failure.Node + ": " + failure.Error
	}
	return fmt.Errorf("%w: %s", errNodes, strings.Join(texts, "; "))
}

// onFirst passes a request to the first node that has the room, this node first.
func (a *API) onFirst(w http.ResponseWriter, r *http.Request) {
	q, err := copyOf(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	var failed []result
	for _, node := range a.answering() {
		switch answer := a.ask(r.Context(), node, q); {
		case answer.err != nil:
			failed = append(failed, answer)
		case answer.status != http.StatusMisdirectedRequest:
			a.pass(w, answer)
			return
		}
	}
	if len(failed) > 0 {
		a.fail(w, failedOn(failed))
		return
	}
	a.fail(w, nowhere(r))
}

// putAnywhere replaces the settings of a room on the nodes that have it, or creates the room on this node.
func (a *API) putAnywhere(w http.ResponseWriter, r *http.Request) {
	q, err := copyOf(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(q.body))
	answers, err := a.everywhere(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	if slices.ContainsFunc(answers, func(a result) bool {
		return a.err == nil && a.status != http.StatusMisdirectedRequest
	}) {
		a.conclude(w, r, answers, true)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(q.body))
	a.putRoom(w, r)
}

// allBans replies with the bans of all nodes, each once with its latest end, and the nodes that did not answer.
func (a *API) allBans(w http.ResponseWriter, r *http.Request) {
	type key struct{ room, identity, token string }
	lists(a, w, r, "bans", func(b admission.Ban) key { return key{b.Room, b.Identity, b.TokenID} },
		func(a, b admission.Ban) admission.Ban {
			if b.Until.After(a.Until) {
				return b
			}
			return a
		})
}

// allRevocations replies with the revocations of all nodes, each once, and the nodes that did not answer.
func (a *API) allRevocations(w http.ResponseWriter, r *http.Request) {
	lists(a, w, r, "revocations", func(v admission.Revocation) string { return v.ID },
		func(a, b admission.Revocation) admission.Revocation {
			// A node that has seen the token knows when the token expires.
			if b.Seen != a.Seen && b.Seen || b.Seen == a.Seen && b.Until.After(a.Until) {
				return b
			}
			return a
		})
}

// lists replies with the lists that all nodes have under a name. Entries with the same key are joined.
func lists[E any, K comparable](
	a *API, w http.ResponseWriter, r *http.Request, name string, key func(E) K, join func(a, b E) E,
) {
	answers, err := a.everywhere(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	all := []E{}
	at := map[K]int{}
	var failures []Failure
	for _, answer := range answers {
		var part map[string][]E
		if err := answer.decode(&part); err != nil {
			failures = append(failures, answer.failure())
			continue
		}
		for _, entry := range part[name] {
			i, known := at[key(entry)]
			if known {
				all[i] = join(all[i], entry)
				continue
			}
			at[key(entry)] = len(all)
			all = append(all, entry)
		}
	}
	body := map[string]any{name: all}
	if len(failures) > 0 {
		body["failed"] = failures
	}
	reply(w, http.StatusOK, body)
}

// answering returns the names of the nodes that are not dead, this node first.
func (a *API) answering() []string {
	self := a.cluster.Self()
	names := []string{self}
	for _, node := range a.cluster.Nodes() {
		if node.Name != self && node.State != NodeDead {
			names = append(names, node.Name)
		}
	}
	return names
}

// request is a request for nodes.
type request struct {
	// path is relative to APIPath and has the query.
	method, path string
	body         []byte
	// noneMatch is the header If-None-Match.
	noneMatch string
	// remote is the address of the operator, for the log of this node.
	remote string
}

// copyOf returns a request of an operator as a request for nodes. The error wraps errBody.
func copyOf(w http.ResponseWriter, r *http.Request) (request, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return request{}, fmt.Errorf("%w: expected at most %d bytes", errBody, large.Limit)
	}
	if err != nil {
		return request{}, fmt.Errorf("%w: %w", errBody, err)
	}
	return request{
		method: r.Method, path: relative(r), body: body, noneMatch: r.Header.Get("If-None-Match"), remote: r.RemoteAddr,
	}, nil
}

// relative returns the path of a request below APIPath, with its query.
func relative(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.EscapedPath(), APIPath)
	if query := r.URL.Query(); len(query) > 0 {
		// The token of the operator is for this node.
		query.Del("access_token")
		path += "?" + query.Encode()
	}
	return path
}

// roomPath adds the name of a room to a path, before its query. Dots are escaped, since a mux would shorten the path.
func roomPath(path, room string) string {
	before, query, found := strings.Cut(path, "?")
	before += "/" + strings.ReplaceAll(url.PathEscape(room), ".", "%2E")
	if found {
		return before + "?" + query
	}
	return before
}

func encoded(body any) []byte {
	data, err := json.Marshal(body)
	if err != nil {
		panic("bodies are plain data: " + err.Error())
	}
	return data
}

// result is the answer of a node, or the error with which the request has failed.
type result struct {
	node   string
	status int
	body   []byte
	err    error
}

func (r *result) ok() bool { return r.err == nil && r.status/100 == 2 }

// failure returns the node with the reason for which it has not done a request.
func (r *result) failure() Failure {
	if r.err != nil {
		return Failure{r.node, r.err.Error()}
	}
	var refused struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(r.body, &refused) != nil || refused.Error == "" {
		refused.Error = fmt.Sprintf("the node answers with status %d, expected the API of volsfu", r.status)
	}
	return Failure{r.node, refused.Error}
}

// decode decodes the body of a request that has succeeded.
func (r *result) decode(into any) error {
	if !r.ok() {
		return errors.New(r.failure().Error)
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		r.err = fmt.Errorf("the answer cannot be decoded: %w", err)
	}
	return r.err
}

// rooms returns the rooms of an answer. one is set if the request names a room.
func (r *result) rooms(one bool) ([]sfu.RoomState, error) {
	if !one {
		var list struct{ Rooms []sfu.RoomState }
		err := r.decode(&list)
		return list.Rooms, err
	}
	if r.err == nil && r.status == http.StatusMisdirectedRequest {
		return nil, nil
	}
	var room sfu.RoomState
	if err := r.decode(&room); err != nil {
		return nil, err
	}
	return []sfu.RoomState{room}, nil
}

// pass replies with the answer of a node.
func (a *API) pass(w http.ResponseWriter, of result) {
	if of.err != nil {
		a.fail(w, failedOn([]result{of}))
		return
	}
	if len(of.body) > 0 {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(of.status)
	// Fails if the client has disconnected.
	_, _ = w.Write(of.body)
}

// askAll sends a request to nodes at the same time. The channel has the answers in the order of their arrival, and is
// closed after the last.
func (a *API) askAll(ctx context.Context, nodes []string, q request) <-chan result {
	answers := make(chan result, len(nodes))
	var asked sync.WaitGroup
	for _, node := range nodes {
		asked.Go(func() { answers <- a.ask(ctx, node, q) })
	}
	go func() {
		asked.Wait()
		close(answers)
	}()
	return answers
}

// ask sends a request to a node, this one included, and returns its answer.
func (a *API) ask(ctx context.Context, node string, q request) result {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, APIPath+q.path, bytes.NewReader(q.body))
	if err != nil {
		return result{node: node, err: err}
	}
	if q.noneMatch != "" {
		r.Header.Set("If-None-Match", q.noneMatch)
	}
	if node == a.cluster.Self() {
		r.RemoteAddr = q.remote
		return a.askSelf(r)
	}
	response, err := a.cluster.Do(node, r)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("the node does not answer within %v", nodeTimeout)
		}
		return result{node: node, err: err}
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err == nil && len(data) > maxAnswerBytes {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswerBytes)
	}
	return result{node, response.StatusCode, data, err}
}

// askSelf serves a request on this node. A panic of the handler is the error of the answer: the goroutine is not that
// of a request, whose panics are confined.
func (a *API) askSelf(r *http.Request) (answer result) {
	answer.node = a.cluster.Self()
	c := &capture{header: http.Header{}, status: http.StatusOK}
	defer func() {
		if value := recover(); value != nil {
			answer.err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
			return
		}
		answer.status, answer.body = c.status, c.body.Bytes()
	}()
	a.own.ServeHTTP(c, r)
	return answer
}

// capture is a http.ResponseWriter that keeps the response.
type capture struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (c *capture) Header() http.Header            { return c.header }
func (c *capture) WriteHeader(status int)         { c.status = status }
func (c *capture) Write(data []byte) (int, error) { return c.body.Write(data) }
