package admin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
)

// distributor passes requests to the nodes of a cluster that they concern.
type distributor struct{ *API }

// routes returns the handlers by method and path, in place of those of API.
func (a distributor) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"PUT /rooms/{room}":                            a.putRoom,
		"PATCH /rooms/{room}":                          a.allNodes,
		"DELETE /rooms/{room}":                         a.anyNode,
		"POST /rooms/{room}/messages":                  a.firstNode,
		"PATCH /rooms/{room}/participants/{identity}":  a.anyNode,
		"DELETE /rooms/{room}/participants/{identity}": a.anyNode,
		"POST /rooms/{room}/recording":                 a.firstNode,
		"DELETE /rooms/{room}/recording":               a.anyNode,

		"GET /bans":                            a.bans,
		"DELETE /rooms/{room}/bans/{identity}": a.allNodes,
		"GET /revocations":                     a.revocations,
		"PUT /revocations/{id}":                a.allNodes,
		"DELETE /revocations/{id}":             a.allNodes,
	}
}

// anyNode passes a request to all nodes. The request has succeeded if one node has done it: the home of a participant, or
// any node for changes that nodes pass on to each other.
func (a distributor) anyNode(w http.ResponseWriter, r *http.Request) { a.distribute(w, r, false) }

// allNodes passes a request to all nodes. The request has succeeded if all nodes that it concerns have done it.
func (a distributor) allNodes(w http.ResponseWriter, r *http.Request) { a.distribute(w, r, true) }

func (a distributor) distribute(w http.ResponseWriter, r *http.Request, all bool) {
	q, err := copyOf(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	a.conclude(w, r, a.nodes.askEach(r.Context(), q), all)
}

// conclude replies with the result of a request that several nodes have answered.
func (a distributor) conclude(w http.ResponseWriter, r *http.Request, answers []result, all bool) {
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
			a.fail(w, errNoNodeHas(r))
			return
		}
		a.pass(w, absent[i])
	}
}

// errNoNodeHas returns the error of a request for a room or participant that no node has.
func errNoNodeHas(r *http.Request) error {
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

// firstNode passes a request to the first node that has the room, this node first. The node is determined before: if
// the node of the request does not answer, no other node repeats the request.
func (a distributor) firstNode(w http.ResponseWriter, r *http.Request) {
	q, err := copyOf(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	names := a.nodes.answering()
	query := request{method: http.MethodGet, path: roomPath("rooms", r.PathValue("room"))}
	first := len(names)
	var failed []result
	for answer := range a.nodes.askAll(r.Context(), names, query) {
		switch {
		case answer.err != nil:
			failed = append(failed, answer)
		case answer.ok():
			first = min(first, slices.Index(names, answer.node))
		}
	}
	switch {
	case first < len(names):
		a.pass(w, a.nodes.ask(r.Context(), names[first], q))
	case len(failed) > 0:
		a.fail(w, failedOn(failed))
	default:
		a.fail(w, errNoNodeHas(r))
	}
}

// putRoom replaces the settings of a room on the nodes that have the room, or creates the room on this node. A node that
// does not answer may have the room.
func (a distributor) putRoom(w http.ResponseWriter, r *http.Request) {
	q, err := copyOf(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	answers := a.nodes.askEach(r.Context(), q)
	if slices.ContainsFunc(answers, func(a result) bool {
		return a.err != nil || a.status != http.StatusMisdirectedRequest
	}) {
		a.conclude(w, r, answers, true)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(q.body))
	a.API.putRoom(w, r)
}

// bans replies with the bans of all nodes, each once with its latest end, and the nodes that did not answer.
func (a distributor) bans(w http.ResponseWriter, r *http.Request) {
	type key struct{ room, identity, token string }
	lists(a, w, r, "bans", func(b admission.Ban) key { return key{b.Room, b.Identity, b.TokenID} },
		func(a, b admission.Ban) admission.Ban {
			if b.Until.After(a.Until) {
				return b
			}
			return a
		})
}

// revocations replies with the revocations of all nodes, each once, and the nodes that did not answer.
func (a distributor) revocations(w http.ResponseWriter, r *http.Request) {
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
	a distributor, w http.ResponseWriter, r *http.Request, name string, key func(E) K, join func(a, b E) E,
) {
	q, err := copyOf(w, r)
	if err != nil {
		a.fail(w, err)
		return
	}
	answers := a.nodes.askEach(r.Context(), q)
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
