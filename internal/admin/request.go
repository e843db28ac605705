package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/volsfu/volsfu/internal/sfu"
)

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
